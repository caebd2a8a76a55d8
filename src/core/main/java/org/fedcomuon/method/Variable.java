package org.fedcomuon.method;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.BiConsumer;
import java.util.function.DoubleBinaryOperator;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.JointOracle.Points;
import org.fedcomuon.problem.Point;
import org.jspecify.annotations.Nullable;

/**
 * A symbol of an algorithm on one device: one value for each client there, or, if it is shared, one value for all.
 * Operations change the values of the clients that take part in the round, in one kernel call for each run of adjacent
 * clients. Not thread-safe; confined to the device thread.
 *
 * <p>Oracles look at it through views. Where the device's memory is the host's these are the values themselves;
 * elsewhere a mirror in host memory, made when an oracle first needs it, which {@link #fetch} and {@link #store} keep
 * up.
 */
public final class Variable {
    private static final List<Run> ONE = List.of(new Run(0, 1));

    private final Clients clients;
    private final String name;
    private final Buffer buffer;
    private final long length;
    private final boolean shared;
    private final List<Floats> views = new ArrayList<>();
    private final List<Jacobian> jacobians = new ArrayList<>();
    private final Buffer norms;
    private Buffer.@Nullable Mirror mirror;
    private boolean common;

    Variable(Clients clients, String name, long length, boolean shared) {
        this.clients = clients;
        this.name = name;
        this.length = length;
        this.shared = shared;
        buffer = clients.allocate(name, ElementType.FLOAT32, rows() * length);
        norms = clients.allocate("norms of " + name, ElementType.FLOAT64, rows());
        if (clients.device().isHost()) {
            prepare();
        }
    }

    private int rows() {
        return shared ? 1 : clients.capacity();
    }

    /** Makes the views, before oracles look at them from other threads. */
    void prepare() {
        if (mirror != null) {
            return;
        }
        mirror = clients.mirror(buffer);
        long bytes = length * Float.BYTES;
        for (int k = 0; k < rows(); k++) {
            var row = Floats.of(mirror.segment().asSlice(k * bytes, bytes));
            views.add(row);
            jacobians.add(new Jacobian(points(row)));
        }
    }

    /** Brings the values of the clients that take part to the views; there after a synchronization. */
    void fetch() {
        prepare();
        for (Run run : shared ? ONE : clients.runs()) {
            fetch(run);
        }
    }

    void fetch(Run run) {
        prepare();
        Objects.requireNonNull(mirror).fetch(run.first() * length, run.count() * length);
    }

    /** Takes what oracles have written for the clients that take part to the device. */
    void store() {
        for (Run run : shared ? ONE : clients.runs()) {
            Objects.requireNonNull(mirror).store(run.first() * length, run.count() * length);
        }
    }

    private List<Point> points(Floats row) {
        long n = clients.n();
        var points = new ArrayList<Point>();
        for (long at = 0; length % n == 0 && at < length; at += n) {
            points.add(new Point(clients.layout(), row.slice(at, n)));
        }
        return points;
    }

    /** Returns its name in checkpoints and messages. */
    public String name() {
        return name;
    }

    /** Returns the number of elements per client. */
    public long length() {
        return length;
    }

    /** Returns whether there is one value for all clients. */
    public boolean isShared() {
        return shared;
    }

    /**
     * Returns whether every client is known to hold the same value, those that do not take part included: after an
     * average, until something else is written. What depends on it alone need be computed only once.
     */
    public boolean isCommon() {
        return shared || common;
    }

    /** Declares that every client has the same value; called by a server. */
    public void becomeCommon() {
        common = true;
    }

    /**
     * Declares that clients may have different values; called by code that writes without an operation of this class.
     */
    void becomeDifferent() {
        common = false;
    }

    /** Returns the values, client after client, including those that do not take part. */
    public Buffer buffer() {
        return buffer;
    }

