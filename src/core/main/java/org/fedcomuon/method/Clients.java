package org.fedcomuon.method;

import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Problem;
import org.jspecify.annotations.Nullable;

/**
 * The clients on one device: their oracles, their variables, and which of them take part in the round. A method creates
 * its {@link Variable}s here and evaluates the oracles of all clients in one call. Where clients sit out rounds, only
 * those of the round are here ({@link #seat}), each in a place that others had before.
 *
 * <p>Not thread-safe; confined to the device thread. {@link #close} frees every variable.
 */
public final class Clients implements AutoCloseable {
    private final Device device;
    private final Layout layout;
    private final int dimension;
    private final int total;
    private final int capacity;
    private final Roster roster = new Roster();
    private final Sampling sampling;
    private final Oracles oracles;
    private final PhaseTimer timer = new PhaseTimer();
    private final Deque<AutoCloseable> owned = new ArrayDeque<>();
    private final List<Variable> variables = new ArrayList<>(); // of all kinds
    private final List<Variable> state = new ArrayList<>();
    private final List<Variable> privates = new ArrayList<>(); // of the state
    private final Variable weights;
    private List<Integer> numbers;
    private final BitSet uninitialized = new BitSet(); // clients here whose private state is not set yet
    private int seatings;
    private long step = -1;
    private @Nullable Variable scalar;
    private double scalarValue;

    /**
     * Creates clients that stay: {@link #seat} is not called.
     *
     * @param numbers of the clients placed here, at least one, ascending
     * @param seed of the samples
     * @param onFault is notified of every fault that the policy tolerates
     * @param workerCount the number of threads that evaluate oracles
     */
    public Clients(
            Device device,
            Problem problem,
            List<Integer> numbers,
            long seed,
            ClientFault.Policy policy,
            Consumer<ClientFault> onFault,
            int workerCount) {
        this(device, problem, numbers, numbers.size(), seed, policy, onFault, workerCount);
    }

