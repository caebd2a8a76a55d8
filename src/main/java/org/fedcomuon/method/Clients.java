package org.fedcomuon.method;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Mirror;
import org.fedcomuon.device.Place;
import org.fedcomuon.linalg.MuonPlan;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.jspecify.annotations.Nullable;

/**
 * The clients placed on one device: their oracles, their variables, and which of them take part. A method asks for its
 * {@link Variable}s here, evaluates the oracles of all clients at once, and never sees one client alone.
 *
 * <p>Of the device's thread; {@link #close} frees every variable.
 */
public final class Clients implements AutoCloseable {
    private final Device device;
    private final Layout layout;
    private final int dimension;
    private final List<Integer> numbers;
    private final long seed;
    private final FaultPolicy policy;
    private final Consumer<ClientFault> onFault;
    private final Workers workers;
    private final List<Client> oracles = new ArrayList<>();
    private final Roster roster;
    private final Deque<AutoCloseable> owned = new ArrayDeque<>();
    private final List<Variable> state = new ArrayList<>();
    private final Map<Phase, Long> nanos = new EnumMap<>(Phase.class);
    private final Map<Phase, Long> running = new EnumMap<>(Phase.class); // since when
    private final boolean oraclesOnDevice;
    private final Variable weights;
    private final long[] innerDraws;
    private final long[] outerDraws;
    private final double[] lossSums;
    private final int[] lossCounts;
    private long step = -1;
    private @Nullable Variable plainJacobian;
    private @Nullable Variable plainValue;
    private @Nullable Variable plainWeights;
    private @Nullable Variable scalar;

