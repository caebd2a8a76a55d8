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
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.device.Precision;
import org.fedcomuon.linalg.Orthogonalizer.Products;
import org.fedcomuon.testing.GpuReport;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

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
                new Exact(),
                new ExactSvd(),
                new NewtonSchulz(Coefficients.jordan(5)),
                new NewtonSchulz(Coefficients.polarExpress(8, 1)),
                new GramNewtonSchulz(Coefficients.jordan(5)),
                new NewtonSchulz(Coefficients.jordan(5), Precision.FP32, Products.CUBLAS),
                new GramNewtonSchulz(Coefficients.jordan(5), Precision.FP32, Products.CUBLAS));
    }

    private static Products productsOf(Orthogonalizer how) {
        return switch (how) {
            case NewtonSchulz n -> n.products();
            case GramNewtonSchulz g -> g.products();
            case Auto a -> a.products();
            case Exact _, ExactSvd _ -> Products.CUBLAS; // by cuSOLVER and cuBLAS
        };
    }

    /** The same by kernels, which is what a CPU has. */
    private static Orthogonalizer byKernels(Orthogonalizer how) {
        return switch (how) {
            case NewtonSchulz n -> new NewtonSchulz(n.coefficients(), n.precision());
            case GramNewtonSchulz g -> new GramNewtonSchulz(g.coefficients(), g.precision());
            case Auto a -> new Auto(a.coefficients(), a.precision());
            case Exact _, ExactSvd _ -> how;
        };
    }

    /** One for the kernel that does all in a call, one beyond it, one tall and beyond it. */
    private int[][] shapes() {
        return TestDevices.isSimulated(name)
                ? new int[][] {{16, 50}, {129, 140}, {150, 130}}
                : new int[][] {{120, 256}, {512, 768}, {1024, 400}};
    }

    /**
     * By cuBLAS within a tolerance, and by kernels in every bit of a CPU with fused multiply-add. The double-precision
     * norms may differ in their last bit, which one of 2^29 floats would show: of these matrices, none does. A real GPU
     * is given the tolerance for that.
     */
    @ParameterizedTest
    @MethodSource("orthogonalizers")
    void areWhatTheCpuMakesOfThem(Orthogonalizer how) {
        assumeProducts(how);
        for (int[] shape : shapes()) {
            double distance = distance(how, byKernels(how), shape[0], shape[1]);
            double allowed = 1e-4;
            GpuReport.ofThisRun()
                    .accuracy(name, "%s, %d x %d".formatted(how.name(), shape[0], shape[1]), distance, allowed);
            assertThat(distance).as("%d x %d", shape[0], shape[1]).isLessThan(allowed);
            if (productsOf(how) == Products.KERNELS && TestDevices.isSimulated(name) && cpuFuses()) {
                assertThat(distance).as("%d x %d", shape[0], shape[1]).isZero();
            }
        }
    }

    private static boolean cpuFuses() {
        try (Device device = TestDevices.open("cpu:0")) {
            return device.instructionSet().compareTo(InstructionSet.AVX2) >= 0;
        }
    }

    /**
     * Large matrices feel the precision that is asked for, and small ones, which have kernels of their own in each. A
     * GPU before Ampere refuses narrower ones in kernels, and cuBLAS computes in fp32 there, so of a real one only the
     * bounds are sure.
     */
    @ParameterizedTest
    @CsvSource({"false,KERNELS", "true,KERNELS", "false,CUBLAS", "true,CUBLAS"})
    void thePrecisionIsTheCallersChoice(boolean gram, Products products) {
        assumeProducts(precise(gram, Precision.BF16, products));
        Map<Precision, Double> allowed = Map.of(Precision.FP32, 1e-4, Precision.TF32, 2e-2, Precision.BF16, 2e-1);
        Orthogonalizer onCpu = precise(gram, Precision.FP32, Products.KERNELS);
        for (int[] shape : gram ? new int[][] {shapes()[1]} : new int[][] {shapes()[0], shapes()[1]}) {
            double before = 0;
            for (Precision precision : Precision.values()) {
                Orthogonalizer how = precise(gram, precision, products);
                String what = "%s, %d x %d".formatted(how.name(), shape[0], shape[1]);
                double distance = distance(how, onCpu, shape[0], shape[1]);
                GpuReport.ofThisRun().accuracy(name, what, distance, allowed.get(precision));
                assertThat(distance).as(what).isLessThan(allowed.get(precision));
                if (TestDevices.isSimulated(name) && precision != Precision.FP32) {
                    assertThat(distance).as(what).isGreaterThan(4 * Math.max(before, 1e-6));
                }
                // A CPU rounds in the same places, and adds up in another order.
                assertThat(distance(how, precise(gram, precision, Products.KERNELS), shape[0], shape[1]))
                        .as(what)
                        .isLessThan(allowed.get(precision));
                before = distance;
            }
        }
    }

    /** One step: with more, roundings to another neighbour would make the two independent of each other. */
    @ParameterizedTest
    @CsvSource({"false,TF32", "true,TF32", "false,BF16", "true,BF16"})
    void aStepOfKernelsRoundsWhereACpuDoes(boolean gram, Precision precision) {
        Coefficients one = Coefficients.jordan(1);
        Orthogonalizer how = gram ? new GramNewtonSchulz(one, precision) : new NewtonSchulz(one, precision);
        Orthogonalizer exact = gram ? new GramNewtonSchulz(one) : new NewtonSchulz(one);
        assumeProducts(how);
        for (int[] shape : shapes()) {
            double rounding = distance(how, exact, shape[0], shape[1]);
            assertThat(distance(how, how, shape[0], shape[1]))
                    .as("of %g, %d x %d", rounding, shape[0], shape[1])
                    .isLessThan(rounding / 4);
        }
    }

    private static Orthogonalizer precise(boolean gram, Precision precision, Products products) {
        return gram
                ? new GramNewtonSchulz(Coefficients.jordan(5), precision, products)
                : new NewtonSchulz(Coefficients.jordan(5), precision, products);
    }

    /** A GPU may have no cuBLAS, and before Ampere it has no tensor cores for these precisions. */
    private void assumeProducts(Orthogonalizer how) {
        if (how instanceof Exact || how instanceof ExactSvd) {
            return; // see below
        }
        try (Device device = TestDevices.open(name);
                Orthogonalizer.Plan plan = how.plan(device, 1, 130, 130, ElementType.FLOAT32, ScaleRule.NONE)) {
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
            assumeTrue(
                    !(how instanceof Exact || how instanceof ExactSvd) || TestDevices.decomposes(device),
                    "no decompositions on " + name);
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
