package org.fedcomuon.linalg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.fedcomuon.device.Blas;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.device.Matrix;
import org.fedcomuon.testing.GpuReport;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The exact factor against an SVD of the same matrix of floats in double precision, whose error is 1e-10 at a condition
 * number of 1e6.
 */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.testing.TestDevices#kinds")
class ExactIT {
    /** The largest error of an element: that of rounding one below 1 is 3e-8. */
    private static final double MOST = 1e-7;

    private static final double[] CONDITIONS = {1e2, 1e4, 1e6};

    @Parameter
    private String name;

    @BeforeEach
    void assumePossible() {
        try (Device device = TestDevices.open(name)) {
            assumeTrue(TestDevices.decomposes(device), "no decompositions on " + name);
        }
    }

    @SuppressWarnings("ArrayRecordComponent") // they are never compared
    private record Factors(float[] all, List<Integer> kept) {}

    private Factors exact(int rows, int cols, float[]... matrices) {
        return exact(2, rows, cols, matrices);
    }

    private Factors exact(int threads, int rows, int cols, float[]... matrices) {
        int size = rows * cols;
        int count = matrices.length;
        try (Device device = Devices.open(name, threads, InstructionSet.AUTO);
                Buffer m = device.allocate("M", ElementType.FLOAT32, (long) count * size);
                Buffer o = device.allocate("O", ElementType.FLOAT32, (long) count * size);
                Orthogonalizer.Plan plan =
                        new Exact().plan(device, count, rows, cols, ElementType.FLOAT32, ScaleRule.NONE)) {
            for (int k = 0; k < count; k++) {
                m.copyIn((long) k * size, matrices[k]);
            }
            plan.orthogonalize(m.batch(count, size), o.batch(count, size));
            return new Factors(o.toFloats(0, count * size), plan.kept());
        }
    }

    private static double[] bySvd(int rows, int cols, float[] matrix) {
        int size = rows * cols;
        try (Device device = Devices.open("cpu:0", 1, InstructionSet.AUTO);
                Buffer m = device.allocate("M", ElementType.FLOAT64, size);
                Orthogonalizer.Plan plan =
                        new ExactSvd().plan(device, 1, rows, cols, ElementType.FLOAT64, ScaleRule.NONE)) {
            m.copyIn(0, IntStream.range(0, size).mapToDouble(i -> matrix[i]).toArray());
            plan.orthogonalize(m.batch(1, size), m.batch(1, size));
            return m.toDoubles(0, size);
        }
    }

    private static double error(float[] is, double[] should) {
        return IntStream.range(0, is.length)
                .mapToDouble(i -> Math.abs(is[i] - should[i]))
                .max()
                .orElse(0);
    }

    private static float[] random(int length, long seed) {
        var random = new SplittableRandom(seed);
        var values = new float[length];
        for (int i = 0; i < length; i++) {
            values[i] = (float) random.nextGaussian();
        }
        return values;
    }

    private void assertIsTheFactor(int rows, int cols, double condition, float[] matrix, double[] expected) {
        Factors factors = exact(rows, cols, matrix);
        double error = error(factors.all(), expected);
        GpuReport.ofThisRun()
                .accuracy(name, "exact, %d x %d, condition %.0e".formatted(rows, cols, condition), error, MOST);
        assertThat(factors.kept()).containsExactly(Math.min(rows, cols));
        assertThat(error).as("condition %s", condition).isLessThan(MOST);
    }

    @ParameterizedTest
    @CsvSource({"64,64", "120,256", "256,120", "256,1024", "1024,256"})
    void isTheFactorOfTheVeryMatrix(int rows, int cols) {
        assumeFalse(TestDevices.isSimulated(name) && Math.max(rows, cols) > 256, "minutes in simulation");
        for (double condition : CONDITIONS) {
            float[] matrix = Spectrum.of(rows, cols, Spectrum.logarithmic(Math.min(rows, cols), 1, condition), 7)
                    .floats();
            assertIsTheFactor(rows, cols, condition, matrix, bySvd(rows, cols, matrix));
        }
    }

    /** Beyond what has to hold. */
    @Test
    void isTheFactorAtAConditionOfThreeMillion() {
        float[] matrix =
                Spectrum.of(120, 256, Spectrum.logarithmic(120, 1, 3e6), 7).floats();
        assertIsTheFactor(120, 256, 3e6, matrix, bySvd(120, 256, matrix));
    }

