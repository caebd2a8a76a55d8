package org.fedcomuon.model;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.BoolOptional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorArrayRefOptional;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.JointOracle.Points;
import org.fedcomuon.problem.Point;

/**
 * Points as parameters, of one client or of several. Each is made once and kept, because the variables of a federation
 * do not move. Not thread-safe; the calls of one client never overlap.
 */
final class Views {
    /**
     * How many are kept: more than the variables of any method have clients one by one or all together. Cohorts with
     * gaps may have more, and make some of them again.
     */
    private static final int KEPT = 1024;

    /** Where points are; those of one client without a dimension for clients have none. */
    private record Key(long address, int clients, long stride) {}

    private final Map<Key, Parameters> made = new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Key, Parameters> eldest) {
            return size() > KEPT;
        }
    };

    /** Returns the view of {@code point}. */
    Parameters of(Point point) {
        return made.computeIfAbsent(new Key(point.values().address(), 0, 0), _ -> Parameters.of(point));
    }

    /** Returns the view of {@code points}. */
    Parameters of(Points points) {
        return made.computeIfAbsent(
                new Key(points.values().address(), points.count(), points.stride()), _ -> Parameters.of(points));
    }

    /** Returns the sum of the losses of several clients; that of one client is the loss itself. */
    static Tensor total(Tensor losses) {
        return losses.dim() == 0 ? losses : losses.sum();
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
            zero(gradient, into);
            receive(at, into);
            value.backward();
            return value.item_float(); // on a GPU, waits for all of the above
        }
    }

    /**
     * Evaluates the losses of several clients, each at its own point: one backward pass for all.
     *
     * @param value receives the losses
     * @param gradient receives their gradients
     */
    void evaluate(Points w, Floats value, Points gradient, Function<Parameters, Tensor> losses) {
        Torch.claim();
        Parameters at = of(w);
        Parameters into = of(gradient);
        try (var _ = new PointerScope()) {
            Tensor values = losses.apply(at.requireGradient());
            if (values.dim() != 1 || values.size(0) != w.count()) {
                throw new IllegalArgumentException(
                        "losses of the shape (%s) for %d clients".formatted(Torch.shape(values), w.count()));
            }
            // Not accumulated as those of one client are: libtorch warns of gradients with gaps between clients.
            copy(
                    torch.grad(
                            new TensorVector(total(values)),
                            at.vector(),
                            new TensorVector(),
                            new BoolOptional(),
                            false,
                            true),
                    into);
            write(values, value);
        }
    }

    /**
     * Writes values where they belong. In the memory of a GPU that is one more operation there, and nothing is waited
     * for.
     */
    private static void write(Tensor values, Floats into) {
        if (into.device().isPresent()) {
            Parameters.vector(into).copy_(values.detach());
            return;
        }
        Tensor onHost = values.detach().cpu().to(torch.ScalarType.Float).contiguous();
        var floats = new float[Math.toIntExact(into.length())];
        onHost.data_ptr_float().get(floats);
        into.set(floats);
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
                zero(jacobian.component(i), into.get(i));
                receive(at, into.get(i));
                Tensor one = values.select(0, i);
                if (one.requires_grad()) { // otherwise it depends on no parameter
                    one.backward(new Tensor(), new BoolOptional(i < d - 1), false, new TensorArrayRefOptional());
                }
            }
            write(values, value);
        }
    }

    /**
     * Evaluates {@code hess loss(w) direction}.
     *
     * @param product receives the result
     */
    void hessianProduct(Point w, Point direction, Point product, Function<Parameters, Tensor> loss) {
        Torch.claim();
        hessianProduct(of(w), of(direction), of(product), loss);
    }

    /** Evaluates the same for several clients, whose losses are given as a vector. */
    void hessianProduct(Points w, Points direction, Points product, Function<Parameters, Tensor> losses) {
        Torch.claim();
        hessianProduct(of(w), of(direction), of(product), losses);
    }

    private static void hessianProduct(
            Parameters at, Parameters along, Parameters into, Function<Parameters, Tensor> loss) {
        try (var _ = new PointerScope()) {
            Tensor value = total(loss.apply(at.requireGradient()));
            TensorVector parameters = at.vector();
            Tensor slope = slope(value, parameters, along).orElse(value.detach());
            if (!slope.requires_grad()) { // the value is linear
                into.zero();
                return;
            }
            TensorVector curves = torch.grad(
                    new TensorVector(slope), parameters, new TensorVector(), new BoolOptional(), false, true);
            copy(curves, into);
        }
    }

    private static void copy(TensorVector derivatives, Parameters into) {
        for (int i = 0; i < derivatives.size(); i++) {
            Tensor derivative = derivatives.get(i);
            if (derivative.defined()) {
                into.blocks().get(i).copy_(derivative);
            } else {
                into.blocks().get(i).zero_(); // nothing depends on this block
            }
        }
    }

    /** Returns {@code <grad value, along>}, differentiable; empty if the value depends on no parameter. */
    private static Optional<Tensor> slope(Tensor value, TensorVector parameters, Parameters along) {
        Optional<Tensor> slope = Optional.empty();
        if (value.requires_grad()) {
            TensorVector slopes = torch.grad(
                    new TensorVector(value), parameters, new TensorVector(), new BoolOptional(true), true, true);
            for (int i = 0; i < slopes.size(); i++) {
                if (slopes.get(i).defined()) { // otherwise the value does not depend on it
                    Tensor term = slopes.get(i).mul(along.blocks().get(i)).sum();
                    slope = Optional.of(slope.map(sum -> sum.add(term)).orElse(term));
                }
            }
        }
        return slope;
    }

    /** Lets backward passes from the parameters {@code at} accumulate into other ones, which are zero. */
    private static void receive(Parameters at, Parameters into) {
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
