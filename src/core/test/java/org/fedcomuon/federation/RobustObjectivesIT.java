package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.List;
import java.util.function.DoubleUnaryOperator;
import java.util.stream.IntStream;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.FedDro;
import org.fedcomuon.method.FgdroCvar;
import org.fedcomuon.method.FgdroKl;
import org.fedcomuon.method.LocalMoml;
import org.fedcomuon.method.LocalScgdm;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Methods with objectives of their own find the minima of these, which a search in one variable knows. */
class RobustObjectivesIT {
    private static final Layout ONE = Layout.of(Block.vector("w", 1));
    private static final double[] STEEPNESS = {1, 0.5, 2, 1};
    private static final double[] CENTRE = {-1, 0.5, 1, 5};

    private static double loss(int k, double w) {
        return STEEPNESS[k] / 2 * (w - CENTRE[k]) * (w - CENTRE[k]);
    }

    /** {@code c/2 (w - a)^2}. */
    private record Parabola(int k) implements Loss, HessianProduct {
        @Override
        public double evaluate(Sample xi, Point w, Point gradient) {
            double at = w.values().get(0);
            gradient.values().set(0, STEEPNESS[k] * (at - CENTRE[k]));
            return loss(k, at);
        }

        @Override
        public void hessianProduct(Sample xi, Point w, Point direction, Point product) {
            product.values().set(0, STEEPNESS[k] * direction.values().get(0));
        }
    }

    private static final Problem PARABOLAS = Problem.ofLosses(
            ONE, IntStream.range(0, CENTRE.length).mapToObj(Parabola::new).toList(), Risk.mean());

    private static double[] losses(double w) {
        return IntStream.range(0, CENTRE.length).mapToDouble(k -> loss(k, w)).toArray();
    }

    /** By trisection: all objectives here are convex. */
    private static double minimum(DoubleUnaryOperator objective) {
        double low = -10;
        double high = 10;
        for (int i = 0; i < 200; i++) {
            double left = low + (high - low) / 3;
            double right = high - (high - low) / 3;
            if (objective.applyAsDouble(left) < objective.applyAsDouble(right)) {
                high = right;
            } else {
                low = left;
            }
        }
        return low;
    }

    private static double end(Problem problem, Method method, int tau) throws Exception {
        Result result = Federation.of(problem, method)
                .iterations(20_000)
                .tau(tau)
                .workers(1)
                .threads(1)
                .build()
                .run();
        return result.weights().values().get(0);
    }

    private static Schedule fading(double rate) {
        return Schedule.cosine(rate, rate / 1000);
    }

    @ParameterizedTest
    @ValueSource(doubles = {0.3, 1, 10})
    void klMinimisesTheLogarithmOfTheMeanOfExponentials(double lambda) throws Exception {
        double expected = minimum(w -> lambda
                * Math.log(Arrays.stream(losses(w))
                        .map(l -> Math.exp(l / lambda))
                        .average()
                        .orElseThrow()));
        double mean = minimum(w -> Arrays.stream(losses(w)).average().orElseThrow());
        assertThat(end(PARABOLAS, new FgdroKl(fading(0.01), Schedule.constant(0.5), lambda), 4))
                .isCloseTo(expected, within(2e-3));
        assertThat(Math.abs(expected - mean)).isGreaterThan(0.05); // or the test would accept FedAvg
    }

    @Test
    void aSmallLambdaIsTheWorstClient() throws Exception {
        double worst = minimum(w -> Arrays.stream(losses(w)).max().orElseThrow());
        assertThat(end(PARABOLAS, new FgdroKl(fading(0.002), Schedule.constant(0.9), 0.02), 1))
                .isCloseTo(worst, within(2e-2));
    }

    @ParameterizedTest
    @ValueSource(doubles = {0, 0.05})
    void cvarMinimisesTheMeanOfTheLargestLosses(double smoothing) throws Exception {
        DoubleUnaryOperator largestTwo = w -> {
            double[] sorted = losses(w);
            Arrays.sort(sorted);
            return (sorted[2] + sorted[3]) / 2;
        };
        double expected = minimum(largestTwo);
        var method = new FgdroCvar(fading(0.01), fading(0.01), Schedule.constant(0.9), 0.5, smoothing);
        double end = end(PARABOLAS, method, 4);
        // The smoothed objective is above by up to 2 log 2 times the smoothing.
        assertThat(largestTwo.applyAsDouble(end) - largestTwo.applyAsDouble(expected))
                .isBetween(0.0, 0.01 + 1.4 * smoothing);
        double mean = minimum(w -> Arrays.stream(losses(w)).average().orElseThrow());
        assertThat(largestTwo.applyAsDouble(mean) - largestTwo.applyAsDouble(expected))
                .isGreaterThan(0.15);
    }