    /**
     * Returns the client of this device, and the element of its value, that an exception names; empty if of another.
     */
    Optional<Device.Position> find(DeviceException.NotFinite e) {
        OptionalLong element = e.elementOf(buffer);
        if (element.isPresent()) {
            long at = element.getAsLong();
            return Optional.of(new Device.Position(at / length, -1, at % length));
        }
        OptionalLong norm = e.elementOf(norms);
        return norm.isPresent()
                ? Optional.of(new Device.Position(norm.getAsLong(), -1, firstBad((int) norm.getAsLong())))
                : Optional.empty();
    }

    /** Returns the first element of a client that is not finite; 0 if there is none. */
    private long firstBad(int client) {
        return clients.device()
                .firstNotFinite(of(new Run(client, 1)))
                .map(Device.Position::index)
                .orElse(0L);
    }

    Floats values(int client) {
        return views.get(shared ? 0 : client);
    }

    Point point(int client) {
        return jacobian(client).component(0);
    }

    Jacobian jacobian(int client) {
        return jacobians.get(shared ? 0 : client);
    }

    /**
     * Returns the values of adjacent clients, for an oracle of all of them.
     *
     * @param onDevice whether in the device's own memory, instead of the views
     */
    Floats values(Run run, boolean onDevice) {
        long first = shared ? 0 : run.first() * length;
        long count = shared ? length : run.count() * length;
        return onDevice
                ? Floats.onDevice(clients.device().name(), buffer.address() + first * Float.BYTES, count)
                : Floats.of(Objects.requireNonNull(mirror).segment().asSlice(first * Float.BYTES, count * Float.BYTES));
    }

    /** Returns the same as points: for each component, those of all clients. */
    List<Points> points(Run run, boolean onDevice) {
        Floats all = values(run, onDevice);
        long n = clients.n();
        long stride = shared ? 0 : length;
        var components = new ArrayList<Points>();
        for (long at = 0; at < length; at += n) {
            components.add(new Points(
                    clients.layout(), all.slice(at, (run.count() - 1) * stride + n), run.count(), stride));
        }
        return components;
    }

    /** Returns the values of these clients; a shared variable is read by each of them. */
    Batch of(Run run) {
        return shared
                ? new Batch(buffer, 0, run.count(), length, run.count() == 1 ? length : 0)
                : new Batch(buffer, run.first() * length, run.count(), length, length);
    }

    private Batch normsOf(Run run) {
        return new Batch(norms, shared ? 0 : run.first(), run.count(), 1, 1);
    }

    private void forRuns(BiConsumer<Device, Run> operation) {
        common = false;
        try {
            for (Run run : shared ? ONE : clients.runs()) {
                operation.accept(clients.device(), run);
            }
        } catch (DeviceException.NotFinite e) {
            throw clients.named(e);
        }
    }

    /** {@code this = x}. A shared variable takes the first client's value, after an average every client's. */
    public void set(Variable x) {
        ema(1, x);
    }

    /** {@code this = a x + (1 - a) this}. */
    public void ema(double a, Variable x) {
        forRuns((device, run) -> device.ema(a, x.of(run), of(run)));
    }

    /** {@code this += factor x}. */
    public void add(double factor, Variable x) {
        forRuns((device, run) -> device.vectorStep(-factor, x.of(run), of(run)));
    }

    /** {@code this = keep this + x}. */
    public void accumulate(double keep, Variable x) {
        compose(1 - keep, x, clients.scalar(1 / (1 - keep))); // b v = 1
    }

    /**
     * Sets every client's value to that of {@code x}, including those that do not take part. x is shared, or has just
     * been averaged.
     */
    public void receive(Variable x) {
        var all = new Run(0, rows());
        clients.device().ema(1, x.of(all), of(all));
        common = x.isCommon();
    }

    /** Brings the value that all clients have, which is in the first place, to all others. */
    public void respread() {
        if (!isCommon()) {
            throw new IllegalStateException(
                    "%s is state that clients differ in at the end of a round; it has to be averaged, or privateState"
                            .formatted(name));
        }
        int others = rows() - 1;
        if (others > 0) {
            copy(0, new Run(1, others));
        }
    }