    /**
     * Creates the clients of the first round.
     *
     * @param numbers of the clients placed here, ascending
     * @param capacity the largest number of clients that are here at a time, at least 1
     * @param seed of the samples
     * @param onFault is notified of every fault that the policy tolerates
     * @param workerCount the number of threads that evaluate oracles
     */
    public Clients(
            Device device,
            Problem problem,
            List<Integer> numbers,
            int capacity,
            long seed,
            ClientFault.Policy policy,
            Consumer<ClientFault> onFault,
            int workerCount) {
        if (capacity < 1) {
            throw new IllegalArgumentException("no clients at all");
        }
        this.device = device;
        this.layout = problem.layout();
        this.dimension = problem.innerDimension();
        this.total = problem.clients();
        this.capacity = capacity;
        this.numbers = requireAscending(numbers);
        sampling = new Sampling(seed, capacity);
        oracles = new Oracles(this, problem, sampling, policy, onFault, workerCount);
        owned.push(oracles);
        try {
            seatHere();
            weights = state("W", n());
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    private List<Integer> requireAscending(List<Integer> clients) {
        int count = clients.size();
        for (int client : clients) {
            Objects.checkIndex(client, total);
        }
        if (count > capacity || IntStream.range(1, count).anyMatch(k -> clients.get(k - 1) >= clients.get(k))) {
            throw new IllegalArgumentException("clients %s are not at most %d, ascending".formatted(clients, capacity));
        }
        return List.copyOf(clients);
    }

    private void seatHere() {
        roster.seat(count());
        sampling.seat(numbers);
        oracles.seat(numbers);
        seatings++;
    }

    /**
     * Keeps what is private to the clients here: a client that another round brings here or elsewhere goes on with it.
     */
    public void save(ClientStore store) {
        for (int k = 0; k < count(); k++) {
            if (!uninitialized.get(k)) {
                int client = number(k);
                long at = 0;
                for (Variable variable : privates) {
                    variable.buffer().copyOut(k * variable.length(), store.values(client, at, variable.length()));
                    at += variable.length();
                }
                store.putDraws(client, sampling.innerDraws()[k], sampling.outerDraws()[k]);
                store.put(client);
            }
        }
    }

    /**
     * Other clients take part from now on, here: they have what they kept, and the server's value of all other state.
     * All devices have {@linkplain #save saved} before. Clients that are here for the first time have private state of
     * zeros; {@link #admitNewcomers} says which, for {@link Method.Replica#join}.
     *
     * @param clients that are here from now on, ascending, at most as many as there is room for
     */
    public void seat(List<Integer> clients, ClientStore store) {
        numbers = requireAscending(clients);
        seatHere();
        state.stream()
                .filter(variable -> !variable.isShared() && !privates.contains(variable))
                .forEach(Variable::respread);
        uninitialized.clear();
        load(store);
    }

    /** Brings what the clients here have kept. */
    public void load(ClientStore store) {
        for (int k = 0; k < count(); k++) {
            int client = number(k);
            uninitialized.set(k, !store.has(client));
            long at = 0; // of a record that is all zeros if the client is new
            for (Variable variable : privates) {
                long length = variable.length();
                variable.buffer().copyIn(k * length, store.values(client, at, length));
                variable.becomeDifferent();
                at += length;
            }
            sampling.innerDraws()[k] = store.draws(client).getAtIndex(ValueLayout.JAVA_LONG, 0);
            sampling.outerDraws()[k] = store.draws(client).getAtIndex(ValueLayout.JAVA_LONG, 1);
        }
    }

    /** Lets only those clients take part that are here for the first time. Returns whether there are any. */
    public boolean admitNewcomers() {
        var newcomers = new boolean[count()];
        for (int k = 0; k < newcomers.length; k++) {
            newcomers[k] = uninitialized.get(k);
        }
        roster.set(newcomers);
        return !uninitialized.isEmpty();
    }

    /** Lets all clients here take part again, but those newcomers that were dropped. */
    public void admitAll() {
        var all = new boolean[count()];
        for (int k = 0; k < all.length; k++) {
            all[k] = !uninitialized.get(k) || roster.isActive(k);
            uninitialized.set(k, !all[k]);
        }
        roster.set(all);
    }

    /** Returns how often clients have been seated. */
    int seatings() {
        return seatings;
    }

    /** Returns the device that the clients are placed on. */
    public Device device() {
        return device;
    }

    /** Returns the layout of the model's parameters. */
    public Layout layout() {
        return layout;
    }

    /** Returns d, the dimension of the inner function g. */
    public int d() {
        return dimension;
    }

    /** Returns n, the number of all parameters together. */
    public long n() {
        return layout.length();
    }

    /** Returns K, the number of all clients, on whatever device. */
    public int total() {
        return total;
    }

    /** Returns the number of clients on this device. */
    public int count() {
        return numbers.size();
    }

    /** Returns the largest number of clients that are on this device in any round. */
    public int capacity() {
        return capacity;
    }

    /**
     * Returns the number that client {@code k} of this device has among all clients. Numbers ascend, but may have gaps.
     */
    public int number(int k) {
        return numbers.get(k);
    }

    /** Returns W, a state variable that every method has. It starts as the common W0. */
    public Variable weights() {
        return weights;
    }

    /**
     * Creates a variable that is part of the state, which checkpoints hold. It starts as zero. At the end of a round
     * all clients have the same value, by an average or by {@link Variable#receive}: the server's, with which those
     * begin that take part in the next round.
     */
    public Variable state(String name, long length) {
        return add(variable(name, length, false));
    }

    /**
     * Creates a state variable that stays with its client: a client that sits out rounds goes on with the value that it
     * had. It starts as zero, or as {@link Method.Replica#join} sets it.
     */
    public Variable privateState(String name, long length) {
        Variable variable = state(name, length);
        privates.add(variable);
        return variable;
    }

    /** Creates a state variable with one value for all clients, as the server would hold it. It starts as zero. */
    public Variable sharedState(String name, long length) {
        return add(variable(name, length, true));
    }

    /** Creates a variable that holds nothing from one step to the next. */
    public Variable scratch(String name, long length) {
        return variable(name, length, false);
    }

    /** Creates a scratch variable with one value for all clients. */
    public Variable sharedScratch(String name, long length) {
        return variable(name, length, true);
    }

    private Variable variable(String name, long length, boolean shared) {
        var variable = new Variable(this, name, length, shared);
        variables.add(variable);
        return variable;
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

    Buffer.Mirror mirror(Buffer buffer) {
        Buffer.Mirror mirror = buffer.mirror();
        owned.push(mirror);
        return mirror;
    }

    /** Returns a scratch variable of one number for all clients; a number that stays the same is written once. */
    Variable scalar(double value) {
        if (scalar == null) {
            scalar = sharedScratch("scalar", 1);
        }
        if (scalarValue != value) {
            scalar.fill(value);
            scalarValue = value;
        }
        return scalar;
    }

    <T extends AutoCloseable> T own(T resource) {
        owned.push(resource);
        return resource;
    }

    /** Returns the state variables, in the order in which they were created. */
    public List<Variable> state() {
        return List.copyOf(state);
    }

    /** Returns those of the state variables that stay with their client, in the same order. */
    public List<Variable> privateState() {
        return List.copyOf(privates);
    }

    /**
     * Returns the number of samples of g that each client has drawn. The array is the state itself, for checkpoints.
     */
    public long[] innerDraws() {
        return sampling.innerDraws();
    }

    /**
     * Returns the number of samples of f that each client has drawn. The array is the state itself, for checkpoints.
     */
    public long[] outerDraws() {
        return sampling.outerDraws();
    }

    /** Returns the current step; -1 before the first. */
    public long step() {
        return step;
    }

    /** Says which step begins, for messages. */
    public void enter(long newStep) {
        step = newStep;
        device.mark(newStep + 1); // the first step is preceded by the beginning
    }

    /** Sets which clients take part from now on. */
    public void admit(boolean[] takingPart) {
        roster.set(takingPart);
    }

    /** Returns whether client {@code k} of this device takes part. */
    public boolean takesPart(int k) {
        return roster.isActive(k);
    }

    /** Client {@code k} of this device no longer takes part in this round. */
    void drop(int k) {
        roster.drop(k);
    }

    List<Run> runs() {
        return roster.runs();
    }

    /** Draws a sample for each client: {@code value = g(w; xi)}, {@code jacobian = grad g(w; xi)}. */
    public void inner(Variable w, Variable value, Variable jacobian) {
        oracles.inner(w, value, jacobian);
    }

    /** Draws a sample for each client and evaluates g and its Jacobian at both points on it. */
    public void innerAtTwo(
            Variable w, Variable value, Variable jacobian, Variable wOld, Variable valueOld, Variable jacobianOld) {
        oracles.innerAtTwo(w, value, jacobian, wOld, valueOld, jacobianOld);
    }

    /** Draws a sample for each client: {@code gradient = grad f(y; zeta)}. */
    public void outerGradient(Variable y, Variable gradient) {
        oracles.outerGradient(y, gradient);
    }

    /** Draws a sample for each client and evaluates the gradient of f at both points on it. */
    public void outerGradientAtTwo(Variable y, Variable gradient, Variable yOld, Variable gradientOld) {
        oracles.outerGradientAtTwo(y, gradient, yOld, gradientOld);
    }

    /**
     * Draws a sample for each client: the gradient that single-level methods descend along. With d = 1 it is
     * {@code grad g(w; xi)}, the gradient of the plain loss, and f does not matter. With d > 1 the components of g are
     * no losses by themselves, so it is {@code grad g(w; xi) grad f(g(w; xi); zeta)}, the gradient of f at the value of
     * one sample. That is biased wherever f is not affine, which is what compositional methods have a tracker for; a
     * run says so once by a warning, if the method {@link Method#isSingleLevel declares itself}.
     */
    public void gradient(Variable w, Variable gradient) {
        oracles.gradient(w, gradient);
    }

    /**
     * Draws a sample for each client: the loss that {@link #gradient} is of, and that gradient. It is {@code g(w; xi)}
     * if d = 1, and {@code f(g(w; xi); zeta)} otherwise.
     *
     * @param loss receives one number per client
     */
    public void loss(Variable w, Variable loss, Variable gradient) {
        oracles.loss(w, loss, gradient);
    }

    /**
     * Draws a sample for each client: the Hessian of the loss that {@link #gradient} is of, times {@code direction};
     * see {@link HessianProduct}.
     */
    public void hessianProduct(Variable w, Variable direction, Variable product) {
        oracles.hessianProduct(w, direction, product);
    }

    /** Returns whether every client here is a {@link HessianProduct}. */
    public boolean hasHessianProduct() {
        return oracles.haveHessianProduct();
    }

    /**
     * Returns the loss of client {@code k} of this device, averaged over the samples it has drawn since
     * {@link #forgetLosses}; NaN if there were none, and always NaN for d > 1, where the components of g are no losses
     * and oracles do not evaluate f itself. For observers; no method uses it.
     */
    public double meanLoss(int k) {
        return oracles.meanLoss(k);
    }

    /** Resets {@link #meanLoss}. */
    public void forgetLosses() {
        oracles.forgetLosses();
    }

    /**
     * Names an element: a value of g or f has components; everything else has the blocks of the model, once or d times.
     */
    String place(Variable variable, long index) {
        boolean component = variable.length() % n() != 0 || (variable.length() == d() && d() != n());
        return component
                ? "component %d".formatted(index)
                : "block '%s'".formatted(layout.blockAt(index % n()).name());
    }

    /**
     * Returns what a NaN or infinity that the device has found means: a fault of a client if an oracle brought it, a
     * divergence if it is in another variable, and otherwise the exception itself.
     */
    public RuntimeException named(DeviceException.NotFinite e) {
        for (Variable variable : variables) {
            Device.Position place = variable.find(e).orElse(null);
            if (place != null) {
                int k = (int) place.client();
                long when = e.mark().isPresent() ? e.mark().getAsLong() - 1 : step;
                RuntimeException named = oracles.haveWritten(variable)
                        ? oracles.notFinite(variable, k, place.index(), when)
                        : new DivergedException(when, number(k), variable.name(), place(variable, place.index()));
                named.addSuppressed(e); // has the operation
                return named;
            }
        }
        return e;
    }

    /**
     * Waits until all operations on the clients are done.
     *
     * @throws DivergedException if a state is not finite
     * @throws ClientFaultException if the result of an oracle is not finite
     */
    public void settle() {
        try {
            device.synchronize();
        } catch (DeviceException.NotFinite e) {
            throw named(e);
        }
    }

    /**
     * Refuses a variable that is not finite, in the clients that take part. On a GPU the exception is thrown by the
     * next call that waits, such as {@link #settle}.
     *
     * @throws DivergedException naming the step, the client and the block
     */
    public void requireConverging(Variable variable) {
        try {
            for (Run run : variable.isCommon() ? List.of(new Run(0, 1)) : runs()) {
                device.requireFinite(variable.of(run));
            }
        } catch (DeviceException.NotFinite e) {
            throw named(e);
        }
    }

    /** Runs {@code work} and adds its time to a phase. */
    public void timed(Phase phase, Runnable work) {
        timer.timed(phase, work);
    }

    /** Returns the seconds spent in a phase since the beginning, up to now if it is running. */
    public double seconds(Phase phase) {
        return timer.seconds(phase);
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

    /** The phases of a device's time. */
    public enum Phase {
        /** Steps as a whole; the next three are parts of it. */
        STEP,
        /** The oracles. */
        GRADIENT,
        /** Orthogonalized and vector steps. */
        ORTHOGONALIZE,
        /** Exchanges with the server, including the wait for other devices. */
        EXCHANGE,
        /** Evaluations of the average model, which are not part of a round. */
        EVALUATE
    }
}
