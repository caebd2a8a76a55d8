package org.fedcomuon.problem.testbed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;

class RateTestbedTest {
    private static final int N = RateTestbed.ROWS * RateTestbed.COLS;
    private static final int D = RateTestbed.DIMENSION;
    private static final RateTestbed PROBLEM = new RateTestbed(3, 5);

    /** g and its Jacobian at one point. */
    private static final class Inner {
        final float[] value = new float[D];
        final float[][] gradients = new float[D][N];

        static Inner at(int k, Sample xi, float[] w) throws Exception {
            var inner = new Inner();
            List<Point> components = new ArrayList<>();
            for (float[] gradient : inner.gradients) {
                components.add(new Point(PROBLEM.layout(), Floats.of(gradient)));
            }
            PROBLEM.client(k)
                    .inner(
                            xi,
                            new Point(PROBLEM.layout(), Floats.of(w)),
                            Floats.of(inner.value),
                            new Jacobian(components));
            return inner;
        }
    }

    private static float[] normal(long seed) {
        var random = new SplittableRandom(seed);
        var w = new float[N];
        for (int e = 0; e < N; e++) {
            w[e] = (float) random.nextGaussian();
        }
        return w;
    }

    private static double[] wide(float[] values) {
        var result = new double[values.length];
        for (int e = 0; e < result.length; e++) {
            result[e] = values[e];
        }
        return result;
    }

    private static Sample xi(int k, long draw) {
        return new Sample(9, k, Sample.Stream.INNER, draw);
    }

    /** grad g grad f(g) without the noise of f: far away f has the slope 1 and the noise. */
    private static double[] composed(int k, Inner at) throws Exception {
        var zeta = new Sample(9, k, Sample.Stream.OUTER, 0);
        var far = new float[D];
        Arrays.fill(far, 1e18f);
        var noisy = new float[D];
        var noise = new float[D];
        PROBLEM.client(k).outerGradient(zeta, Floats.of(at.value.clone()), Floats.of(noisy));
        PROBLEM.client(k).outerGradient(zeta, Floats.of(far), Floats.of(noise));
        var sum = new double[N];
        for (int i = 0; i < D; i++) {
            for (int e = 0; e < N; e++) {
                sum[e] += ((double) noisy[i] - noise[i] + 1) * at.gradients[i][e];
            }
        }
        return sum;
    }

