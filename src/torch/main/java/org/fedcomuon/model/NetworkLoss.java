package org.fedcomuon.model;

import java.util.function.Function;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Sample;

/**
 * A client's cross entropy on mini-batches of its own examples, with exact first and second derivatives. Computes where
 * the parameters are: on the CPU, or on a GPU if libtorch has CUDA (the jars with classifier {@code linux-x86_64-gpu}).
 */
final class NetworkLoss implements Loss, HessianProduct, OneByOne.Function {
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
    public double evaluate(Sample xi, Point w, Point gradient) {
        return views.evaluate(w, gradient, at -> values(at, xi));
    }

    @Override
    public void hessianProduct(Sample xi, Point w, Point direction, Point product) {
        views.hessianProduct(w, direction, product, at -> values(at, xi));
    }

    @Override
    public Tensor values(Parameters w, Sample xi) {
        return CrossEntropy.mean(network, w, examples.select(batches.apply(xi)), Dropout.of(xi));
    }
}
