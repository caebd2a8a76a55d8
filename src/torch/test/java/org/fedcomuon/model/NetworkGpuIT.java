package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
import java.util.SplittableRandom;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.JointOracle;
import org.fedcomuon.problem.JointOracle.Points;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.testing.GpuReport;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
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

    private Classification problem() {
        var random = new SplittableRandom(5);
        var pixels = new float[COUNT * 784];
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = (float) random.nextDouble();
        }
        List<int[]> clients = List.of(new int[] {1, 4, 7, 15}, new int[] {2, 3, 8});
        return new Classification(
                network,
                Examples.of(pixels, random.ints(COUNT, 0, 10).toArray(), 1, 28, 28),
                clients,
                4,
                new ExponentialRisk(1));
    }

    /** The losses of both clients, and then their gradients: queued on the stream of the device, where it has one. */
    private double[] evaluated(String on, Gradients gradients) throws Exception {
        int n = Math.toIntExact(layout.length());
        try (Device device = TestDevices.open(on);
                Buffer w = device.allocate("W", ElementType.FLOAT32, 2L * n);
                Buffer value = device.allocate("g", ElementType.FLOAT32, 2);
                Buffer gradient = device.allocate("gradient", ElementType.FLOAT32, 2L * n)) {
            for (int k = 0; k < 2; k++) {
                w.copyIn((long) k * n, Initialization.uniform(layout, 3 + k).toArray());
            }
            JointOracle oracle =
                    problem().gradients(gradients).joint(device, List.of(0, 1)).orElseThrow();
            assertThat(oracle.computesOnDevice()).isEqualTo(!device.isHost());
            List<Sample> xi = List.of(xi(0), xi(1));
            oracle.inner(xi, points(w), floats(value), List.of(points(gradient)));
            var all = new double[2 + 2 * n];
            System.arraycopy(value.toDoubles(0, 2), 0, all, 0, 2);
            System.arraycopy(gradient.toDoubles(0, 2 * n), 0, all, 2, 2 * n);
            return all;
        }
    }

    private static Sample xi(int client) {
        return new Sample(1, client, Sample.Stream.INNER, 9);
    }

    private Points points(Buffer buffer) {
        return new Points(layout, floats(buffer), 2, layout.length());
    }

    private static Floats floats(Buffer buffer) {
        return buffer.device().isHost()
                ? Floats.of(buffer.segment())
                : Floats.onDevice(buffer.device().name(), buffer.address(), buffer.length());
    }

    /** The same by the clients themselves, on the CPU. */
    private double[] expected() throws Exception {
        int n = Math.toIntExact(layout.length());
        var all = new double[2 + 2 * n];
        for (int k = 0; k < 2; k++) {
            var w = new Point(layout, Initialization.uniform(layout, 3 + k));
            var gradient = new Point(layout, Floats.zeros(n));
            Floats value = Floats.zeros(1);
            problem().client(k).inner(xi(k), w, value, new Jacobian(List.of(gradient)));
            all[k] = value.get(0);
            for (int i = 0; i < n; i++) {
                all[2 + k * n + i] = gradient.values().get(i);
            }
        }
        return all;
    }

    private void assertSame(String on, Gradients gradients) throws Exception {
        double[] expected = expected();
        double[] actual = evaluated(on, gradients);
        assertThat(actual[0]).isCloseTo(expected[0], within(ALLOWED));
        assertThat(actual[1]).isCloseTo(expected[1], within(ALLOWED));
        double error = 0;
        double size = 0;
        for (int i = 2; i < expected.length; i++) {
            error += Math.pow(actual[i] - expected[i], 2);
            size += expected[i] * expected[i];
        }
        GpuReport.ofThisRun()
                .accuracy(on, "gradient of LeNet by libtorch, " + gradients, Math.sqrt(error / size), ALLOWED);
        assertThat(Math.sqrt(error / size)).isLessThan(ALLOWED);
    }

    @ParameterizedTest
    @EnumSource(Gradients.class)
    void libtorchComputesInTheMemoryOfAGpu(Gradients gradients) throws Exception {
        TestDevices.open(name).close(); // here, where a missing one skips the test
        assumeTrue(!TestDevices.isSimulated(name), "libtorch knows nothing of simulated devices");
        assumeTrue(
                Torch.computesOn(name),
                "libtorch has no CUDA here; with it:"
                        + " FEDCOMUON_MAVEN_OPTS=-Dpytorch.platform=linux-x86_64-gpu ./fedcomuon test --gpu");
        assertSame(name, gradients);
    }

    /** The same lines without a GPU. */
    @Test
    void andInThatOfTheCpu() throws Exception {
        assertSame("cpu:1", Gradients.TOGETHER);
    }
}
