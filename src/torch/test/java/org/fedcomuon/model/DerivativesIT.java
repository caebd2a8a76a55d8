package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.lang.foreign.Arena;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Derivatives of every network against finite differences in double precision, and what is used against those. */
class DerivativesIT {
    /** Large, so that the second derivatives count. */
    private static final double RATE = 0.4;

    private final Sample xi = TinyModels.sample(7);

    private static int[] batch(Sample xi) {
        return new int[] {0, 2, 3};
    }

    private static int[] other(Sample xi) {
        return new int[] {1, 4, 5};
    }

    /** The loss that {@link NetworkLoss} has. */
    private DoublePrecision plain(TinyModels model) {
        Examples examples = DoublePrecision.of(model.examples(6));
        return new DoublePrecision(
                model.network.layout(),
                at -> CrossEntropy.mean(model.network, at, examples.select(batch(xi)), Dropout.of(xi)));
    }

    /** The loss that {@link AdaptedLoss} has. */
    private DoublePrecision adapted(TinyModels model, Adaptation adaptation) {
        Examples examples = DoublePrecision.of(model.examples(6));
        return new DoublePrecision(model.network.layout(), at -> {
            // A gradient is part of the value; so even for the value, derivatives are asked for.
            return adaptation.loss(
                    model.network,
                    at.requireGradient(),
                    new MetaLearning.Episode(examples.select(batch(xi)), examples.select(other(xi))),
                    Dropout.of(xi));
        });
    }

    @ParameterizedTest
    @EnumSource
    void gradientsAreThoseOfTheLoss(TinyModels model) {
        double[] w = DoublePrecision.widened(model.weights());
        DoublePrecision loss = plain(model);
        assertThat(loss.blocksWithWrong(loss.gradient(w), w)).isEmpty();
    }

    @ParameterizedTest
    @EnumSource
    void whatIsTrainedWithIsThatGradientInSinglePrecision(TinyModels model) {
        double[] w = DoublePrecision.widened(model.weights());
        var single = new NetworkLoss(model.network, model.examples(6), DerivativesIT::batch);
        try (Arena arena = Arena.ofShared()) {
            Point gradient = model.point(arena);
            gradient.values().fill(77); // whatever was there is overwritten
            double value = single.evaluate(xi, model.start(arena), gradient);
            assertThat(value).isCloseTo(plain(model).value(w), within(1e-5));
            assertThat(DoublePrecision.distance(
                            DoublePrecision.widened(gradient.values().toArray()),
                            plain(model).gradient(w)))
                    .isLessThan(1e-4);
        }
    }

    @ParameterizedTest
    @EnumSource
    void hessianProductsAreDifferencesOfGradients(TinyModels model) {
        double[] w = DoublePrecision.widened(model.weights());
        double[] along = DoublePrecision.direction(model.network.layout(), 4);
        var single = new NetworkLoss(model.network, model.examples(6), DerivativesIT::batch);
        try (Arena arena = Arena.ofShared()) {
            Point direction = model.point(arena);
            direction.values().set(DoublePrecision.narrowed(along));
            Point product = model.point(arena);
            single.hessianProduct(xi, model.start(arena), direction, product);
            assertThat(DoublePrecision.distance(
                            DoublePrecision.widened(product.values().toArray()),
                            plain(model).curve(w, along)))
                    .isLessThan(1e-4);
        }
    }

    @ParameterizedTest
    @EnumSource
    void metaGradientsAreThoseOfTheAdaptedLoss(TinyModels model) {
        double[] w = DoublePrecision.widened(model.weights());
        DoublePrecision g = adapted(model, Adaptation.exact(RATE));
        double[] gradient = g.gradient(w);
        assertThat(g.blocksWithWrong(gradient, w)).isEmpty();

        var single = new AdaptedLoss(
                model.network, model.examples(6), DerivativesIT::batch, DerivativesIT::other, Adaptation.exact(RATE));
        try (Arena arena = Arena.ofShared()) {
            Point into = model.point(arena);
            into.values().fill(77);
            assertThat(single.evaluate(xi, model.start(arena), into)).isCloseTo(g.value(w), within(1e-5));
            assertThat(DoublePrecision.distance(
                            DoublePrecision.widened(into.values().toArray()), gradient))
                    .isLessThan(1e-4);
        }
    }

    /** {@code grad g = (I - a hess l(W; S)) grad l(W~; Q)}, put together from its parts. */
    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"LANGUAGE", "TOKENS"}) // their masks differ between S and Q
    void metaGradientsAreWhatThePaperSays(TinyModels model) {
        double[] w = DoublePrecision.widened(model.weights());
        Examples examples = DoublePrecision.of(model.examples(6));
        var support = loss(model.network, examples.select(0, 2, 3));
        var query = loss(model.network, examples.select(1, 4, 5));
        double[] atQuery = query.gradient(DoublePrecision.moved(w, -RATE, support.gradient(w)));
        double[] expected = DoublePrecision.moved(atQuery, -RATE, support.curve(w, atQuery));
        assertThat(DoublePrecision.distance(expected, atQuery)).isGreaterThan(0.01); // the Hessian counts

        assertThat(DoublePrecision.distance(
                        adapted(model, Adaptation.exact(RATE)).gradient(w), expected))
                .isLessThan(1e-6);
        assertThat(DoublePrecision.distance(
                        adapted(model, new Adaptation(RATE, true)).gradient(w), atQuery))
                .isLessThan(1e-12);
    }

    private static DoublePrecision loss(Network network, Examples batch) {
        return new DoublePrecision(network.layout(), at -> CrossEntropy.mean(network, at, batch, Dropout.none()));
    }
}
