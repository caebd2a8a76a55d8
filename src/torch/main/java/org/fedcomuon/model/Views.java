package org.fedcomuon.model;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.BoolOptional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorArrayRefOptional;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;

/**
 * The points of one client as parameters. Each is made once and kept, because the variables of a federation do not
 * move. Not thread-safe; the calls of one client never overlap.
 */
final class Views {
    private final Map<Long, Parameters> byAddress = new HashMap<>();

    /** Returns the view of {@code point}. */
    Parameters of(Point point) {
        return byAddress.computeIfAbsent(point.values().address(), address -> Parameters.of(point));
    }

    /**
     * Returns the value of {@code loss} at {@code w}.
     *
     * @param gradient receives the gradient, without a copy in between
     */
    double evaluate(Point w, Point gradient, Function<Parameters, Tensor> loss) {
        Torch.claim();
        Parameters at = of(w);
        Parameters into = of(gradient); // outside the scope, because it is kept
        try (var _ = new PointerScope()) {
            Tensor value = loss.apply(at.requireGradient());
            receive(at, gradient, into);
            value.backward();
            return value.item_float(); // on a GPU, waits for all of the above
        }
    }

    /**
     * Evaluates a function with d values at {@code w}: one backward pass for each.
     *
     * @param value receives the d values
     * @param jacobian receives their gradients, without a copy in between
     */
    void evaluate(Point w, Floats value, Jacobian jacobian, Function<Parameters, Tensor> function) {
        Torch.claim();
        Parameters at = of(w);
        List<Parameters> into = jacobian.components().stream().map(this::of).toList();
        int d = into.size();
        try (var _ = new PointerScope()) {
            Tensor all = function.apply(at.requireGradient());
            if (all.dim() > 1 || all.numel() != d) {
                throw new IllegalArgumentException(
                        "g has the shape (%s); a vector of d = %d values is needed".formatted(Torch.shape(all), d));
            }
            Tensor values = all.flatten();
            for (int i = 0; i < d; i++) {
                receive(at, jacobian.component(i), into.get(i));
                Tensor one = values.select(0, i);
                if (one.requires_grad()) { // otherwise it depends on no parameter
                    one.backward(new Tensor(), new BoolOptional(i < d - 1), false, new TensorArrayRefOptional());
                }
            }
            at.finish();
            Tensor onHost = values.detach().cpu().to(torch.ScalarType.Float).contiguous();
            var floats = new float[d];
            onHost.data_ptr_float().get(floats);
            value.set(floats);
        }
    }

    /**
     * Evaluates {@code hess loss(w) direction}.
     *
     * @param product receives the result
     */
    void hessianProduct(Point w, Point direction, Point product, Function<Parameters, Tensor> loss) {
        Torch.claim();
        Parameters at = of(w);
        Parameters along = of(direction);
        Parameters into = of(product);
        try (var _ = new PointerScope()) {
            Tensor value = loss.apply(at.requireGradient());
            TensorVector parameters = at.vector();
            Tensor slope = slope(value, parameters, along);
            if (!slope.requires_grad()) { // the value is linear
                into.zero();
                return;
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

    /** Returns {@code <grad value, along>}, differentiable. */
    private static Tensor slope(Tensor value, TensorVector parameters, Parameters along) {
        Tensor slope = Tensor.create(0f);
        if (value.requires_grad()) {
            TensorVector slopes = torch.grad(
                    new TensorVector(value), parameters, new TensorVector(), new BoolOptional(true), true, true);
            for (int i = 0; i < slopes.size(); i++) {
                if (slopes.get(i).defined()) { // otherwise the value does not depend on it
                    slope = slope.add(slopes.get(i).mul(along.blocks().get(i)).sum());
                }
            }
        }
        return slope;
    }

    /** Lets backward passes from the parameters {@code at} accumulate into {@code gradient}, which becomes zero. */
    private static void receive(Parameters at, Point gradient, Parameters into) {
        zero(gradient, into);
        for (int i = 0; i < at.blocks().size(); i++) {
            at.blocks().get(i).mutable_grad().put(into.blocks().get(i));
        }
    }

    /** Zeroes all blocks at once; block by block it takes a hundredth of the time of a gradient of LeNet. */
    private static void zero(Point point, Parameters view) {
        if (point.values().device().isEmpty()) {
            point.values().segment().fill((byte) 0);
        } else {
            view.zero();
        }
    }
}
