package org.fedcomuon.problem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** Thresholds over losses that are known: four numbers, and quadratic functions. */
class ThresholdProblemTest {
    private static final double[] LOSSES = {0.3, 1.7, 0.9, 2.6, 2.2};
    private static final Layout ONE = Layout.of(Block.vector("w", 1));

    /** Losses that do not depend on w. */
    private static Problem constants() {
        List<Loss> all = Arrays.stream(LOSSES)
                .<Loss>mapToObj(loss -> (xi, w, gradient) -> {
                    gradient.values().set(0, 0);
                    return loss;
                })
                .toList();
        return Problem.ofLosses(ONE, all, Risk.mean());
    }

    /** Returns the mean over clients of f(l_k, t), as the problem's oracles say it. */
    private static double mean(ThresholdProblem problem, double t) {
        double sum = 0;
        Point w = point(problem, 0, t);
        Floats y = Floats.zeros(2);
        var jacobian = new Jacobian(List.of(point(problem, 7, 7), point(problem, 7, 7)));
        for (int k = 0; k < problem.clients(); k++) {
            Client client = problem.client(k);
            var xi = new Sample(1, k, Sample.Stream.INNER, 0);
            try {
                client.inner(xi, w, y, jacobian);
                sum += client.outerValue(xi, y).orElseThrow();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
            assertThat(jacobian.component(0).values().toArray()).containsExactly(0, 0);
            assertThat(jacobian.component(1).values().toArray()).containsExactly(0, 1);
        }
        return sum / problem.clients();
    }

    private static Point point(Problem problem, double w, double t) {
        return new Point(problem.layout(), Floats.of(new float[] {(float) w, (float) t}));
    }

    /** The least value over t, by a search: the mean is convex in it. */
    private static double least(OuterFunction f) {
        var problem = new ThresholdProblem(constants(), f, 1);
        double from = -5;
        double to = 5;
        for (int i = 0; i < 60; i++) {
            double third = (to - from) / 3;
            if (mean(problem, from + third) < mean(problem, to - third)) {
                to -= third;
            } else {
                from += third;
            }
        }
        return mean(problem, (from + to) / 2);
    }

    @Test
    void theMinimumOfTheKlDualIsTheLogarithmOfTheMeanExponential() {
        for (double lambda : new double[] {0.2, 0.5, 3}) {
            double expected = lambda
                    * Math.log(Arrays.stream(LOSSES)
                            .map(loss -> Math.exp(loss / lambda))
                            .average()
                            .orElseThrow());
            assertThat(least(OuterFunction.klDual(lambda, 60))).isCloseTo(expected, within(1e-5));
        }
    }

    @Test
    void theMinimumOfTheCvarDualIsTheMeanOfTheLargestLosses() {
        double smoothing = 1e-3; // by at most smoothing log 2 / (1 - level) too large
        assertThat(least(OuterFunction.cvarDual(0.6, smoothing))).isCloseTo((2.6 + 2.2) / 2, within(2e-3));
        assertThat(least(OuterFunction.cvarDual(0.8, smoothing))).isCloseTo(2.6, within(4e-3));
        assertThat(least(OuterFunction.cvarDual(0.7, smoothing)))
                .isCloseTo((2.6 + 0.5 * 2.2) / 1.5, within(3e-3)); // one counts in part
    }

    private static Problem quadratics() {
        return new MatrixQuadratics(3, 4, 5, 1, 0.2, Risk.mean(), 3);
    }

    @Test
    void derivativesAreThoseOfTheValues() {
        for (OuterFunction f : List.of(OuterFunction.klDual(2, 60), OuterFunction.cvarDual(0.5, 0.5))) {
            assertThat(GradientCheck.of(new ThresholdProblem(quadratics(), f, 2))
                            .mistake())
                    .isEmpty();
        }
    }

    /** Hessian times direction against a difference of gradients of f(g(w)), which are checked above. */
    @Test
    void secondDerivativesAreThoseOfTheComposition() throws Exception {
        var random = new SplittableRandom(5);
        for (OuterFunction f : List.of(OuterFunction.klDual(40, 60), OuterFunction.cvarDual(0.5, 20))) {
            var problem = new ThresholdProblem(quadratics(), f, 2);
            int n = (int) problem.layout().length();
            float[] w = floats(random, n);
            float[] v = floats(random, n);
            var xi = new Sample(1, 0, Sample.Stream.INNER, 0);
            Client client = problem.client(0);
            var product = new Point(problem.layout(), Floats.of(floats(random, n)));
            ((HessianProduct) client).hessianProduct(xi, at(problem, w, v, 0), at(problem, v, v, 0), product);
            double h = 1e-2;
            double[] ahead = gradient(client, f, xi, at(problem, w, v, h));
            double[] behind = gradient(client, f, xi, at(problem, w, v, -h));
            double size = 0;
            for (int i = 0; i < n; i++) {
                size = Math.max(size, Math.abs(product.values().get(i)));
            }
            assertThat(size).isGreaterThan(0.01);
            for (int i = 0; i < n; i++) {
                double expected = (ahead[i] - behind[i]) / (2 * h);
                assertThat(product.values().get(i))
                        .as("element %d of %s", i, f)
                        .isCloseTo((float) expected, within((float) (3e-3 * size)));
            }
        }
    }

    private static float[] floats(SplittableRandom random, int n) {
        var values = new float[n];
        for (int i = 0; i < n; i++) {
            values[i] = (float) random.nextGaussian();
        }
        return values;
    }

    private static Point at(Problem problem, float[] w, float[] v, double h) {
        var values = new float[w.length];
        for (int i = 0; i < w.length; i++) {
            values[i] = (float) (w[i] + h * v[i]);
        }
        return new Point(problem.layout(), Floats.of(values));
    }

    private static double[] gradient(Client client, OuterFunction f, Sample xi, Point w) throws Exception {
        Floats y = Floats.zeros(2);
        var first = new Point(w.layout(), Floats.zeros(w.values().length()));
        var second = new Point(w.layout(), Floats.zeros(w.values().length()));
        client.inner(xi, w, y, new Jacobian(List.of(first, second)));
        var slope = new double[2];
        f.gradient(new double[] {y.get(0), y.get(1)}, slope);
        var gradient = new double[(int) w.values().length()];
        Arrays.setAll(
                gradient,
                i -> slope[0] * first.values().get(i)
                        + slope[1] * second.values().get(i));
        return gradient;
    }

    @Test
    void itHasTheLossesAndOneMoreBlock() {
        Problem losses = new Problem() {
            private final Problem all = constants();

            @Override
            public Layout layout() {
                return all.layout();
            }

            @Override
            public int innerDimension() {
                return 1;
            }

            @Override
            public int clients() {
                return all.clients();
            }

            @Override
            public Client client(int k) {
                return all.client(k);
            }

            @Override
            public double cost(int k) {
                return k + 1;
            }

            @Override
            public List<String> mistakes(int k) {
                return List.of("mistake " + k);
            }

            @Override
            public Optional<Floats> initial(long seed) {
                return Optional.of(Floats.of(new float[] {seed}));
            }
        };
        var problem = new ThresholdProblem(losses, OuterFunction.klDual(1, 60), 2.5);
        assertThat(problem.layout().blocks())
                .containsExactly(Block.vector("w", 1), Block.vector(ThresholdProblem.BLOCK, 1));
        assertThat(problem.initial(4).orElseThrow().toArray()).containsExactly(4, 2.5f);
        assertThat(problem.cost(2)).isEqualTo(3);
        assertThat(problem.mistakes(3)).containsExactly("mistake 3");
        assertThat(problem.clients()).isEqualTo(5);
        assertThat(problem.client(0)).isNotInstanceOf(HessianProduct.class);
        assertThatThrownBy(() -> new ThresholdProblem(problem, OuterFunction.klDual(1, 60), 0))
                .hasMessageContaining("d = 2 and f of 2 variables");
        assertThatThrownBy(() -> new ThresholdProblem(losses, OuterFunction.areaUnderCurve(1), 0))
                .hasMessageContaining("d = 1 and f of 4 variables");
    }
}
