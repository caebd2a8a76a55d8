package org.fedcomuon.problem;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.JointOracle.Points;

/**
 * A problem of losses with one more parameter, the threshold t of all clients: client k contributes {@code f(l_k, t)},
 * where f is {@link OuterFunction#klDual} or {@link OuterFunction#cvarDual}. Minimising over W and t together minimises
 * a function of all clients' losses that is no mean over clients, such as the mean of the largest ones, although no
 * client sees another's loss.
 *
 * <p>The inner function is {@code g(W, t) = (l(W), t)}, d = 2. The parameter is the last block, {@value #BLOCK}, which
 * methods average as they average W. Immutable, if the problem of the losses is.
 */
public final class ThresholdProblem implements Problem {
    /** The name of the block that holds t. */
    public static final String BLOCK = "threshold";

    private final Problem losses;
    private final OuterFunction f;
    private final double start;
    private final Layout layout;

    /**
     * Describes the problem.
     *
     * @param losses a problem with d = 1, whose own outer function is not used
     * @param f of two variables
     * @param start t before the first step, such as a usual loss of W0
     */
    public ThresholdProblem(Problem losses, OuterFunction f, double start) {
        if (losses.innerDimension() != 1 || f.dimension() != 2) {
            throw new IllegalArgumentException("d = %d and f of %d variables; losses have d = 1, and f two variables"
                    .formatted(losses.innerDimension(), f.dimension()));
        }
        this.losses = losses;
        this.f = f;
        this.start = start;
        var blocks = new ArrayList<>(losses.layout().blocks());
        blocks.add(Block.vector(BLOCK, 1));
        layout = Layout.of(blocks);
    }

    @Override
    public Layout layout() {
        return layout;
    }

    @Override
    public int innerDimension() {
        return 2;
    }

    @Override
    public int clients() {
        return losses.clients();
    }

    @Override
    public double cost(int k) {
        return losses.cost(k);
    }

    @Override
    public List<String> mistakes(int k) {
        return losses.mistakes(k);
    }

    @Override
    public Optional<Floats> initial(long seed) {
        Floats all = Floats.zeros(layout.length());
        losses.initial(seed).ifPresent(w -> all.slice(0, w.length()).segment().copyFrom(w.segment()));
        all.set(layout.length() - 1, start);
        return Optional.of(all);
    }

    /** Returns the parameters of the losses, as a view of those of this problem. */
    public Point withoutThreshold(Point point) {
        return new Point(
                losses.layout(), point.values().slice(0, losses.layout().length()));
    }

    @Override
    public Client client(int k) {
        Client loss = losses.client(k);
        return loss instanceof HessianProduct second ? new Twice(loss, second) : new ThresholdClient(loss);
    }

    /**
     * Returns an oracle of several clients where the losses have one that computes in memory of the host. In that of a
     * GPU nobody would write t, so that there clients are evaluated on the host.
     */
    @Override
    public Optional<JointOracle> joint(Device device, List<Integer> clients) {
        return losses.joint(device, clients)
                .filter(all -> !all.computesOnDevice())
                .map(JointThreshold::new);
    }

    private final class JointThreshold implements JointOracle {
        private final JointOracle losses;
        private final Map<Integer, Client> clients = new HashMap<>();

        JointThreshold(JointOracle losses) {
            this.losses = losses;
        }

        @Override
        public boolean computesOnDevice() {
            return false;
        }

        @Override
        public void inner(List<Sample> xi, Points w, Floats value, List<Points> jacobian) throws Exception {
            Floats loss = Floats.zeros(xi.size());
            losses.inner(xi, withoutThreshold(w), loss, List.of(withoutThreshold(jacobian.getFirst())));
            for (int i = 0; i < xi.size(); i++) {
                value.set(2L * i, loss.get(i));
                addThreshold(
                        w.of(i),
                        value.slice(2L * i, 2),
                        jacobian.get(0).of(i),
                        jacobian.get(1).of(i));
            }
        }

        private Points withoutThreshold(Points points) {
            Layout inner = ThresholdProblem.this.losses.layout();
            long length = (points.count() - 1) * points.stride() + inner.length();
            return new Points(inner, points.values().slice(0, length), points.count(), points.stride());
        }

        /** One by one: it takes more than the losses' products. */
        @Override
        public void hessianProduct(List<Sample> xi, Points w, Points direction, Points product) throws Exception {
            for (int i = 0; i < xi.size(); i++) {
                Client client = clients.computeIfAbsent(xi.get(i).client(), ThresholdProblem.this::client);
                ((HessianProduct) client).hessianProduct(xi.get(i), w.of(i), direction.of(i), product.of(i));
            }
        }
    }

    /** Completes what the losses have written: t is the second value, and its derivative is a constant. */
    private static void addThreshold(Point w, Floats value, Point ofLoss, Point ofThreshold) {
        ofLoss.block(BLOCK).set(0, 0);
        value.set(1, w.block(BLOCK).get(0));
        ofThreshold.values().segment().fill((byte) 0);
        ofThreshold.block(BLOCK).set(0, 1);
    }

    private class ThresholdClient implements Client {
        final Client loss;

        ThresholdClient(Client loss) {
            this.loss = loss;
        }

        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
            Point gradient = jacobian.component(0);
            loss.inner(xi, withoutThreshold(w), value.slice(0, 1), new Jacobian(List.of(withoutThreshold(gradient))));
            addThreshold(w, value, gradient, jacobian.component(1));
        }

        @Override
        public void outerGradient(Sample zeta, Floats y, Floats gradient) {
            var into = new double[2];
            f.gradient(values(y), into);
            gradient.set(0, into[0]);
            gradient.set(1, into[1]);
        }

        @Override
        public OptionalDouble outerValue(Sample zeta, Floats y) {
            return OptionalDouble.of(f.value(values(y)));
        }

        static double[] values(Floats y) {
            return new double[] {y.get(0), y.get(1)};
        }
    }

    /** A client with second derivatives: those of f(l(W), t). */
    private final class Twice extends ThresholdClient implements HessianProduct {
        private final HessianProduct second;
        private final Point slope =
                new Point(losses.layout(), Floats.zeros(losses.layout().length()));
        private final Floats value = Floats.zeros(1);

        Twice(Client loss, HessianProduct second) {
            super(loss);
            this.second = second;
        }

        @Override
        public void hessianProduct(Sample xi, Point w, Point direction, Point product) throws Exception {
            Point at = withoutThreshold(w);
            Point into = withoutThreshold(product);
            loss.inner(xi, at, value, new Jacobian(List.of(slope)));
            second.hessianProduct(xi, at, withoutThreshold(direction), into);
            double along = 0; // <grad l, direction>
            for (long i = 0; i < slope.values().length(); i++) {
                along += (double) slope.values().get(i) * direction.values().get(i);
            }
            double[] y = {value.get(0), w.block(BLOCK).get(0)};
            var gradient = new double[2];
            f.gradient(y, gradient);
            var curve = new double[2];
            f.hessianProduct(y, new double[] {along, direction.block(BLOCK).get(0)}, curve);
            for (long i = 0; i < slope.values().length(); i++) {
                into.values()
                        .set(
                                i,
                                gradient[0] * into.values().get(i)
                                        + curve[0] * slope.values().get(i));
            }
            product.block(BLOCK).set(0, curve[1]);
        }
    }
}