    /**
     * And of its transpose. Singular vectors come from factors of normal matrices: {@link Spectrum} would take long.
     */
    @Slow
    @ParameterizedTest
    @CsvSource({"768,768", "768,3072"})
    void isTheFactorOfTheVeryLargeMatrix(int rows, int cols) {
        assumeFalse(TestDevices.isSimulated(name), "minutes in simulation");
        double[] left = bySvd(rows, rows, random(rows * rows, 5));
        double[] right = bySvd(rows, cols, random(rows * cols, 6));
        for (double condition : CONDITIONS) {
            float[] matrix = product(rows, cols, left, Spectrum.logarithmic(rows, 1, condition), right);
            double[] factor = bySvd(rows, cols, matrix);
            assertIsTheFactor(rows, cols, condition, matrix, factor);
            var flipped = new float[matrix.length];
            var flippedFactor = new double[matrix.length];
            for (int i = 0; i < rows; i++) {
                for (int j = 0; j < cols; j++) {
                    flipped[j * rows + i] = matrix[i * cols + j];
                    flippedFactor[j * rows + i] = factor[i * cols + j];
                }
            }
            assertIsTheFactor(cols, rows, condition, flipped, flippedFactor);
        }
    }

    /** Returns {@code left diag(values) right}, rounded. */
    private static float[] product(int rows, int cols, double[] left, double[] values, double[] right) {
        try (Device device = Devices.open("cpu:0", 1, InstructionSet.AUTO);
                Buffer a = device.allocate("left", ElementType.FLOAT64, left.length);
                Buffer b = device.allocate("right", ElementType.FLOAT64, right.length);
                Buffer c = device.allocate("product", ElementType.FLOAT64, right.length)) {
            a.copyIn(
                    0,
                    IntStream.range(0, left.length)
                            .mapToDouble(i -> left[i] * values[i % rows])
                            .toArray());
            b.copyIn(0, right);
            device.blas()
                    .gemm(
                            Blas.Op.NONE,
                            Blas.Op.NONE,
                            1,
                            Matrix.of(a, 0, rows, rows),
                            Matrix.of(b, 0, rows, cols),
                            0,
                            Matrix.of(c, 0, rows, cols));
            double[] exactly = c.toDoubles(0, right.length);
            var rounded = new float[exactly.length];
            for (int i = 0; i < rounded.length; i++) {
                rounded[i] = (float) exactly[i];
            }
            return rounded;
        }
    }

    /**
     * Results are those of one matrix on one thread, in any company and with any number of threads: as many as a GPU
     * takes together, and one more.
     */
    @ParameterizedTest
    @ValueSource(ints = {7, 17})
    void bitsDependNeitherOnThreadsNorOnTheOthersOfABatch(int count) {
        int size = 24 * 40;
        float[][] matrices = IntStream.range(0, count)
                .mapToObj(k -> Spectrum.of(24, 40, Spectrum.logarithmic(24, 1, Math.pow(10, k % 7)), k)
                        .floats())
                .toArray(float[][]::new);
        Factors one = exact(1, 24, 40, matrices);
        for (int threads : name.startsWith("cpu") ? new int[] {2, 3, 8} : new int[] {}) {
            Factors several = exact(threads, 24, 40, matrices);
            assertThat(several.all()).isEqualTo(one.all());
            assertThat(several.kept()).isEqualTo(one.kept());
        }
        for (int k = 0; k < count; k++) {
            assertThat(exact(24, 40, matrices[k]).all())
                    .isEqualTo(Arrays.copyOfRange(one.all(), k * size, (k + 1) * size));
        }
    }

