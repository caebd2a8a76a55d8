package org.fedcomuon.model;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.JointOracle;
import org.fedcomuon.problem.JointOracle.Points;
import org.fedcomuon.problem.Sample;

/**
 * Clients that are differentiated one after the other on one thread, for functions that cannot be differentiated
 * together: on a GPU, whose work is only queued here, that is what the per-client path is. Not thread-safe.
 */
final class OneByOne implements JointOracle {
    /** The functions of a client, of its parameters. */
    interface Function {
        /** Returns the d values of g; see {@link TorchProblem.Inner#values}. */
        Tensor values(Parameters w, Sample xi);

        /** Returns a scalar whose Hessian is that of the loss; see {@link org.fedcomuon.problem.HessianProduct}. */
        default Tensor curved(Parameters w, Sample xi) {
            return values(w, xi);
        }
    }

    private final IntFunction<? extends Function> functions;
    private final Map<Integer, Function> byClient = new HashMap<>();
    private final Views views = new Views();

    /** @param functions returns the functions of a client, by its number; called once for each */
    OneByOne(IntFunction<? extends Function> functions) {
        this.functions = functions;
    }

    @Override
    public boolean computesOnDevice() {
        return false; // unless it is put on a stream
    }

    private Function of(Sample xi) {
        return byClient.computeIfAbsent(xi.client(), functions::apply);
    }

    @Override
    public void inner(List<Sample> xi, Points w, Floats value, List<Points> jacobian) {
        int d = jacobian.size();
        for (int i = 0; i < xi.size(); i++) {
            int k = i;
            views.evaluate(
                    w.of(i),
                    value.slice((long) i * d, d),
                    new Jacobian(
                            jacobian.stream().map(component -> component.of(k)).toList()),
                    at -> of(xi.get(k)).values(at, xi.get(k)));
        }
    }

    @Override
    public void hessianProduct(List<Sample> xi, Points w, Points direction, Points product) {
        for (int i = 0; i < xi.size(); i++) {
            Sample sample = xi.get(i);
            views.hessianProduct(
                    w.of(i), direction.of(i), product.of(i), at -> of(sample).curved(at, sample));
        }
    }
}
