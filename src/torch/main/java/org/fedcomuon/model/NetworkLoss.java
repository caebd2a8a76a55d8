package org.fedcomuon.model;

import java.util.function.Function;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.BoolOptional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
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
        Torch.claim();
        Parameters at = views.of(w);
        Parameters along = views.of(direction);
        Parameters into = views.of(product);
        try (var _ = new PointerScope()) {
            Tensor loss = loss(xi, at.requireGradient());
            TensorVector parameters = at.vector();
            TensorVector slopes = torch.grad(
                    new TensorVector(loss), parameters, new TensorVector(), new BoolOptional(true), true, false);
            Tensor slope = slopes.get(0).mul(along.blocks().get(0)).sum();
            for (int i = 1; i < slopes.size(); i++) {
                slope = slope.add(slopes.get(i).mul(along.blocks().get(i)).sum());
            }
            TensorVector curves = torch.grad(
                    new TensorVector(slope), parameters, new TensorVector(), new BoolOptional(), false, true);
            for (int i = 0; i < curves.size(); i++) {
                Tensor curve = curves.get(i);
                if (curve.defined()) {
                    into.blocks().get(i).copy_(curve);
                } else {
                    into.blocks().get(i).zero_(); // the slope does not depend on it
                }
            }
            into.finish();
        }
    }

    private Tensor loss(Sample xi, Parameters at) {
        return CrossEntropy.mean(network, at, examples.select(batches.apply(xi)), Dropout.of(xi));
    }
}