    @Test
    void levelZeroIsTheMean() throws Exception {
        double mean = minimum(w -> Arrays.stream(losses(w)).average().orElseThrow());
        // Everybody is above a threshold that only falls: the step of FedAvg.
        var method = new FgdroCvar(fading(0.01), Schedule.constant(1), Schedule.constant(0.9), 0, 0);
        assertThat(end(PARABOLAS, method, 1)).isCloseTo(mean, within(1e-2));
        assertThat(end(PARABOLAS, new FedAvg(fading(0.01)), 1)).isCloseTo(mean, within(1e-3));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void momlMinimisesTheLossAfterAdaptation(boolean firstOrder) throws Exception {
        double a = 0.3;
        // l(w - a l'(w)) is (1 - a c)^2 l(w); without the Hessian its gradient lacks a factor of 1 - a c.
        int power = firstOrder ? 1 : 2;
        double expected = minimum(w -> IntStream.range(0, CENTRE.length)
                .mapToDouble(k -> Math.pow(1 - a * STEEPNESS[k], power) * loss(k, w))
                .sum());
        double mean = minimum(w -> Arrays.stream(losses(w)).average().orElseThrow());
        var method = new LocalMoml(a, fading(0.01), Schedule.constant(0.5), firstOrder);
        assertThat(end(PARABOLAS, method, 1)).isCloseTo(expected, within(1e-3));
        assertThat(Math.abs(expected - mean)).isGreaterThan(0.05);
    }

    /** Mean and square of a return: {@code f = -y1 + c (y2 - y1^2)}, d = 2. */
    private record Portfolio(double mean, double square) implements Client {
        private static final double C = 0.5;

        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
            double at = w.values().get(0);
            value.set(0, mean * at);
            value.set(1, square * at * at);
            jacobian.component(0).values().set(0, mean);
            jacobian.component(1).values().set(0, 2 * square * at);
        }

        @Override
        public void outerGradient(Sample zeta, Floats y, Floats gradient) {
            gradient.set(0, -1 - 2 * C * y.get(0));
            gradient.set(1, C);
        }
    }

    /** The variance of all returns together is not the mean of the clients' variances. */
    @Test
    void feddroMinimisesTheRiskOfTheMeansAndOthersTheMeanOfTheRisks() throws Exception {
        var clients = List.of(new Portfolio(1, 2), new Portfolio(0.2, 0.5), new Portfolio(0.6, 1));
        var problem = Problem.of(ONE, 2, clients.size(), clients::get);
        double mean = 1.8 / 3;
        double square = 3.5 / 3;
        double pooled = mean / (square - mean * mean); // c = 1/2
        double each = mean / ((1 + 0.46 + 0.64) / 3);
        assertThat(end(problem, new FedDro(fading(0.01), Schedule.constant(0.5)), 1))
                .isCloseTo(pooled, within(1e-3));
        assertThat(end(problem, new LocalScgdm(fading(0.01), Schedule.constant(0.5), Schedule.constant(0.5), false), 1))
                .isCloseTo(each, within(1e-3));
        // Samples without noise have no bias, so that a single-level method finds the same; the mean of the components
        // of g
        // is least near 0.
        assertThat(end(problem, new FedAvg(fading(0.01)), 1)).isCloseTo(each, within(1e-3));
        assertThat(Math.abs(pooled - each)).isGreaterThan(0.02);
    }

    /** The inner values are sent in every step, W once a round. */
    @Test
    void feddroSendsInnerValuesInEveryStep() throws Exception {
        var clients = List.of(new Portfolio(1, 2), new Portfolio(0.2, 0.5));
        var problem = Problem.of(ONE, 2, clients.size(), clients::get);
        Result result = Federation.of(problem, new FedDro(Schedule.constant(0.01), Schedule.constant(0.5)))
                .iterations(8)
                .tau(4)
                .build()
                .run();
        assertThat(result.roundTrips()).isEqualTo(1 + 8 + 2);
        assertThat(result.communicatedBytes()).isEqualTo(2 * 2 * 4 * ((1 + 8) * 2 + 2));
    }
}
