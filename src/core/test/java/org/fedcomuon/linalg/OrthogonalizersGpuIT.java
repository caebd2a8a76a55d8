package org.fedcomuon.linalg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.Map;
import java.util.stream.Stream;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Precision;
import org.fedcomuon.testing.GpuReport;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Orthogonalizers on a GPU against the CPU, small matrices and large. {@link OrthogonalizerIT} has known answers,
 * strides and refusals.
 */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.testing.TestDevices#gpus")
class OrthogonalizersGpuIT {
    private static final int COUNT = 2;

    /** Singular values over one order of magnitude: what rounding does to them is small, and known. */
    private static final double CONDITION = 10;

    @Parameter
    private String name;

    @BeforeEach
    void assumeItIsHere() {
        TestDevices.open(name).close();
    }

    static Stream<Orthogonalizer> orthogonalizers() {
        return Stream.of(
                new ExactSvd(),
                new NewtonSchulz(Coefficients.jordan(5)),
                new NewtonSchulz(Coefficients.polarExpress(8, 1)),
                new GramNewtonSchulz(Coefficients.jordan(5)));
    }

    /** One for the kernel that does all in a call, one beyond it, one tall and beyond it. */
    private int[][] shapes() {
        return TestDevices.isSimulated(name)
                ? new int[][] {{16, 50}, {129, 140}, {150, 130}}
                : new int[][] {{120, 256}, {512, 768}, {1024, 400}};
    }

    @ParameterizedTest
    @MethodSource("orthogonalizers")
    void areWhatTheCpuMakesOfThem(Orthogonalizer how) {
        for (int[] shape : shapes()) {
            double distance = distance(how, how, shape[0], shape[1]);
            double allowed = 1e-4;
            GpuReport.ofThisRun()
                    .accuracy(name, "%s, %d x %d".formatted(how.name(), shape[0], shape[1]), distance, allowed);
            assertThat(distance).as("%d x %d", shape[0], shape[1]).isLessThan(allowed);
        }
    }

    /**
     * Large matrices feel the precision that is asked for, small ones do not. A GPU before Ampere has no narrower one
     * and computes in fp32, so of a real one only the bounds are sure.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void thePrecisionIsTheCallersChoice(boolean gram) {
        assumeProducts();
        Map<Precision, Double> allowed = Map.of(Precision.FP32, 1e-4, Precision.TF32, 2e-2, Precision.BF16, 2e-1);
        int[] small = shapes()[0];
        int[] large = shapes()[1];
        double before = 0;
        for (Precision precision : Precision.values()) {
            Orthogonalizer how = precise(gram, precision);
            double distance = distance(how, precise(gram, Precision.FP32), large[0], large[1]);
            GpuReport.ofThisRun()
                    .accuracy(
                            name,
                            "%s, %d x %d".formatted(how.name(), large[0], large[1]),
                            distance,
                            allowed.get(precision));
            assertThat(distance).as(how.name()).isLessThan(allowed.get(precision));
            if (TestDevices.isSimulated(name)) {
                assertThat(distance).as(how.name()).isGreaterThan(4 * before);
            }
            before = distance;
            if (!gram) {
                assertThat(distance(how, precise(false, Precision.FP32), small[0], small[1]))
                        .isLessThan(allowed.get(Precision.FP32));
            }
        }
    }

    private static Orthogonalizer precise(boolean gram, Precision precision) {
        return gram
                ? new GramNewtonSchulz(Coefficients.jordan(5), precision)
                : new NewtonSchulz(Coefficients.jordan(5), precision);
    }

    private void assumeProducts() {
        try (Device device = TestDevices.open(name);
                Orthogonalizer.Plan plan =
                        precise(false, Precision.BF16).plan(device, 1, 130, 130, ElementType.FLOAT32, ScaleRule.NONE)) {
            assertThat(plan.path()).isNotEmpty();
        } catch (DeviceException.Unsupported e) {
            abort(e.getMessage());
        }
    }

    /** Between what this device and the CPU make of the same matrices, relative to the CPU's: of Frobenius norms. */
    private double distance(Orthogonalizer here, Orthogonalizer there, int rows, int cols) {
        var matrices = new float[COUNT][];
        for (int k = 0; k < COUNT; k++) {
            matrices[k] = Spectrum.of(rows, cols, Spectrum.logarithmic(Math.min(rows, cols), 1 + k, CONDITION), k)
                    .floats();
        }
        double[] actual = orthogonalized(name, here, rows, cols, matrices);
        double[] expected = orthogonalized("cpu:0", there, rows, cols, matrices);
        double error = 0;
        double size = 0;
        for (int i = 0; i < expected.length; i++) {
            error += Math.pow(actual[i] - expected[i], 2);
            size += expected[i] * expected[i];
        }
        return Math.sqrt(error / size);
    }

    private static double[] orthogonalized(String name, Orthogonalizer how, int rows, int cols, float[][] matrices) {
        int size = rows * cols;
        try (Device device = TestDevices.open(name)) {
            assumeTrue(!(how instanceof ExactSvd) || TestDevices.decomposes(device), "no decompositions on " + name);
            try (Buffer m = device.allocate("M", ElementType.FLOAT32, (long) COUNT * size);
                    Orthogonalizer.Plan plan =
                            how.plan(device, COUNT, rows, cols, ElementType.FLOAT32, ScaleRule.NONE)) {
                for (int k = 0; k < COUNT; k++) {
                    m.copyIn((long) k * size, matrices[k]);
                }
                plan.orthogonalize(m.batch(COUNT, size), m.batch(COUNT, size));
                return m.toDoubles(0, COUNT * size);
            }
        }
    }
}
