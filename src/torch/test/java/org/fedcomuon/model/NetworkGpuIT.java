package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.SplittableRandom;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.testing.GpuReport;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** A network's loss and gradient in the memory of a GPU against those on the CPU. */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.testing.TestDevices#gpus")
class NetworkGpuIT {
    private static final int COUNT = 16;
    private static final double ALLOWED = 1e-3; // cuDNN sums in its own order, and may use tf32 in convolutions

    @Parameter
    private String name;

    private final Network network = new LeNet();
    private final Layout layout = network.layout();
    private final Sample xi = new Sample(1, 0, Sample.Stream.INNER, 9);

    private NetworkLoss loss() {
        var random = new SplittableRandom(5);
        var pixels = new float[COUNT * 784];
        var labels = new long[COUNT];
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = (float) random.nextDouble();
        }
        for (int i = 0; i < COUNT; i++) {
            labels[i] = random.nextInt(10);
        }
        var examples = new Examples(Tensor.create(pixels).view(COUNT, 1, 28, 28), Tensor.create(labels));
        return new NetworkLoss(network, examples, sample -> new int[] {1, 4, 7, 15});
    }

    /** The loss, and then the gradient. */
    private double[] evaluated(String on) {
        long n = layout.length();
        try (Device device = TestDevices.open(on);
                Buffer w = device.allocate("W", ElementType.FLOAT32, n);
                Buffer gradient = device.allocate("gradient", ElementType.FLOAT32, n)) {
            w.copyIn(0, Initialization.uniform(layout, 3).toArray());
            device.synchronize(); // libtorch works on a stream of its own
            double value = loss().evaluate(xi, point(w), point(gradient));
            var all = new double[(int) n + 1];
            all[0] = value;
            System.arraycopy(gradient.toDoubles(0, (int) n), 0, all, 1, (int) n);
            return all;
        }
    }

    private Point point(Buffer buffer) {
        return new Point(
                layout,
                buffer.device().isHost()
                        ? Floats.of(buffer.segment())
                        : Floats.onDevice(buffer.device().name(), buffer.address(), buffer.length()));
    }

    private void assertSame(String on) {
        double[] expected = evaluated("cpu:0");
        double[] actual = evaluated(on);
        assertThat(actual[0]).isCloseTo(expected[0], within(ALLOWED));
        double error = 0;
        double size = 0;
        for (int i = 1; i < expected.length; i++) {
            error += Math.pow(actual[i] - expected[i], 2);
            size += expected[i] * expected[i];
        }
        GpuReport.ofThisRun().accuracy(on, "gradient of LeNet by libtorch", Math.sqrt(error / size), ALLOWED);
        assertThat(Math.sqrt(error / size)).isLessThan(ALLOWED);
    }

    @Test
    void libtorchComputesInTheMemoryOfAGpu() {
        TestDevices.open(name).close(); // here, where a missing one skips the test
        assumeTrue(!TestDevices.isSimulated(name), "libtorch knows nothing of simulated devices");
        assumeTrue(
                Torch.computesOn(name),
                "libtorch has no CUDA here; with it:"
                        + " FEDCOMUON_MAVEN_OPTS=-Dpytorch.platform=linux-x86_64-gpu ./fedcomuon test --gpu");
        assertSame(name);
    }

    /** The same lines without a GPU. */
    @Test
    void andInThatOfTheCpu() {
        assertSame("cpu:1");
    }
}
