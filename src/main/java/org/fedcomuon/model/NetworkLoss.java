package org.fedcomuon.model;

import java.util.HashMap;
import java.util.Map;
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

    // By address: a federation's variables stay where they are.
    private final Map<Long, Parameters> views = new HashMap<>();

    NetworkLoss(Network network, Examples examples, Function<Sample, int[]> batches) {
        this.network = network;
        this.examples = examples;
        this.batches = batches;
    }

    private Parameters view(Point point) {
        return views.computeIfAbsent(point.values().address(), address -> new Parameters(point));
    }

    @Override
    public boolean acceptsMemoryOf(String device) {
        return Torch.computesOn(device);
    }

    @Override
    public double evaluate(Sample xi, Point w, Point gradient) {
        Torch.claim();
        Parameters at = view(w);
        Parameters into = view(gradient);
        try (var _ = new PointerScope()) {
            Tensor loss = loss(xi, at.requireGradient());
            into.zero();
            for (int i = 0; i < at.blocks().size(); i++) {
                at.blocks().get(i).mutable_grad().put(into.blocks().get(i)); // accumulated in place
            }
            loss.backward();
            return loss.item_float(); // on a GPU, waits for all of the above
        }
    }

    @Override
    public void hessianProduct(Sample xi, Point w, Point direction, Point product) {
        Torch.claim();
        Parameters at = view(w);
        Parameters along = view(direction);
        Parameters into = view(product);
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
        Examples batch = examples.select(batches.apply(xi));
        return torch.cross_entropy_loss(
                network.logits(at, at.here(batch.inputs()), Dropout.of(xi)), at.here(batch.labels()));
    }
}
