package org.fedcomuon.linalg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.testing.Slow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The exact factor against an SVD of the same matrix of floats in double precision, whose error is 1e-10 at a condition
 * number of 1e6.
 */
class ExactIT {
    /** The largest error of an element. */
    private static final double MOST = 2e-6;

    @SuppressWarnings("ArrayRecordComponent") // they are never compared
    private record Factors(float[] all, List<Integer> kept) {}

    private static Factors exact(int threads, int rows, int cols, float[]... matrices) {
        int size = rows * cols;
        int count = matrices.length;
        try (Device device = Devices.open("cpu:0", threads, InstructionSet.AUTO);
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

    @ParameterizedTest
    @CsvSource({
        "120,256,1e2",
        "120,256,1e4",
        "120,256,1e6",
        "256,120,1e6",
        "256,1024,1e2",
        "256,1024,1e4",
        "256,1024,1e6",
        "1024,256,1e6",
        "64,64,1e2",
        "64,64,1e4",
        "64,64,1e6",
        "120,256,3e6"
    })
    void isTheFactorOfTheVeryMatrix(int rows, int cols, double condition) {
        float[] matrix = Spectrum.of(rows, cols, Spectrum.logarithmic(Math.min(rows, cols), 1, condition), 7)
                .floats();
        Factors factors = exact(2, rows, cols, matrix);
        assertThat(factors.kept()).containsExactly(Math.min(rows, cols));
        assertThat(error(factors.all(), bySvd(rows, cols, matrix))).isLessThan(MOST);
    }

    @Slow
    @ParameterizedTest
    @CsvSource({"768,768,1e2", "768,768,1e6", "768,3072,1e4", "768,3072,1e6", "3072,768,1e6"})
    void isTheFactorOfTheVeryLargeMatrix(int rows, int cols, double condition) {
        isTheFactorOfTheVeryMatrix(rows, cols, condition);
    }

    /** Results are those of one matrix on one thread, in any company and with any number of threads. */
    @Test
    void bitsDependNeitherOnThreadsNorOnTheOthersOfABatch() {
        float[][] matrices = IntStream.range(0, 7)
                .mapToObj(k -> Spectrum.of(48, 80, Spectrum.logarithmic(48, 1, Math.pow(10, k)), k)
                        .floats())
                .toArray(float[][]::new);
        Factors one = exact(1, 48, 80, matrices);
        for (int threads : new int[] {2, 3, 8}) {
            Factors several = exact(threads, 48, 80, matrices);
            assertThat(several.all()).isEqualTo(one.all());
            assertThat(several.kept()).isEqualTo(one.kept());
        }
        for (int k = 0; k < matrices.length; k++) {
            assertThat(exact(2, 48, 80, matrices[k]).all())
                    .isEqualTo(Arrays.copyOfRange(one.all(), k * 48 * 80, (k + 1) * 48 * 80));
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {1e-38, 1e-30, 1, 1e30})
    void scaleDoesNotMatter(double scale) {
        float[] plain = random(30 * 50, 3);
        var scaled = new float[plain.length];
        for (int i = 0; i < plain.length; i++) {
            scaled[i] = (float) (plain[i] * scale);
        }
        Factors factors = exact(1, 30, 50, scaled);
        assertThat(factors.kept()).containsExactly(30);
        assertThat(error(factors.all(), bySvd(30, 50, scaled))).isLessThan(MOST);
    }

    /** The smallest and the largest floats: their squares leave the range of floats, not that of doubles. */
    @Test
    void denormalAndHugeElements() {
        float[] denormal = {Float.MIN_VALUE, 0, 0, 0, 3 * Float.MIN_VALUE, 0};
        assertThat(exact(1, 2, 3, denormal).all()).containsExactly(1, 0, 0, 0, 1, 0);
        float[] huge = {0, -Float.MAX_VALUE, 0, Float.MAX_VALUE, 0, 0};
        assertThat(exact(1, 2, 3, huge).all()).containsExactly(0, -1, 0, 1, 0, 0);
    }

    @Test
    void missingDirectionsAreLeftOutAndCounted() {
        assertThat(exact(1, 3, 4, new float[12])).satisfies(zero -> {
            assertThat(zero.all()).containsOnly(0);
            assertThat(zero.kept()).containsExactly(0);
        });
        float[] row = random(9, 1);
        Factors single = exact(1, 1, 9, row);
        double norm = Math.sqrt(
                IntStream.range(0, 9).mapToDouble(i -> (double) row[i] * row[i]).sum());
        assertThat(single.kept()).containsExactly(1);
        for (int i = 0; i < 9; i++) {
            assertThat((double) single.all()[i]).isCloseTo(row[i] / norm, org.assertj.core.api.Assertions.within(1e-7));
        }
        assertThat(exact(1, 9, 1, row).all()).isEqualTo(single.all());
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
        Factors factors = exact(2, rows, cols, duplicated, summing);
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

    @Test
    void aRankOfHalfTheSideIsFound() {
        float[] matrix =
                Spectrum.of(100, 300, Spectrum.logarithmic(50, 1, 1e3), 11).floats();
        assertThat(exact(1, 100, 300, matrix).kept()).containsExactly(50);
    }

    @Test
    void whatIsNotFiniteIsNamed() {
        float[] bad = random(20, 1);
        bad[7] = Float.NaN;
        assertThatThrownBy(() -> exact(1, 4, 5, random(20, 2), bad))
                .isInstanceOfSatisfying(
                        DeviceException.NotFinite.class,
                        e -> assertThat(e.position().client()).isEqualTo(1));
    }

    @ParameterizedTest
    @ValueSource(doubles = {-1, 1, Double.NaN})
    void aToleranceIsAtLeastZeroAndLessThanOne(double tolerance) {
        assertThatThrownBy(() -> new Exact(tolerance)).isInstanceOf(IllegalArgumentException.class);
    }
}
