package org.fedcomuon.model;

import java.util.function.Function;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Sample;

/**
 * A client's cross entropy on mini-batches of its own examples, with exact first and second derivatives. Computes on
 * the CPU, or where the parameters are if libtorch has CUDA (the jars with classifier {@code linux-x86_64-gpu}).
 */
final class NetworkLoss implements Loss, HessianProduct {
    private final Network network;
    private final Examples examples;
    private final Function<Sample, int[]> batches;
    private final Views views = new Views();

    NetworkLoss(Network network, Examples examples, Function<Sample, int[]> batches) {
        this.network = network;
        this.examples = examples;
        this.batches = batches;
    }

    @Override
    public boolean acceptsMemoryOf(String device) {
        return Torch.computesOn(device);
    }

    @Override
    public double evaluate(Sample xi, Point w, Point gradient) {
        return views.evaluate(w, gradient, at -> loss(xi, at));
    }

    @Override
    public void hessianProduct(Sample xi, Point w, Point direction, Point product) {
        views.hessianProduct(w, direction, product, at -> loss(xi, at));
    }

    private Tensor loss(Sample xi, Parameters at) {
        return CrossEntropy.mean(network, at, examples.select(batches.apply(xi)), Dropout.of(xi));
    }
}
