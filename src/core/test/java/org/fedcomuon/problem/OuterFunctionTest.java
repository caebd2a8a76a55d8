package org.fedcomuon.problem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.function.DoubleUnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class OuterFunctionTest {
    private static final double[] LOSSES = {0.3, 1.2, 2.5, 0.7, 0.1, 1.9, 0.4, 3.1};

    static Stream<OuterFunction> functions() {
        return Stream.of(
                OuterFunction.areaUnderCurve(1),
                OuterFunction.areaUnderCurve(0.3),
                OuterFunction.meanVariance(0),
                OuterFunction.meanVariance(2.5),
                OuterFunction.squaredDistance(1),
                OuterFunction.squaredDistance(7),
                OuterFunction.klDual(0.5, 60),
                OuterFunction.klDual(2, 0.7),
                OuterFunction.cvarDual(0, 0.5),
                OuterFunction.cvarDual(0.9, 0.1),
                Risk.power(3),
                new ExponentialRisk(0.8, 2));
    }

    @ParameterizedTest
    @MethodSource("functions")
    void gradientsAreThoseOfTheValue(OuterFunction f) {
        var random = new SplittableRandom(1);
        int d = f.dimension();
        for (int repeat = 0; repeat < 50; repeat++) {
            double[] y = random.doubles(d, -2, 3).toArray();
            double[] before = y.clone();
            var gradient = new double[d];
            Arrays.fill(gradient, Double.NaN);
            f.gradient(y, gradient);
            assertThat(y).isEqualTo(before);
            for (int i = 0; i < d; i++) {
                double h = 1e-5;
                double slope = (f.value(with(y, i, y[i] + h)) - f.value(with(y, i, y[i] - h))) / (2 * h);
                assertThat(gradient[i])
                        .as("%s, component %d at %s", f, i, Arrays.toString(y))
                        .isCloseTo(slope, within(1e-6 * Math.max(1, Math.abs(slope))));
            }
        }
    }

    /** Against differences of values, which the product is not made from. */
    @ParameterizedTest
    @MethodSource("functions")
    void hessiansAreThoseOfTheValue(OuterFunction f) {
        var random = new SplittableRandom(2);
        int d = f.dimension();
        double h = 1e-4;
        for (int repeat = 0; repeat < 20; repeat++) {
            double[] y = random.doubles(d, -2, 3).toArray();
            double[] v = random.doubles(d, -1, 1).toArray();
            double[] ahead = y.clone();
            double[] behind = y.clone();
            for (int i = 0; i < d; i++) {
                ahead[i] += h * v[i];
                behind[i] -= h * v[i];
            }
            double curve = (f.value(ahead) - 2 * f.value(y) + f.value(behind)) / (h * h);
            var product = new double[d];
            f.hessianProduct(y, v, product);
            double found = 0;
            for (int i = 0; i < d; i++) {
                found += v[i] * product[i];
            }
            // The functions with a cap have a corner in their second derivative.
            double corner = 0.02 * Math.max(1, Math.abs(curve));
            assertThat(found).as("%s at %s", f, Arrays.toString(y)).isCloseTo(curve, within(corner));
            f.hessianProduct(y, new double[d], product);
            assertThat(product).containsOnly(0);
        }
    }

    private static double[] with(double[] y, int i, double value) {
        double[] changed = y.clone();
        changed[i] = value;
        return changed;
    }

    /** The mean over all pairs of a positive and a negative example. */
    @Test
    void areaUnderCurveIsTheMeanOverPairs() {
        double[] positive = {0.3, 1.4, -0.2};
        double[] negative = {-1, 0.5, 0.2, 0.1, 2};
        double margin = 1;
        double pairs = 0;
        for (double p : positive) {
            for (double n : negative) {
                pairs += Math.pow(margin - p + n, 2) / (positive.length * negative.length);
            }
        }
        double[] y = {
            mean(positive, h -> h), mean(negative, h -> h), mean(positive, h -> h * h), mean(negative, h -> h * h)
        };
        assertThat(OuterFunction.areaUnderCurve(margin).value(y)).isCloseTo(pairs, within(1e-12));
        assertThat(OuterFunction.areaUnderCurve(margin).dimension()).isEqualTo(4);
    }

    private static double mean(double[] values, DoubleUnaryOperator of) {
        return Arrays.stream(values).map(of).average().orElseThrow();
    }

    @Test
    void meanVarianceIsMinusTheMeanPlusTheVariance() {
        double[] returns = {0.1, -0.2, 0.4, 0.05};
        double mean = mean(returns, r -> r);
        double variance = mean(returns, r -> (r - mean) * (r - mean));
        assertThat(OuterFunction.meanVariance(3).value(new double[] {mean, mean(returns, r -> r * r)}))
                .isCloseTo(-mean + 3 * variance, within(1e-12));
    }

    @Test
    void squaredDistanceIsOfTheHalves() {
        OuterFunction f = OuterFunction.squaredDistance(3);
        assertThat(f.dimension()).isEqualTo(6);
        assertThat(f.value(new double[] {1, 2, 3, 1, 0, 6})).isEqualTo(13);
        assertThat(f.value(new double[] {1, 2, 3, 1, 2, 3})).isZero();
    }

    /** f(t) = mean_k f(l_k, t), which is convex in t, minimised by thirds. */
    private static double minimizer(OuterFunction f, double from, double to) {
        double low = from;
        double high = to;
        for (int i = 0; i < 200; i++) {
            double left = low + (high - low) / 3;
            double right = high - (high - low) / 3;
            if (mean(LOSSES, l -> f.value(new double[] {l, left}))
                    < mean(LOSSES, l -> f.value(new double[] {l, right}))) {
                high = right;
            } else {
                low = left;
            }
        }
        return (low + high) / 2;
    }

    @Test
    void klDualHasTheWorstCaseAsItsMinimum() {
        for (double lambda : new double[] {0.2, 0.8, 5}) {
            OuterFunction f = OuterFunction.klDual(lambda, 60);
            double expected = lambda * Math.log(mean(LOSSES, l -> Math.exp(l / lambda)));
            double t = minimizer(f, -10, 10);
            assertThat(t).isCloseTo(expected, within(1e-6));
            assertThat(mean(LOSSES, l -> f.value(new double[] {l, t}))).isCloseTo(expected, within(1e-9));
            assertThat(new ExponentialRisk(lambda).worstCase(LOSSES)).isCloseTo(expected, within(1e-12));
            // The weights of the clients, at the minimum, have mean one; so the derivative by t is zero.
            var gradient = new double[2];
            assertThat(mean(LOSSES, l -> {
                        f.gradient(new double[] {l, expected}, gradient);
                        return gradient[0];
                    }))
                    .isCloseTo(1, within(1e-9));
        }
    }

    @Test
    void klDualContinuesAlongItsTangent() {
        double lambda = 0.5;
        double cap = 2;
        OuterFunction f = OuterFunction.klDual(lambda, cap);
        double edge = lambda * cap;
        for (double beyond : new double[] {0, 0.1, 3, 1e6}) {
            double t = 0.7;
            double line = t + lambda * (Math.exp(cap) - 1) + Math.exp(cap) * beyond;
            assertThat(f.value(new double[] {t + edge + beyond, t})).isCloseTo(line, within(1e-9 * line));
        }
        var gradient = new double[2];
        for (double loss : new double[] {Float.MAX_VALUE, -Float.MAX_VALUE, 0}) {
            OuterFunction steep = OuterFunction.klDual(1e-6, 60);
            assertThat(steep.value(new double[] {loss, 1})).isFinite();
            steep.gradient(new double[] {loss, 1}, gradient);
            assertThat((float) gradient[0] * 1e3f).isFinite();
            assertThat((float) gradient[1] * 1e3f).isFinite();
        }
    }

    @Test
    void cvarDualHasTheMeanOfTheLargestLossesAsItsMinimum() {
        double[] sorted = LOSSES.clone();
        Arrays.sort(sorted);
        for (int tail = 1; tail <= sorted.length; tail++) {
            double level = 1 - (double) tail / sorted.length;
            OuterFunction f = OuterFunction.cvarDual(level, 1e-5);
            double t = minimizer(f, -10, 10);
            double largest = mean(Arrays.copyOfRange(sorted, sorted.length - tail, sorted.length), l -> l);
            assertThat(mean(LOSSES, l -> f.value(new double[] {l, t})))
                    .as("the %d largest", tail)
                    .isCloseTo(largest, within(1e-3));
        }
        // With a level of 0 the minimum is the mean, for every t below all losses.
        OuterFunction mean = OuterFunction.cvarDual(0, 1e-3);
        assertThat(mean(LOSSES, l -> mean.value(new double[] {l, -5}))).isCloseTo(mean(LOSSES, l -> l), within(1e-9));
    }

    @Test
    void cvarDualIsSmoothAndDoesNotOverflow() {
        OuterFunction f = OuterFunction.cvarDual(0.5, 0.2);
        assertThat(f.value(new double[] {3, 3})).isCloseTo(3 + 2 * 0.2 * Math.log(2), within(1e-12));
        assertThat(f.value(new double[] {1e30, 0})).isCloseTo(2e30, within(1e20));
        assertThat(f.value(new double[] {-1e30, 0})).isZero();
        var gradient = new double[2];
        f.gradient(new double[] {1e30, 0}, gradient);
        assertThat(gradient).containsExactly(2, -1);
        f.gradient(new double[] {-1e30, 0}, gradient);
        assertThat(gradient).containsExactly(0, 1);
    }

    @Test
    void aRiskIsAnOuterFunctionOfOneVariable() {
        Risk risk = Risk.power(2);
        assertThat(risk.dimension()).isOne();
        assertThat(risk.value(new double[] {3})).isEqualTo(4.5);
        var gradient = new double[1];
        risk.gradient(new double[] {3}, gradient);
        assertThat(gradient).containsExactly(3);
    }

    @Test
    void aClientOfALossKnowsItsValue() throws Exception {
        Problem problem = new MatrixQuadratics(2, 2, 3, 1, 0.1, Risk.power(2), 1);
        var zeta = new Sample(1, 0, Sample.Stream.OUTER, 0);
        assertThat(problem.client(0).outerValue(zeta, Floats.of(4f))).hasValue(8);
    }

    @Test
    void parametersAreChecked() {
        for (double wrong : new double[] {-1, Double.NaN, Double.POSITIVE_INFINITY}) {
            assertThatThrownBy(() -> OuterFunction.areaUnderCurve(wrong)).hasMessageContaining("margin = " + wrong);
            assertThatThrownBy(() -> OuterFunction.meanVariance(wrong)).hasMessageContaining("aversion = " + wrong);
            assertThatThrownBy(() -> OuterFunction.klDual(wrong, 1)).hasMessageContaining("lambda = " + wrong);
            assertThatThrownBy(() -> OuterFunction.klDual(1, wrong)).hasMessageContaining("exponentCap = " + wrong);
            assertThatThrownBy(() -> OuterFunction.cvarDual(wrong, 1)).hasMessageContaining("level = " + wrong);
            assertThatThrownBy(() -> OuterFunction.cvarDual(0, wrong)).hasMessageContaining("smoothing = " + wrong);
        }
        assertThatThrownBy(() -> OuterFunction.cvarDual(1, 1)).hasMessageContaining("level = 1");
        assertThatThrownBy(() -> OuterFunction.squaredDistance(0)).hasMessageContaining("half = 0");
    }
}