    /** Copies the value of client {@code from} to all clients that take part. */
    void spread(int from) {
        common = false;
        for (Run run : clients.runs()) {
            copy(from, new Run(run.first(), Math.clamp(from - run.first(), 0, run.count())));
            int after = Math.max(run.first(), from + 1);
            copy(from, new Run(after, Math.max(0, run.first() + run.count() - after)));
        }
    }

    private void copy(int from, Run to) {
        if (to.count() > 0) {
            clients.device().ema(1, new Batch(buffer, from * length, to.count(), length, 0), of(to));
        }
    }

    /** Sets every element of every client to {@code value}. */
    public void fill(double value) {
        buffer.fill(value);
        common = true;
    }

    /** Sets every element of every client to zero. */
    public void zero() {
        buffer.zero();
        common = true;
    }

    /** {@code this = (1 - b) this + b H (v kron I)}. */
    public void compose(double b, Variable h, Variable v) {
        forRuns((device, run) -> device.composeMomentum(b, h.of(run), v.of(run), of(run)));
    }

    /**
     * {@code H = P_radius[H]; this = (1 - b) this + b H (v kron I)}, in one pass. H has been through {@link #storm}.
     */
    public void projectCompose(double radius, double b, Variable h, Variable v) {
        forRuns((device, run) ->
                device.projectComposeMomentum(radius, h.normsOf(run), b, h.of(run), v.of(run), of(run)));
    }

    /** {@code this = now + (1 - g)(this - before)}. */
    public void storm(double g, Variable now, Variable before) {
        forRuns((device, run) -> device.storm(g, now.of(run), before.of(run), of(run), normsOf(run)));
    }

    /** {@code this = P_radius[this]}, right after {@link #storm}. */
    public void project(double radius) {
        forRuns((device, run) -> device.project(radius, normsOf(run), of(run)));
    }

    /** Does the server step of FedOpt along {@code delta}, with its moments m and v. */
    public void adaptiveStep(
            Device.AdaptiveRule rule,
            double beta1,
            double beta2,
            double epsilon,
            double eta,
            Variable delta,
            Variable m,
            Variable v) {
        forRuns((device, run) ->
                device.adaptiveStep(rule, beta1, beta2, epsilon, eta, delta.of(run), m.of(run), v.of(run), of(run)));
    }

    /**
     * {@code this = f(x, y)}, element by element and in double precision, computed on the host: for the few scalars of
     * a client, such as a weight that depends on its loss. x or y may be this. A shared variable takes the first
     * client's values, after an average every client's.
     */
    public void compute(DoubleBinaryOperator f, Variable x, Variable y) {
        if (x.length != length || y.length != length) {
            throw new IllegalArgumentException(
                    "%s has %d elements, %s %d and %s %d".formatted(name, length, x.name, x.length, y.name, y.length));
        }
        List<Run> runs =
                shared ? ONE : clients.runs(); // of a shared one the first client, whether it takes part or not
        boolean elsewhere = !clients.device().isHost();
        if (elsewhere) {
            for (Run run : runs) {
                x.fetch(x.shared ? ONE.getFirst() : run);
                y.fetch(y.shared ? ONE.getFirst() : run);
            }
            prepare();
            clients.settle();
        }
        common = false;
        for (Run run : runs) {
            for (int k = run.first(); k < run.first() + run.count(); k++) {
                for (long i = 0; i < length; i++) {
                    values(k)
                            .set(
                                    i,
                                    f.applyAsDouble(
                                            x.values(k).get(i), y.values(k).get(i)));
                }
            }
        }
        if (elsewhere) {
            store();
        }
    }

    /** Elements {@code from} to {@code from + count} become the {@code k} largest of x there, and zeros. */
    void topK(long k, Variable x, long from, long count) {
        forRuns((device, run) -> device.topK(k, x.of(run).slice(from, count), of(run).slice(from, count)));
    }

    @Override
    public String toString() {
        return name;
    }
}
