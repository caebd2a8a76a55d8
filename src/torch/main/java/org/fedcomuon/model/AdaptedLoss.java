package org.fedcomuon.model;

import java.util.function.Function;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Sample;

/**
 * A client's loss after a step of adaptation; a sample is an episode: examples to adapt to, and others to evaluate on.
 */
final class AdaptedLoss implements Loss, OneByOne.Function {
    private final Network network;
    private final Examples examples;
    private final Function<Sample, int[]> support;
    private final Function<Sample, int[]> query;
    private final Adaptation adaptation;
    private final Views views = new Views();

    AdaptedLoss(
            Network network,
            Examples examples,
            Function<Sample, int[]> support,
            Function<Sample, int[]> query,
            Adaptation adaptation) {
        this.network = network;
        this.examples = examples;
        this.support = support;
        this.query = query;
        this.adaptation = adaptation;
    }

    @Override
    public double evaluate(Sample xi, Point w, Point gradient) {
        return views.evaluate(w, gradient, at -> values(at, xi));
    }

    @Override
    public Tensor values(Parameters w, Sample xi) {
        var episode = new MetaLearning.Episode(examples.select(support.apply(xi)), examples.select(query.apply(xi)));
        return adaptation.loss(network, w, episode, Dropout.of(xi));
    }
}
