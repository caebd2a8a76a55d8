package org.fedcomuon.model;

import java.util.List;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.JointOracle;
import org.fedcomuon.problem.JointOracle.Points;
import org.fedcomuon.problem.Sample;

/**
 * The losses of several clients (d = 1), differentiated together: the derivative of their sum with respect to the
 * parameters of a client is that of its own loss, because no other depends on them. Not thread-safe.
 */
final class Together implements JointOracle {
    /** The losses as functions of parameters with a dimension for clients. */
    @FunctionalInterface
    interface Losses {
        /** Returns a vector, the loss of each client on its sample. */
        Tensor of(List<Sample> xi, Parameters w);
    }

    private final Losses losses;
    private final Views views = new Views();

    Together(Losses losses) {
        this.losses = losses;
    }

    @Override
    public boolean computesOnDevice() {
        return false; // unless it is put on a stream
    }

    @Override
    public void inner(List<Sample> xi, Points w, Floats value, List<Points> jacobian) {
        views.evaluate(w, value, jacobian.getFirst(), at -> losses.of(xi, at));
    }

    @Override
    public void hessianProduct(List<Sample> xi, Points w, Points direction, Points product) {
        views.hessianProduct(w, direction, product, at -> losses.of(xi, at));
    }
}
