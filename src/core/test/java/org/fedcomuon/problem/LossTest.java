package org.fedcomuon.problem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Losses as compositional problems with d = 1. */
class LossTest {
    private static final Layout LAYOUT = Layout.of(Block.matrix("w", 1, 2), Block.vector("b", 1));
    private static final Sample SAMPLE = new Sample(1, 0, Sample.Stream.INNER, 0);

    /** {@code w0^2 + 3 w1 - w2}. */
    private static final Loss LOSS = (xi, w, gradient) -> {
        Floats x = w.values();
        gradient.values().set(2f * x.get(0), 3f, -1f);
        return (double) x.get(0) * x.get(0) + 3.0 * x.get(1) - x.get(2);
    };

    /** One with a Hessian, which is 2 in its first element. */
    private static final class Twice implements Loss, HessianProduct {
        @Override
        public double evaluate(Sample xi, Point w, Point gradient) throws Exception {
            return LOSS.evaluate(xi, w, gradient);
        }

        @Override
        public void hessianProduct(Sample xi, Point w, Point direction, Point product) {
            product.values().set(2 * direction.values().get(0), 0f, 0f);
        }
    }

    private static Point point(float... values) {
        return new Point(LAYOUT, Floats.of(values));
    }

    @Test
    void exponentialIsTheExponentialWithItsGradient() throws Exception {
        double lambda = 2;
        Loss exponential = LOSS.exponential(lambda);
        Point gradient = point(9, 9, 9);
        Point w = point(0.5f, 0.25f, -1);
        double expected = Math.exp((0.25 + 0.75 + 1) / lambda);
        assertThat(exponential.evaluate(SAMPLE, w, gradient)).isCloseTo(expected, within(1e-6));
        assertThat(gradient.values().toArray())
                .containsExactly(
                        new float[] {(float) (expected / 2), (float) (3 * expected / 2), (float) (-expected / 2)},
                        within(1e-5f));
        double h = 1e-3;
        for (int i = 0; i < 3; i++) {
            float[] up = w.values().toArray();
            float[] down = w.values().toArray();
            up[i] += (float) h;
            down[i] -= (float) h;
            double slope = (exponential.evaluate(SAMPLE, point(up), point(0, 0, 0))
                            - exponential.evaluate(SAMPLE, point(down), point(0, 0, 0)))
                    / (up[i] - (double) down[i]);
            assertThat((double) gradient.values().get(i)).isCloseTo(slope, within(1e-4));
        }
    }

    @Test
    void exponentialOfALossThatIsFarTooLargeIsFinite() throws Exception {
        Point gradient = point(0, 0, 0);
        assertThat(LOSS.exponential(0.1).evaluate(SAMPLE, point(1e4f, 0, 0), gradient))
                .isFinite();
        for (float slope : gradient.values().toArray()) {
            assertThat(slope).isFinite();
        }
    }

    @Test
    void lossesUnderARiskAreAProblem() throws Exception {
        Problem problem = Problem.ofLosses(LAYOUT, List.of(LOSS, new Twice()), new ExponentialRisk(0.5));
        assertThat(problem.clients()).isEqualTo(2);
        assertThat(problem.innerDimension()).isEqualTo(1);
        assertThat(problem.layout()).isEqualTo(LAYOUT);
        for (int k = 0; k < 2; k++) {
            Client client = problem.client(k);
            Floats value = Floats.of(0);
            Point gradient = point(0, 0, 0);
            client.inner(SAMPLE, point(2, 1, 1), value, new Jacobian(List.of(gradient)));
            assertThat(value.get(0)).isEqualTo(6);
            assertThat(gradient.values().toArray()).containsExactly(4, 3, -1);
            Floats outer = Floats.of(0);
            client.outerGradient(SAMPLE, Floats.of(0.5f), outer);
            assertThat(outer.get(0)).isEqualTo((float) (Math.E / 0.5));
        }
        assertThat(problem.client(0)).isNotInstanceOf(HessianProduct.class);
        Point product = point(0, 0, 0);
        ((HessianProduct) problem.client(1)).hessianProduct(SAMPLE, point(1, 1, 1), point(4, 5, 6), product);
        assertThat(product.values().toArray()).containsExactly(8, 0, 0);
    }

    /** What a client that does not share work does at two points. */
    @Test
    void twoPointsSeeOneSample() throws Exception {
        Loss noisy = (xi, w, gradient) -> {
            gradient.values().fill(0);
            return w.values().get(0) + xi.random().nextGaussian();
        };
        Client client = Problem.ofLosses(LAYOUT, List.of(noisy), Risk.mean()).client(0);
        Floats value = Floats.of(0);
        Floats valueOld = Floats.of(0);
        client.innerAtTwo(
                SAMPLE,
                point(5, 0, 0),
                value,
                new Jacobian(List.of(point(0, 0, 0))),
                point(3, 0, 0),
                valueOld,
                new Jacobian(List.of(point(0, 0, 0))));
        assertThat(value.get(0) - valueOld.get(0)).isCloseTo(2, within(1e-5f));
    }

    private static Client nobody(int k) {
        throw new AssertionError(k);
    }

    @Test
    void aProblemHasClientsAndADimension() {
        assertThatThrownBy(() -> Problem.of(LAYOUT, 0, 2, LossTest::nobody))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> Problem.of(LAYOUT, 1, 0, LossTest::nobody))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> Problem.ofLosses(LAYOUT, List.of(), Risk.mean()))
                .isInstanceOf(IllegalArgumentException.class);
    }
}