    /**
     * @param numbers of the clients placed here, at least one, ascending
     * @param seed of the samples
     * @param onFault hears of every fault that the policy lets pass
     * @param workerCount how many threads evaluate oracles
     */
    public Clients(
            Device device,
            Problem problem,
            List<Integer> numbers,
            long seed,
            FaultPolicy policy,
            Consumer<ClientFault> onFault,
            int workerCount) {
        int count = numbers.size();
        for (int k = 0; k < count; k++) {
            Objects.checkIndex(numbers.get(k), problem.clients());
        }
        if (count == 0 || IntStream.range(1, count).anyMatch(k -> numbers.get(k - 1) >= numbers.get(k))) {
            throw new IllegalArgumentException("clients %s are not some, ascending".formatted(numbers));
        }
        this.device = device;
        this.layout = problem.layout();
        this.dimension = problem.innerDimension();
        this.numbers = List.copyOf(numbers);
        this.seed = seed;
        this.policy = policy;
        this.onFault = onFault;
        for (int k = 0; k < count; k++) {
            oracles.add(problem.client(number(k)));
        }
        oraclesOnDevice =
                !device.isHost() && oracles.stream().allMatch(oracle -> oracle.acceptsMemoryOf(device.name()));
        roster = new Roster(count);
        innerDraws = new long[count];
        outerDraws = new long[count];
        lossSums = new double[count];
        lossCounts = new int[count];
        workers = new Workers(device.name(), Math.min(workerCount, count));
        owned.push(workers);
        try {
            weights = state("W", n());
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    /** Where they are. */
    public Device device() {
        return device;
    }

    /** The parameters. */
    public Layout layout() {
        return layout;
    }

    /** d. */
    public int d() {
        return dimension;
    }

    /** Elements of all parameters together. */
    public long n() {
        return layout.length();
    }

    /** How many are here. */
    public int count() {
        return oracles.size();
    }

    /** The number that the k-th one here has among all clients; ascending, but neighbours here need not be there. */
    public int number(int k) {
        return numbers.get(k);
    }

    /** W, a state variable that every method has; it starts as the common W0. */
    public Variable weights() {
        return weights;
    }

    /** A new variable that is part of the state: it is checkpointed. Zero at first. */
    public Variable state(String name, long length) {
        return add(new Variable(this, name, length, false));
    }

    /** A new variable of the state with one value for all clients, as the server would hold it. Zero at first. */
    public Variable sharedState(String name, long length) {
        return add(new Variable(this, name, length, true));
    }

    /** A new variable that holds nothing from one step to the next. */
    public Variable scratch(String name, long length) {
        return new Variable(this, name, length, false);
    }

    /** The same with one value for all clients. */
    public Variable sharedScratch(String name, long length) {
        return new Variable(this, name, length, true);
    }

    private Variable add(Variable variable) {
        if (state.stream().anyMatch(other -> other.name().equals(variable.name()))) {
            throw new IllegalArgumentException("two state variables are called '%s'".formatted(variable.name()));
        }
        state.add(variable);
        return variable;
    }

    Buffer allocate(String label, ElementType type, long length) {
        Buffer buffer = device.allocate(label, type, length);
        owned.push(buffer);
        return buffer;
    }

    Mirror mirror(Buffer buffer) {
        Mirror mirror = buffer.mirror();
        owned.push(mirror);
        return mirror;
    }

    /** One number for all clients. */
    Variable scalar() {
        if (scalar == null) {
            scalar = sharedScratch("scalar", 1);
        }
        return scalar;
    }

    MuonPlan own(MuonPlan plan) {
        owned.push(plan);
        return plan;
    }

    /** Everything that a checkpoint holds, in the order it was made. */
    public List<Variable> state() {
        return List.copyOf(state);
    }

    /** How many samples of g each client has drawn. A checkpoint's business; the array is the state itself. */
    public long[] innerDraws() {
        return innerDraws;
    }

    /** How many samples of f each client has drawn. A checkpoint's business; the array is the state itself. */
    public long[] outerDraws() {
        return outerDraws;
    }

    /** Which step is under way; -1 before the first. */
    public long step() {
        return step;
    }

    /** Says which step begins, for messages. */
    public void enter(long newStep) {
        step = newStep;
    }

    /** Says who takes part from now on. */
    public void admit(boolean[] takingPart) {
        roster.set(takingPart);
    }

    /** Whether client {@code k} of this device takes part. */
    public boolean takesPart(int k) {
        return roster.isActive(k);
    }

    List<Run> runs() {
        return roster.runs();
    }

    /** Draws a sample for each client: {@code value = g(w; xi)}, {@code jacobian = grad g(w; xi)}. */
    public void inner(Variable w, Variable value, Variable jacobian) {
        evaluate(
                Views.ofPoints(w),
                new Views(List.of(jacobian), List.of(value)),
                k -> oracles.get(k).inner(drawInner(k), w.point(k), value.values(k), jacobian.jacobian(k)));
        requireFinite(value);
        requireFinite(jacobian);
        count(value);
    }

    /** Draws a sample for each client and evaluates g and its Jacobian at both points on it. */
    public void innerAtTwo(
            Variable w, Variable value, Variable jacobian, Variable wOld, Variable valueOld, Variable jacobianOld) {
        evaluate(
                Views.ofPoints(w, wOld),
                new Views(List.of(jacobian, jacobianOld), List.of(value, valueOld)),
                k -> oracles.get(k)
                        .innerAtTwo(
                                drawInner(k),
                                w.point(k),
                                value.values(k),
                                jacobian.jacobian(k),
                                wOld.point(k),
                                valueOld.values(k),
                                jacobianOld.jacobian(k)));
        requireFinite(value);
        requireFinite(jacobian);
        requireFinite(valueOld);
        requireFinite(jacobianOld);
        count(value);
    }

    /** Draws a sample for each client: {@code gradient = grad f(y; zeta)}. */
    public void outerGradient(Variable y, Variable gradient) {
        evaluate(
                Views.ofValues(y),
                Views.ofValues(gradient),
                k -> oracles.get(k).outerGradient(drawOuter(k), y.values(k), gradient.values(k)));
        requireFinite(gradient);
    }

    /** Draws a sample for each client and evaluates the gradient of f at both points on it. */
    public void outerGradientAtTwo(Variable y, Variable gradient, Variable yOld, Variable gradientOld) {
        evaluate(Views.ofValues(y, yOld), Views.ofValues(gradient, gradientOld), k -> {
            Sample zeta = drawOuter(k);
            oracles.get(k).outerGradient(zeta, y.values(k), gradient.values(k));
            oracles.get(k).outerGradient(zeta, yOld.values(k), gradientOld.values(k));
        });
        requireFinite(gradient);
        requireFinite(gradientOld);
    }

    /**
     * Draws a sample for each client: the gradient of the plain loss that single-level methods minimise, the mean of
     * the components of g.
     */
    public void gradient(Variable w, Variable gradient) {
        if (plainValue == null) {
            plainValue = scratch("loss", d());
        }
        if (d() == 1) {
            inner(w, plainValue, gradient);
            return;
        }
        if (plainJacobian == null || plainWeights == null) {
            plainJacobian = scratch("Jacobian", d() * n());
            plainWeights = sharedScratch("1/d", d());
            plainWeights.fill(1.0 / d());
        }
        inner(w, plainValue, plainJacobian);
        gradient.compose(1, plainJacobian, plainWeights);
    }

    /** Draws a sample for each client: the Hessian of the plain loss times {@code direction}. */
    public void hessianProduct(Variable w, Variable direction, Variable product) {
        evaluate(
                Views.ofPoints(w, direction),
                Views.ofPoints(product),
                k -> ((HessianProduct) oracles.get(k))
                        .hessianProduct(drawInner(k), w.point(k), direction.point(k), product.point(k)));
        requireFinite(product);
    }

    private void count(Variable value) {
        for (Run run : runs()) {
            for (int k = run.first(); k < run.first() + run.count(); k++) {
                Floats components = value.values(k);
                for (int i = 0; i < dimension; i++) {
                    lossSums[k] += components.get(i) / dimension;
                }
                lossCounts[k]++;
            }
        }
    }

    /**
     * The plain loss of client {@code k} of this device, the mean of the components of g, over the samples it has drawn
     * since {@link #forgetLosses}; NaN if there were none. For those who watch: no method knows it.
     */
    public double meanLoss(int k) {
        return lossSums[k] / lossCounts[k];
    }

    /** Begins anew with {@link #meanLoss}. */
    public void forgetLosses() {
        Arrays.fill(lossSums, 0);
        Arrays.fill(lossCounts, 0);
    }

    /** Whether every client here is a {@link HessianProduct}. */
    public boolean hasHessianProduct() {
        return oracles.stream().allMatch(HessianProduct.class::isInstance);
    }

    private Sample drawInner(int k) {
        return new Sample(seed, number(k), Sample.Stream.INNER, innerDraws[k]++);
    }

    private Sample drawOuter(int k) {
        return new Sample(seed, number(k), Sample.Stream.OUTER, outerDraws[k]++);
    }

    private interface Oracle {
        void call(int client) throws Exception;
    }

    /** What an oracle sees of some variables: points, which it may take where they are, and values, always here. */
    private record Views(List<Variable> points, List<Variable> values) {
        static Views ofPoints(Variable... points) {
            return new Views(List.of(points), List.of());
        }

        static Views ofValues(Variable... values) {
            return new Views(List.of(), List.of(values));
        }
    }

    /** Those of {@code views} that pass through host memory. */
    private List<Variable> staged(Views views) {
        if (oraclesOnDevice) {
            return views.values();
        }
        var all = new ArrayList<>(views.points());
        all.addAll(views.values());
        return all;
    }

    /** Everything that oracles read is brought to them, in one wait for all; what they write is taken away, in none. */
    private void evaluate(Views read, Views written, Oracle oracle) {
        written.points().forEach(Variable::becomeDifferent);
        written.values().forEach(Variable::becomeDifferent);
        if (device.isHost()) {
            evaluate(oracle);
            return;
        }
        timed(Phase.GRADIENT, () -> {
            if (oraclesOnDevice) {
                read.points().forEach(Variable::preparePoints);
                written.points().forEach(Variable::preparePoints);
            }
            staged(read).forEach(Variable::fetch);
            staged(written).forEach(Variable::prepare);
            device.synchronize(); // what was written before has been taken away as well
        });
        evaluate(oracle);
        timed(Phase.GRADIENT, () -> staged(written).forEach(Variable::store));
    }

    private void evaluate(Oracle oracle) {
        timed(Phase.GRADIENT, () -> {
            int[] active = runs().stream()
                    .flatMapToInt(run -> IntStream.range(run.first(), run.first() + run.count()))
                    .toArray();
            var thrown = new @Nullable Exception[active.length];
            workers.run(active.length, i -> {
                try {
                    oracle.call(active[i]);
                } catch (Exception e) {
                    thrown[i] = e;
                }
            });
            for (int i = 0; i < active.length; i++) {
                Exception e = thrown[i];
                if (e != null) {
                    fault(active[i], ClientFault.Kind.THREW, e.toString(), e);
                }
            }
        });
    }

    private void requireFinite(Variable result) {
        for (boolean again = true; again; ) {
            again = false;
            for (Run run : runs()) {
                Place place = device.firstNotFinite(result.of(run)).orElse(null);
                if (place != null) {
                    int k = run.first() + (int) place.client();
                    String reason = String.format(
                            Locale.ROOT,
                            "%s is not finite in %s, at a W as large as %.3g",
                            result.name(),
                            place(result, place.index()),
                            largestWeight(k));
                    fault(k, ClientFault.Kind.NOT_FINITE, reason, null);
                    again = true; // the runs have changed
                    break;
                }
            }
        }
    }

    /** A value of g or f has components; everything else has the blocks of the model, once or d times. */
    private String place(Variable variable, long index) {
        boolean component = variable.length() % n() != 0 || (variable.length() == d() && d() != n());
        return component
                ? "component %d".formatted(index)
                : "block '%s'".formatted(layout.blockAt(index % n()).name());
    }

    /** Tells a model that has run away from a client that is out of order. */
    private double largestWeight(int k) {
        weights.fetch(new Run(k, 1));
        device.synchronize();
        Floats w = weights.values(k);
        double largest = 0;
        for (long i = 0; i < w.length(); i++) {
            largest = Math.max(largest, Math.abs(w.get(i)));
        }
        return largest;
    }

    private void fault(int k, ClientFault.Kind kind, String reason, @Nullable Throwable cause) {
        var fault = new ClientFault(number(k), step, kind, reason);
        if (policy == FaultPolicy.FAIL || step < 0) {
            throw new ClientFaultException(fault, cause);
        }
        roster.drop(k);
        onFault.accept(fault);
    }

    DivergedException diverged(Variable variable, Run run, Place place) {
        long index = place.index() >= 0 ? place.index() : firstBad(variable.of(run), place.client());
        int client = number(run.first() + (int) place.client());
        return new DivergedException(step, client, variable.name(), place(variable, index));
    }

    private long firstBad(Batch batch, long client) {
        return device.firstNotFinite(batch.client(client)).map(Place::index).orElse(0L);
    }

    /**
     * Refuses a state that is not finite.
     *
     * @throws DivergedException naming the step, the client and the block
     */
    public void requireConverging(Variable variable) {
        var all = new Run(0, variable.isShared() ? 1 : count());
        device.firstNotFinite(variable.of(all)).ifPresent(place -> {
            throw diverged(variable, all, place);
        });
    }

    /** Does something on the account of a phase. */
    public void timed(Phase phase, Runnable work) {
        long start = System.nanoTime();
        running.put(phase, start);
        try {
            work.run();
        } finally {
            running.remove(phase);
            nanos.merge(phase, System.nanoTime() - start, Long::sum);
        }
    }

    /** Seconds spent on a phase since the beginning, up to now if it goes on. */
    public double seconds(Phase phase) {
        long now = System.nanoTime();
        return (nanos.getOrDefault(phase, 0L) + now - running.getOrDefault(phase, now)) * 1e-9;
    }

    @Override
    public void close() {
        while (!owned.isEmpty()) {
            try {
                owned.pop().close();
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new AssertionError(e); // nothing here declares one
            }
        }
    }

    @Override
    public String toString() {
        return "clients %s on %s, taking part: %s".formatted(numbers, device.name(), Arrays.toString(runs().toArray()));
    }
}
