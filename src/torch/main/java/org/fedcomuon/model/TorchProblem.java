package org.fedcomuon.model;

import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.LongFunction;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.JointOracle;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.OuterFunction;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;

/**
 * A problem whose inner functions are written with libtorch, which differentiates them: for inner values that are not
 * one loss of a network, such as the four of the area under the curve. {@link Classification} and {@link MetaLearning}
 * are shorter where they fit.
 *
 * <p>d backward passes fill the Jacobian in place. First and second derivatives are exact, so that FedMAML can be used
 * too; where d > 1, its loss is {@code f(g(w; xi))}.
 *
 * <p>For example: {@snippet file="org/fedcomuon/model/TorchProblemIT.java" region="problem"}
 *
 * <p>Immutable, provided that the inner functions are.
 */
public final class TorchProblem implements Problem {
    /**
     * The inner function g of a client.
     *
     * <p>Called by one thread at a time for each client, not always the same one.
     */
    @FunctionalInterface
    @SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
    public interface Inner {
        /**
         * Returns {@code g(w; xi)} as a vector of d values, or as a scalar if d = 1, differentiable with respect to the
         * blocks of {@code w}. The same sample must give the same values; {@link Sample#random} and {@link Dropout#of}
         * are sources of chance. Tensors made in the call are freed after it.
         *
         * @param w the parameters; {@link Parameters#here} moves data to their device
         */
        Tensor values(Parameters w, Sample xi);
    }

    private final Layout layout;
    private final List<Inner> clients;
    private final OuterFunction outer;
    private final LongFunction<Floats> initial;
    private final JointChoice choice;

    /**
     * Describes a problem that starts from {@link Initialization#uniform}.
     *
     * @param clients g of each client
     * @param outer f, whose dimension is d
     */
    public TorchProblem(Layout layout, List<? extends Inner> clients, OuterFunction outer) {
        this(layout, clients, outer, seed -> Initialization.uniform(layout, seed));
    }

    /**
     * Describes a problem.
     *
     * @param clients g of each client
     * @param outer f, whose dimension is d
     * @param initial returns W0 for a seed, such as {@link Network#initial}
     */
    public TorchProblem(
            Layout layout, List<? extends Inner> clients, OuterFunction outer, LongFunction<Floats> initial) {
        this(layout, clients, outer, initial, new JointChoice(Gradients.AUTO));
    }

    private TorchProblem(
            Layout layout,
            List<? extends Inner> clients,
            OuterFunction outer,
            LongFunction<Floats> initial,
            JointChoice choice) {
        this.layout = layout;
        this.clients = List.copyOf(clients);
        this.outer = outer;
        this.initial = initial;
        this.choice = choice;
        if (clients.isEmpty()) {
            throw new IllegalArgumentException("a problem without clients; at least 1 is needed");
        }
    }

    /**
     * Returns the same problem with another way to compute gradients than {@link Gradients#AUTO}. All are per client,
     * because an inner function takes the parameters of one; where they are asked for together, that is logged once.
     */
    public TorchProblem gradients(Gradients gradients) {
        return new TorchProblem(layout, clients, outer, initial, new JointChoice(gradients));
    }

    @Override
    public Optional<Floats> initial(long seed) {
        return Optional.of(initial.apply(seed));
    }

    @Override
    public Layout layout() {
        return layout;
    }

    @Override
    public int innerDimension() {
        return outer.dimension();
    }

    @Override
    public int clients() {
        return clients.size();
    }

    @Override
    public Client client(int k) {
        return differentiated(k);
    }

    private Differentiated differentiated(int k) {
        return new Differentiated(clients.get(k), outer);
    }

    /** Returns an oracle for a GPU that libtorch computes on; an inner function takes the parameters of one client. */
    @Override
    public Optional<JointOracle> joint(Device device, List<Integer> here) {
        return choice.on(
                device, "a problem with inner functions", Optional.empty(), () -> new OneByOne(this::differentiated));
    }

    /** A client whose g libtorch differentiates. */
    private static final class Differentiated implements Client, HessianProduct, OneByOne.Function {
        private final Inner inner;
        private final OuterFunction outer;
        private final Views views = new Views();

        Differentiated(Inner inner, OuterFunction outer) {
            this.inner = inner;
            this.outer = outer;
        }

        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
            views.evaluate(w, value, jacobian, at -> values(at, xi));
        }

        @Override
        public void hessianProduct(Sample xi, Point w, Point direction, Point product) {
            views.hessianProduct(w, direction, product, at -> curved(at, xi));
        }

        @Override
        public Tensor values(Parameters w, Sample xi) {
            return inner.values(w, xi);
        }

        @Override
        public Tensor curved(Parameters w, Sample xi) {
            return composed(inner.values(w, xi));
        }

        /**
         * Returns a scalar that has the Hessian of f(g): the first terms of f at g(w). With d = 1 the loss is g itself.
         */
        private Tensor composed(Tensor g) {
            int d = outer.dimension();
            if (d == 1) {
                return g.mean();
            }
            Tensor here = g.detach();
            Tensor onCpu = here.cpu();
            var y = new double[d];
            for (int i = 0; i < d; i++) {
                y[i] = onCpu.get(i).item_float();
            }
            var slope = new double[d];
            outer.gradient(y, slope);
            var curves = new float[d * d];
            var unit = new double[d];
            var column = new double[d];
            for (int i = 0; i < d; i++) {
                unit[i] = 1;
                outer.hessianProduct(y, unit, column);
                unit[i] = 0;
                for (int j = 0; j < d; j++) {
                    curves[i * d + j] = (float) column[j];
                }
            }
            var slopes = new float[d];
            for (int i = 0; i < d; i++) {
                slopes[i] = (float) slope[i];
            }
            Tensor step = g.sub(here);
            Tensor hessian = Tensor.create(curves).view(d, d).to(here.device(), here.scalar_type());
            Tensor gradient = Tensor.create(slopes).to(here.device(), here.scalar_type());
            return gradient.dot(g).add(step.dot(hessian.matmul(step)), new Scalar(0.5));
        }

        @Override
        public void outerGradient(Sample zeta, Floats y, Floats gradient) {
            var into = new double[outer.dimension()];
            outer.gradient(doubles(y), into);
            for (int i = 0; i < into.length; i++) {
                gradient.set(i, into[i]);
            }
        }

        @Override
        public OptionalDouble outerValue(Sample zeta, Floats y) {
            return OptionalDouble.of(outer.value(doubles(y)));
        }

        private double[] doubles(Floats y) {
            var values = new double[outer.dimension()];
            for (int i = 0; i < values.length; i++) {
                values[i] = y.get(i);
            }
            return values;
        }
    }
}