    /** A plan for more matrices than a call has gives the same. */
    @Test
    void aPlanServesFewerMatricesThanItWasMadeFor() {
        float[] matrix = random(5 * 8, 4);
        try (Device device = TestDevices.open(name);
                Buffer m = device.allocate("M", ElementType.FLOAT32, 3 * 40);
                Orthogonalizer.Plan plan = new Exact().plan(device, 3, 5, 8, ElementType.FLOAT32, ScaleRule.NONE)) {
            assertThat(plan.kept()).isEmpty();
            m.copyIn(0, matrix);
            m.copyIn(40, matrix);
            plan.orthogonalize(m.batch(2, 40), m.batch(2, 40));
            assertThat(plan.kept()).containsExactly(5, 5);
            assertThat(m.toFloats(0, 40))
                    .isEqualTo(m.toFloats(40, 40))
                    .isEqualTo(exact(5, 8, matrix).all());
            assertThat(m.toFloats(80, 40)).containsOnly(0);
            plan.orthogonalize(m.batch(3, 40), m.batch(3, 40));
            assertThat(plan.kept()).containsExactly(5, 5, 0);
            assertThat(plan.path()).isEqualTo("eigenvectors of the Gram matrix in double precision");
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {1e-38, 1e-30, 1, 1e30, 7e37})
    void scaleDoesNotMatter(double scale) {
        float[] plain = random(30 * 50, 3);
        var scaled = new float[plain.length];
        for (int i = 0; i < plain.length; i++) {
            scaled[i] = (float) (plain[i] * scale);
        }
        Factors factors = exact(30, 50, scaled);
        assertThat(factors.kept()).containsExactly(30);
        assertThat(error(factors.all(), bySvd(30, 50, scaled))).isLessThan(MOST);
    }

    /** The smallest and the largest floats: their squares leave the range of floats, not that of doubles. */
    @Test
    void denormalAndHugeElements() {
        float[] denormal = {Float.MIN_VALUE, 0, 0, 0, 3 * Float.MIN_VALUE, 0};
        assertThat(exact(2, 3, denormal).all()).containsExactly(1, 0, 0, 0, 1, 0);
        float[] huge = {0, -Float.MAX_VALUE, 0, Float.MAX_VALUE, 0, 0};
        assertThat(exact(2, 3, huge).all()).containsExactly(0, -1, 0, 1, 0, 0);
    }

    @Test
    void missingDirectionsAreLeftOutAndCounted() {
        assertThat(exact(3, 4, new float[12])).satisfies(zero -> {
            assertThat(zero.all()).containsOnly(0);
            assertThat(zero.kept()).containsExactly(0);
        });
        float[] row = random(9, 1);
        Factors single = exact(1, 9, row);
        double norm = Math.sqrt(
                IntStream.range(0, 9).mapToDouble(i -> (double) row[i] * row[i]).sum());
        assertThat(single.kept()).containsExactly(1);
        for (int i = 0; i < 9; i++) {
            assertThat((double) single.all()[i]).isCloseTo(row[i] / norm, within(1e-7));
        }
        assertThat(exact(9, 1, row).all()).isEqualTo(single.all());
    }

    /** Rows of the gradient of a softmax sum to zero, so one direction of the last layer is only rounding. */
    @ParameterizedTest
    @CsvSource({"10,120", "120,10", "64,700"})
    void ofDuplicatedRowsAndRowsThatSumToZeroOneDirectionIsLeftOut(int rows, int cols) {
        float[] duplicated = random(rows * cols, 2);
        float[] summing = duplicated.clone();
        boolean wide = rows <= cols;
        for (int j = 0; j < Math.max(rows, cols); j++) {
            double sum = 0;
            for (int i = 1; i < Math.min(rows, cols); i++) {
                sum += summing[wide ? i * cols + j : j * cols + i];
            }
            summing[wide ? j : j * cols] = (float) -sum;
            duplicated[wide ? j : j * cols] = duplicated[wide ? cols + j : j * cols + 1];
        }
        Factors factors = exact(rows, cols, duplicated, summing);
        int side = Math.min(rows, cols);
        assertThat(factors.kept()).containsExactly(side - 1, side - 1);
        int size = rows * cols;
        assertThat(error(Arrays.copyOf(factors.all(), size), bySvd(rows, cols, duplicated)))
                .isLessThan(MOST);
        // The SVD keeps the direction that rounding has left; its projection out of both is the same.
        double[] sums = IntStream.range(0, Math.max(rows, cols))
                .mapToDouble(j -> IntStream.range(0, side)
                        .mapToDouble(i -> factors.all()[size + (wide ? i * cols + j : j * cols + i)])
                        .sum())
                .toArray();
        assertThat(Arrays.stream(sums).map(Math::abs).max().orElse(1)).isLessThan(1e-5);
    }

    /** Of each matrix of a batch on its own: all, one, none, and what a tolerance leaves. */
    @Test
    void ranksDifferWithinABatch() {
        float[] full = random(6 * 9, 12);
        var one = new float[54];
        for (int i = 0; i < 6; i++) {
            for (int j = 0; j < 9; j++) {
                one[i * 9 + j] = (i - 2.5f) * (j + 1);
            }
        }
        var half = new float[54];
        for (int i = 0; i < 3; i++) {
            half[i * 10] = 4 >> i;
        }
        Factors factors = exact(6, 9, full, one, new float[54], half, full);
        assertThat(factors.kept()).containsExactly(6, 1, 0, 3, 6);
        List<float[]> matrices = List.of(full, one, new float[54], half, full);
        for (int k = 0; k < 5; k++) {
            float[] factor = Arrays.copyOfRange(factors.all(), 54 * k, 54 * (k + 1));
            assertThat(error(factor, bySvd(6, 9, matrices.get(k))))
                    .as("matrix %d", k)
                    .isLessThan(MOST);
        }
        try (Device device = TestDevices.open(name);
                Buffer m = device.allocate("M", ElementType.FLOAT32, 54);
                Orthogonalizer.Plan plan = new Exact(0.3).plan(device, 1, 6, 9, ElementType.FLOAT32, ScaleRule.NONE)) {
            m.copyIn(0, half);
            plan.orthogonalize(m.batch(1, 54), m.batch(1, 54));
            assertThat(plan.kept()).containsExactly(2);
        }
    }

    @Test
    void aRankOfHalfTheSideIsFound() {
        float[] matrix =
                Spectrum.of(100, 300, Spectrum.logarithmic(50, 1, 1e3), 11).floats();
        assertThat(exact(100, 300, matrix).kept()).containsExactly(50);
    }

    @Test
    void whatIsNotFiniteIsNamed() {
        float[] bad = random(20, 1);
        bad[7] = Float.NaN;
        assertThatThrownBy(() -> exact(4, 5, random(20, 2), bad))
                .isInstanceOfSatisfying(
                        DeviceException.NotFinite.class,
                        e -> assertThat(e.position().client()).isEqualTo(1));
    }

    /** A GPU notes it, does nothing from there on, and tells when it is waited for. */
    @Test
    void whatIsNotFiniteMovesNothing() {
        try (Device device = TestDevices.open(name);
                Buffer m = device.allocate("M", ElementType.FLOAT32, 40);
                Buffer w = device.allocate("W", ElementType.FLOAT32, 40);
                Orthogonalizer.Plan plan = new Exact().plan(device, 2, 4, 5, ElementType.FLOAT32, ScaleRule.NONE)) {
            w.fill(3);
            for (float bad : new float[] {Float.NaN, Float.NEGATIVE_INFINITY}) {
                m.copyIn(0, random(40, 3));
                m.copyIn(21, bad);
                assertThatThrownBy(() -> {
                            plan.step(m.batch(2, 20), 0.5, w.batch(2, 20));
                            device.synchronize();
                        })
                        .isInstanceOf(DeviceException.NotFinite.class);
                assertThat(w.toFloats(0, 40)).containsOnly(3);
            }
            m.copyIn(0, random(40, 3));
            plan.step(m.batch(2, 20), 0.5, w.batch(2, 20));
            assertThat(plan.kept()).containsExactly(4, 4);
            float[] factors = exact(4, 5, Arrays.copyOf(random(40, 3), 20)).all();
            for (int i = 0; i < 20; i++) {
                assertThat(w.toFloats(i, 1)[0]).isCloseTo(3 - 0.5f * factors[i], within(1e-6f));
            }
        }
    }

    @Test
    void ofDoublesItIsTheSvd() {
        assumeTrue(name.startsWith("cpu"), "doubles are for reference work");
        try (Device device = TestDevices.open(name);
                Orthogonalizer.Plan plan = new Exact().plan(device, 1, 4, 5, ElementType.FLOAT64, ScaleRule.NONE)) {
            assertThat(plan.path()).isEqualTo("gesdd, because matrices are of doubles");
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {-1, 1, Double.NaN})
    void aToleranceIsAtLeastZeroAndLessThanOne(double tolerance) {
        assertThatThrownBy(() -> new Exact(tolerance)).isInstanceOf(IllegalArgumentException.class);
    }
}