    @Test
    void isTheOneOfTheRates() {
        assertThat(PROBLEM.layout().blocks()).containsExactly(Block.matrix("W", 4, 3));
        assertThat(PROBLEM.innerDimension()).isEqualTo(5);
        assertThat(PROBLEM.clients()).isEqualTo(3);
        assertThatThrownBy(() -> new RateTestbed(0, 1)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void jacobianIsThatOfTheValue() throws Exception {
        float h = 1f / 64;
        float[] w = normal(1);
        for (int k = 0; k < 3; k++) {
            Inner inner = Inner.at(k, xi(k, 4), w);
            for (int e = 0; e < N; e++) {
                float[] up = w.clone();
                float[] down = w.clone();
                up[e] += h;
                down[e] -= h;
                Inner above = Inner.at(k, xi(k, 4), up);
                Inner below = Inner.at(k, xi(k, 4), down);
                for (int i = 0; i < D; i++) {
                    double slope = ((double) above.value[i] - below.value[i]) / ((double) up[e] - down[e]);
                    assertThat((double) inner.gradients[i][e]).isCloseTo(slope, within(2e-4));
                }
            }
        }
    }

    @Test
    void hessianProductIsTheSlopeOfTheGradientOfASample() throws Exception {
        float h = 1f / 256;
        float[] w = normal(1);
        float[] direction = normal(2);
        float[] up = w.clone();
        float[] down = w.clone();
        for (int e = 0; e < N; e++) {
            up[e] += h * direction[e];
            down[e] -= h * direction[e];
        }
        var product = new float[N];
        ((HessianProduct) PROBLEM.client(1))
                .hessianProduct(
                        xi(1, 6),
                        new Point(PROBLEM.layout(), Floats.of(w)),
                        new Point(PROBLEM.layout(), Floats.of(direction)),
                        new Point(PROBLEM.layout(), Floats.of(product)));
        Inner above = Inner.at(1, xi(1, 6), up);
        Inner below = Inner.at(1, xi(1, 6), down);
        double[] aboveGradient = composed(1, above);
        double[] belowGradient = composed(1, below);
        double size = 0;
        for (int e = 0; e < N; e++) {
            double slope = (aboveGradient[e] - belowGradient[e]) / (2 * h);
            assertThat((double) product[e]).isCloseTo(slope, within(2e-4));
            size = Math.max(size, Math.abs(product[e]));
        }
        assertThat(size).isGreaterThan(1e-3);
    }

    @Test
    void gradientIsThatOfTheObjective() {
        double h = 1e-5;
        for (long seed = 0; seed < 5; seed++) {
            double[] w = wide(normal(seed));
            double[] gradient = PROBLEM.gradient(w);
            for (int e = 0; e < N; e++) {
                double[] up = w.clone();
                double[] down = w.clone();
                up[e] += h;
                down[e] -= h;
                double slope = (PROBLEM.objective(up) - PROBLEM.objective(down)) / (2 * h);
                assertThat(gradient[e]).isCloseTo(slope, within(1e-8));
            }
        }
    }

    /** Averages of the oracles, composed, are the gradient: so nothing in them is biased. */
    @Test
    void oraclesAreUnbiased() throws Exception {
        int samples = 20_000;
        float[] w = normal(3);
        var composed = new double[N];
        for (int k = 0; k < 3; k++) {
            var value = new double[D];
            var gradients = new double[D][N];
            var squares = new double[D];
            for (int s = 0; s < samples; s++) {
                Inner inner = Inner.at(k, xi(k, s), w);
                for (int i = 0; i < D; i++) {
                    value[i] += (double) inner.value[i] / samples;
                    squares[i] += (double) inner.value[i] * inner.value[i] / samples;
                    for (int e = 0; e < N; e++) {
                        gradients[i][e] += (double) inner.gradients[i][e] / samples;
                    }
                }
            }
            var y = new float[D];
            for (int i = 0; i < D; i++) {
                y[i] = (float) value[i];
                // s = 0.5, and up to 0.3 for each of the two other sources
                assertThat(squares[i] - value[i] * value[i]).isBetween(0.24, 0.45);
            }
            var outer = new double[D];
            var once = new float[D];
            double noise = 0;
            for (int s = 0; s < samples; s++) {
                var zeta = new Sample(9, k, Sample.Stream.OUTER, s);
                PROBLEM.client(k).outerGradient(zeta, Floats.of(y), Floats.of(once));
                noise += (double) once[0] * once[0] / samples;
                for (int i = 0; i < D; i++) {
                    outer[i] += (double) once[i] / samples;
                }
            }
            assertThat(noise - outer[0] * outer[0]).isCloseTo(0.09, within(0.01));
            for (int i = 0; i < D; i++) {
                for (int e = 0; e < N; e++) {
                    composed[e] += outer[i] * gradients[i][e] / 3;
                }
            }
        }
        double[] gradient = PROBLEM.gradient(wide(w));
        double error = 0;
        double size = 0;
        for (int e = 0; e < N; e++) {
            error += (gradient[e] - composed[e]) * (gradient[e] - composed[e]);
            size += gradient[e] * gradient[e];
        }
        assertThat(Math.sqrt(error)).isLessThan(0.01);
        assertThat(Math.sqrt(size)).isGreaterThan(0.2);
    }

    @Test
    void clientsDifferAndSeedsTell() throws Exception {
        float[] w = normal(1);
        assertThat(Inner.at(0, xi(0, 0), w).value).isNotEqualTo(Inner.at(1, xi(0, 0), w).value);
        assertThat(Inner.at(0, xi(0, 0), w).value).isEqualTo(Inner.at(0, xi(0, 0), w).value);
        assertThat(new RateTestbed(3, 5).gradient(wide(w))).isEqualTo(PROBLEM.gradient(wide(w)));
        assertThat(new RateTestbed(3, 6).gradient(wide(w))).isNotEqualTo(PROBLEM.gradient(wide(w)));
    }
}
