package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** What the methods are compared with, compared with what it should be. */
class ReferenceTest {
    private static double[] normal(int size, long seed) {
        var random = new SplittableRandom(seed);
        return random.doubles(size).map(x -> 2 * x - 1).toArray();
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "1, 6", "6, 1", "4, 3", "3, 4", "7, 7", "20, 9"})
    void decompositionMultipliesBack(int rows, int cols) {
        double[] m = normal(rows * cols, 1);
        int side = Math.min(rows, cols);
        assertThat(ReferenceMatrix.lowRank(m, rows, cols, side)).containsExactly(m, within(1e-13));
        double[] polar = ReferenceMatrix.polar(m, rows, cols);
        // P^T M is symmetric and its trace is the sum of the singular values; P^T P or P P^T is the identity.
        boolean tall = rows >= cols;
        double[] turned = ReferenceMatrix.transpose(polar, rows, cols);
        double[] square = tall
                ? ReferenceMatrix.multiply(turned, polar, cols, rows, cols)
                : ReferenceMatrix.multiply(polar, turned, rows, cols, rows);
        double[] symmetric = tall
                ? ReferenceMatrix.multiply(turned, m, cols, rows, cols)
                : ReferenceMatrix.multiply(m, turned, rows, cols, rows);
        double trace = 0;
        for (int i = 0; i < side; i++) {
            trace += symmetric[i * side + i];
            for (int j = 0; j < side; j++) {
                assertThat(square[i * side + j]).isCloseTo(i == j ? 1 : 0, within(1e-12));
                assertThat(symmetric[i * side + j]).isCloseTo(symmetric[j * side + i], within(1e-12));
            }
        }
        double sum = 0;
        for (double s : ReferenceMatrix.svd(m, rows, cols).s) {
            sum += s;
        }
        assertThat(trace).isCloseTo(sum, within(1e-12));
    }

    @Test
    void compactDecompositionLeavesZerosOut() {
        assertThat(ReferenceMatrix.polar(new double[12], 4, 3)).containsOnly(0);
        assertThat(ReferenceMatrix.newtonSchulz(new double[12], 4, 3)).containsOnly(0);
        double[] rankOne = {3, 0, 0, 0, 0, 0};
        assertThat(ReferenceMatrix.polar(rankOne, 2, 3)).containsExactly(1, 0, 0, 0, 0, 0);
    }

    /** Singular values become what the scalar iteration makes of them. */
    @Test
    void newtonSchulzOfADiagonalMatrix() {
        double[] x = ReferenceMatrix.newtonSchulz(new double[] {3, 0, 0, 0, 4, 0}, 2, 3);
        for (int i = 0; i < 2; i++) {
            double s = i == 0 ? 0.6 : 0.8;
            for (int step = 0; step < 5; step++) {
                s = 3.4445 * s - 4.7750 * s * s * s + 2.0315 * s * s * s * s * s;
            }
            assertThat(x[i * 3 + i]).isCloseTo(s, within(1e-12));
        }
    }

    static Stream<Testbed> testbeds() {
        return Stream.of(Testbed.rates(), Testbed.blocks(), Testbed.plain(), Testbed.deficient());
    }

    @ParameterizedTest
    @MethodSource("testbeds")
    void derivativesAreThoseOfTheValues(Testbed bed) {
        double step = 1e-5;
        int k = bed.clients - 1;
        var xi = new Sample(1, k, Sample.Stream.INNER, 2);
        double[] w = bed.start();
        double[] direction = normal(bed.n, 3);
        double[] up = w.clone();
        double[] down = w.clone();
        ReferenceMethod.combine(step, direction, 1, up);
        ReferenceMethod.combine(-step, direction, 1, down);
        double[][] jacobian = bed.jacobian(k, xi, w);
        for (int i = 0; i < bed.d; i++) {
            double slope = (bed.inner(k, xi, up)[i] - bed.inner(k, xi, down)[i]) / (2 * step);
            assertThat(ReferenceMatrix.dot(jacobian[i], direction)).isCloseTo(slope, within(1e-8));
        }
        double[] product = bed.hessianProduct(k, xi, w, direction);
        double[] above = gradient(bed, k, xi, up);
        double[] below = gradient(bed, k, xi, down);
        for (int e = 0; e < bed.n; e++) {
            assertThat(product[e]).isCloseTo((above[e] - below[e]) / (2 * step), within(1e-8));
        }
        assertThat(ReferenceMatrix.norm(product)).isGreaterThan(1e-3);
    }

    /**
     * The gradient of g if d = 1, of f(g) without the noise of f otherwise: far away f has the slope 1 and the noise.
     */
    private static double[] gradient(Testbed bed, int k, Sample xi, double[] w) {
        double[][] jacobian = bed.jacobian(k, xi, w);
        if (bed.d == 1) {
            return jacobian[0];
        }
        var zeta = new Sample(1, k, Sample.Stream.OUTER, 0);
        var far = new double[bed.d];
        Arrays.fill(far, 1e18);
        double[] noisy = bed.outerGradient(k, zeta, bed.inner(k, xi, w));
        double[] noise = bed.outerGradient(k, zeta, far);
        var sum = new double[bed.n];
        for (int i = 0; i < bed.d; i++) {
            ReferenceMethod.combine(noisy[i] - (noise[i] - 1), jacobian[i], 1, sum);
        }
        return sum;
    }
}
