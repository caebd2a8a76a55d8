package org.fedcomuon.federation;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.IntStream;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.MeanWeights;
import org.fedcomuon.device.NcclReduction;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.ClientStore;
import org.fedcomuon.method.Method;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Problem;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A method on a problem: T local steps in rounds of tau, over any list of devices. Results are bit-identical for every
 * list of devices.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="federation"}
 *
 * <p>A run with checkpoints can be resumed from them: {@snippet file="org/fedcomuon/SnippetsIT.java" region="resume"}
 *
 * <p>Thread-safe. {@link #run} may be called once, and starts a platform thread for each device.
 */
public final class Federation {
    private static final Logger LOG = LoggerFactory.getLogger(Federation.class);

    private final Setup setup;
    private final List<Listener> listeners;
    private final Optional<Path> recorded;
    private final Optional<RunLock> given;
    private final ThreadGroup own = new ThreadGroup("federation");
    private @Nullable RunMonitor monitor;
    private boolean stopBeforeStart;

    private Federation(Setup setup, List<Listener> listeners, Optional<Path> recorded, Optional<RunLock> given) {
        this.setup = setup;
        this.listeners = listeners;
        this.recorded = recorded;
        this.given = given;
    }

    /** Starts describing a run. */
    public static Builder of(Problem problem, Method method) {
        return new Builder(problem, method);
    }

    /**
     * Runs to the end, or until {@link #stop}.
     *
     * @throws CheckpointException when the run cannot be resumed from the given checkpoint, or cannot write one
     * @throws ClientFaultException when a client fails and the policy is to fail
     * @throws org.fedcomuon.method.DivergedException when the numbers leave the range of floats
     * @throws RunLock.InUseException when another run has the directory of this one
     * @throws RunLock.LostException when another process has taken this one for dead, and its directory over
     * @throws InterruptedException when the calling thread is interrupted; the run has then stopped as by {@link #stop}
     */
    public Result run() throws InterruptedException {
        try (RunLock taken = given.isPresent() ? null : lock().orElse(null)) {
            return run(given.or(() -> Optional.ofNullable(taken)));
        }
    }

    /** Takes the lock of the directory of this run, if it is this process that leads the run and writes there. */
    private Optional<RunLock> lock() {
        boolean leads = setup.cluster()
                .map(cluster -> cluster.self() == 0 && !cluster.keepsLock())
                .orElse(true);
        Optional<Path> directory = recorded.or(() -> setup.store().map(CheckpointStore::directory));
        if (!leads || directory.isEmpty()) {
            return Optional.empty();
        }
        try {
            RunLock lock = RunLock.take(directory.get());
            lock.notes().forEach(note -> LOG.warn("{}: {}", setup.name(), note));
            return Optional.of(lock);
        } catch (RunLock.InUseException e) {
            setup.cluster().ifPresent(cluster -> cluster.fail(String.valueOf(e.getMessage())));
            throw e;
        } catch (IOException e) {
            throw recorded.isPresent()
                    ? new UncheckedIOException(e)
                    : new CheckpointException.Unwritten(String.valueOf(e.getMessage()), e);
        }
    }

    private Result run(Optional<RunLock> lock) throws InterruptedException {
        if (setup.resume().isEmpty() && lock.isPresent()) { // another run may have ended here since this one was built
            recorded.ifPresent(directory -> {
                if (new RunFiles(directory).areTaken()) {
                    throw new IllegalStateException(RunFiles.taken(directory));
                }
            });
        }
        if (!setup.cluster().map(Cluster::isRejoining).orElse(false)) {
            setup.store().ifPresent(this::requireOwn);
        }
        @Nullable
        SafetensorsFile resumed =
                setup.resume().map(path -> Checkpoint.open(path, setup)).orElse(null);
        try {
            long faults = resumed == null ? 0 : Checkpoint.Counters.of(resumed).faults();
            RunMonitor mine = begin(faults, lock);
            try {
                setup.warnings().forEach(mine::warn);
                Result result = run(mine, resumed);
                mine.ended(result);
                return result;
            } catch (RuntimeException | Error | InterruptedException e) {
                mine.failed(e);
                throw e;
            }
        } finally {
            if (resumed != null) {
                Checkpoint.close(resumed);
            }
        }
    }

    /**
     * Runs in the background, on threads of its own. May be called once, instead of {@link #run}.
     *
     * @return a handle to wait for the run and to stop it
     */
    public FederationRun start() {
        return new FederationRun(this, setup.name());
    }

    /** A later checkpoint of an older run would be taken for the newest of this one. */
    private void requireOwn(CheckpointStore store) {
        Optional<Path> resume = setup.resume().map(path -> path.toAbsolutePath().normalize());
        Path directory = store.directory().toAbsolutePath().normalize();
        if (store.newest().isPresent()
                && !resume.equals(Optional.of(directory))
                && !resume.map(Path::getParent).equals(Optional.of(directory))) {
            throw new CheckpointException(
                    "%s holds the checkpoints of a run already; resume from it, or choose another directory"
                            .formatted(store.directory()));
        }
    }

    private synchronized RunMonitor begin(long faults, Optional<RunLock> lock) {
        if (monitor != null) {
            throw new IllegalStateException("a federation runs once");
        }
        monitor = new RunMonitor(setup.name(), listeners, faults, lock);
        if (stopBeforeStart) {
            monitor.stop();
        }
        return monitor;
    }

    /**
     * Returns whether a thread was started by the run, directly or not: one that waits for the run there would wait for
     * ever.
     */
    boolean hasStarted(Thread thread) {
        ThreadGroup group = thread.getThreadGroup();
        return group != null && own.parentOf(group);
    }

    /**
     * Requests that the run end after the current step, with a checkpoint if it keeps any. Returns immediately;
     * {@link #run} returns when the run has ended. A step ends when all its oracles have returned; they are not
     * interrupted.
     */
    public synchronized void stop() {
        stopBeforeStart = true;
        if (monitor != null) {
            monitor.stop();
        }
    }

    private Result run(RunMonitor mine, @Nullable SafetensorsFile resumed) throws InterruptedException {
        int devices = setup.devices().size();
        var shared = new SharedState(
                devices,
                setup.members(),
                setup.participation().count(),
                setup.evaluator().flatMap(evaluator -> evaluator.onDevices(setup.devices())));
        var results = new @Nullable Result[devices];
        var failures = new @Nullable Throwable[devices];
        var threads = new ArrayList<Thread>();
        for (int i = 0; i < devices; i++) {
            int self = i;
            threads.add(Thread.ofPlatform()
                    .group(own)
                    .name("federation-" + setup.devices().get(i))
                    .start(() -> {
                        try {
                            results[self] = new DeviceRun(setup, shared, mine, self, resumed).run();
                        } catch (Throwable e) { // rethrown by the caller's thread
                            failures[self] = e;
                            shared.barrier.abort();
                        } finally {
                            shared.departure.arriveAndDeregister();
                        }
                    }));
        }
        boolean interrupted = false;
        for (Thread thread : threads) {
            while (thread.isAlive()) {
                try {
                    thread.join();
                } catch (InterruptedException e) {
                    interrupted = true;
                    mine.stop();
                }
            }
        }
        shared.kept.ifPresent(ClientStore::close);
        try {
            throwFirst(failures);
        } catch (RuntimeException | Error e) {
            if (!(e instanceof MemberFailedException)) {
                setup.cluster().ifPresent(cluster -> cluster.fail(String.valueOf(e.getMessage())));
            }
            throw e;
        }
        if (interrupted) {
            throw new InterruptedException("the run has been stopped");
        }
        Result result = results[0];
        if (result == null) {
            throw new AssertionError("device 0 returned nothing");
        }
        return result;
    }

    /**
     * Deterministic: of several devices that failed in one step, the first, but rather one that failed itself than one
     * that noticed.
     */
    private static void throwFirst(@Nullable Throwable[] failures) {
        @Nullable Throwable first = null;
        for (boolean elsewhere : new boolean[] {false, true}) {
            for (Throwable failure : failures) {
                if (failure != null
                        && !(failure instanceof DeviceBarrier.Aborted)
                        && isElsewhere(failure) == elsewhere) {
                    if (first == null) {
                        first = failure;
                    } else {
                        first.addSuppressed(failure);
                    }
                }
            }
        }
        switch (first) {
            case null -> {}
            case RuntimeException e -> throw e;
            case Error e -> throw e;
            default -> throw new AssertionError(first);
        }
    }

    private static boolean isElsewhere(Throwable failure) {
        return failure instanceof DeviceException.Fault fault && fault.isElsewhere();
    }

    /** Describes a run. Every value but the number of steps has a default. Not thread-safe. */
    public static final class Builder {
        /** As in the presets. */
        private static final long RECORDED_ROUNDS = 10;

        private final Problem problem;
        private final Method method;
        private String name;
        private List<String> devices = List.of("cpu:0");
        private @Nullable Cluster cluster;
        private double @Nullable [] speeds;
        private ExchangeKind exchange = ExchangeKind.AUTO;
        private long exchangeSection;
        private boolean exchangeCopies;
        private Duration ncclTimeout = NcclReduction.Group.defaultTimeLimit();
        private int threads = Runtime.getRuntime().availableProcessors();
        private int workers = threads;
        private long iterations;
        private int tau = 1;
        private long seed;
        private double participation = 1;
        private OptionalInt cohort = OptionalInt.empty();
        private double @Nullable [] probabilities;
        private List<Double> weights;
        private ClientFault.Policy policy = ClientFault.Policy.FAIL;
        private @Nullable Floats initial;
        private @Nullable Path recorded;
        private @Nullable RunLock lock;
        private long evaluateEvery;
        private @Nullable Evaluator evaluator;
        private long checkpointEvery = 1;
        private @Nullable CheckpointStore store;
        private @Nullable Path resume;
        private final Map<String, String> description = new LinkedHashMap<>();
        private final List<Listener> listeners = new ArrayList<>();

        private Builder(Problem problem, Method method) {
            this.problem = problem;
            this.method = method;
            name = method.name();
            weights = Collections.nCopies(problem.clients(), 1.0);
        }

        /**
         * Sets the name of this run in logs, flight recordings, meters and threads. The default is the method's name.
         */
        public Builder name(String value) {
            name = value;
            return this;
        }

        /**
         * Sets the devices by name. Clients are placed on them so that all finish at about the same time, by
         * {@link Problem#cost} and {@link #speeds}. The default is {@code cpu:0}.
         */
        public Builder devices(String... names) {
            devices = List.of(names);
            return this;
        }

        /**
         * Runs as one member of a cluster, with one device. The clients are placed on the members, and member 0
         * notifies listeners, evaluates and writes files. Every member must describe the same run; checkpoints go to a
         * directory that all can reach. The run does not close the cluster.
         */
        public Builder cluster(Cluster value) {
            cluster = value;
            return this;
        }

        /**
         * Sets the relative speed of each device, such as 2 and 1. The default is equal speeds. Faster devices are
         * given more clients. Does not change results.
         */
        public Builder speeds(double... values) {
            speeds = values.clone();
            return this;
        }

        /**
         * Sets how means over several devices are computed. The default is {@link ExchangeKind#AUTO}. Does not change
         * results.
         */
        public Builder exchange(ExchangeKind kind) {
            exchange = kind;
            return this;
        }

        /**
         * Sets how long a device waits for the others in an exchange by {@link ExchangeKind#NCCL}; a run in which one
         * does not come fails then. The default is {@link NcclReduction.Group#defaultTimeLimit}.
         */
        public Builder ncclTimeout(Duration value) {
            ncclTimeout = value;
            return this;
        }

        /** Makes exchanges work on so many elements at a time; 0 to choose. Does not change results. For tests. */
        Builder exchangeSection(long elements) {
            exchangeSection = elements;
            return this;
        }

        /** Makes devices copy even if they reach each other's memory. Does not change results. For tests. */
        Builder exchangeCopies() {
            exchangeCopies = true;
            return this;
        }

        /**
         * Sets the number of threads that the kernels of all devices together use. The default is all cores. Does not
         * change results.
         */
        public Builder threads(int count) {
            threads = count;
            return this;
        }

        /**
         * Sets the number of threads that evaluate the oracles of all devices together, one client at a time each. The
         * default is all cores. Does not change results.
         */
        public Builder workers(int count) {
            workers = count;
            return this;
        }

        /** Sets T, the number of local steps. */
        public Builder iterations(long count) {
            iterations = count;
            return this;
        }

        /** Sets the number of local steps per round. The default is 1. */
        public Builder tau(int steps) {
            tau = steps;
            return this;
        }

        /** Sets the seed of all samples and of partial participation. The default is 0. */
        public Builder seed(long value) {
            seed = value;
            return this;
        }

        /**
         * Sets the share of clients that take part in a round; at least one does. The default is 1. Those that sit out
         * hold nothing but what the method keeps private, and are asked for ({@link Problem#client}) when they take
         * part: memory and time depend on the number that takes part, not on that of all.
         */
        public Builder participation(double share) {
            participation = share;
            cohort = OptionalInt.empty();
            return this;
        }

        /** Sets the number of clients that take part in a round, instead of their share. */
        public Builder cohort(int count) {
            cohort = OptionalInt.of(count);
            return this;
        }

        /**
         * Draws the clients of a round one after the other, each with a probability in proportion to these numbers,
         * such as the number of a client's examples, among those that are left. By default all are equally likely. It
         * does not change the {@link #weights} of means: a mean over clients that are drawn by their number of
         * examples, with equal weights, approaches the mean over all clients that is weighted by the number of
         * examples.
         */
        public Builder probabilities(double... values) {
            probabilities = values.clone();
            return this;
        }

        /**
         * Sets the weight of each client in every average, such as its number of examples. The default is equal
         * weights.
         */
        public Builder weights(double... values) {
            weights = Arrays.stream(values).boxed().toList();
            return this;
        }

        /** Sets what happens when a client fails. The default is {@link ClientFault.Policy#FAIL}. */
        public Builder onFault(ClientFault.Policy value) {
            policy = value;
            return this;
        }

        /** Sets W0, the same for all clients. The default is {@link Problem#initial}, or else zero. */
        public Builder initial(float... values) {
            return initial(Floats.of(values.clone()));
        }

        /** Sets W0 without a copy. It is read when the run begins, and must not change until then. */
        public Builder initial(Floats values) {
            initial = values;
            return this;
        }

        /**
         * Evaluates the average model before the first step, every {@code everySteps} steps, and after the last. A run
         * that is resumed from a checkpoint does not evaluate before its first step.
         */
        public Builder evaluate(long everySteps, Evaluator judge) {
            evaluateEvery = everySteps;
            evaluator = judge;
            return this;
        }

        /**
         * Keeps the last two checkpoints in a directory. One is written every {@code everyRounds} rounds, at the end,
         * and when the run is stopped.
         */
        public Builder checkpoints(Path directory, long everyRounds) {
            store = new CheckpointStore(directory);
            checkpointEvery = everyRounds;
            return this;
        }

        /** Resumes from a checkpoint: a file, or the newest of a directory. It must be of this problem and method. */
        public Builder resume(Path checkpoint) {
            resume = checkpoint;
            return this;
        }

        /** Adds a property of the problem that a checkpoint must agree with to be resumed, such as a dataset's hash. */
        public Builder describe(String key, String value) {
            description.put(key, value);
            return this;
        }

        /**
         * Leaves the files of the run in a directory, as {@code fedcomuon train} does: settings, metrics, the metrics
         * of clients, a summary, the model, a page and, unless {@link #checkpoints} names another directory,
         * checkpoints every {@value #RECORDED_ROUNDS} rounds. {@link RunFiles} documents them. A directory that holds a
         * run already is refused, unless that run is resumed; {@link RunFiles#unused} names one that no run has yet.
         * The page needs {@code fedcomuon-lab} on the class path. While the run is under way, no other run can use the
         * directory ({@link RunLock}); the same holds for that of {@link #checkpoints} where nothing is recorded.
         */
        public Builder record(Path directory) {
            recorded = directory;
            return this;
        }

        /**
         * Runs under a lock that was taken before, in place of one that the run takes itself. The caller closes it. If
         * it is lost to another process, the run fails before it writes anything more.
         */
        public Builder lock(RunLock taken) {
            lock = taken;
            return this;
        }

        /** Adds a listener. */
        public Builder listener(Listener listener) {
            listeners.add(listener);
            return this;
        }

        /**
         * Creates the run.
         *
         * @throws IllegalArgumentException when a value is impossible; the message names it
         */
        public Federation build() {
            int clients = problem.clients();
            int members = cluster == null ? devices.size() : cluster.members();
            String kind = cluster == null ? "device" : "member";
            require(
                    !devices.isEmpty() && members <= clients,
                    "%d %ss for %d clients; 1 to as many as there are clients".formatted(members, kind, clients));
            require(
                    cluster == null || devices.size() == 1,
                    "%d devices for a member of a cluster; it has one".formatted(devices.size()));
            require(
                    cluster == null || exchange == ExchangeKind.AUTO,
                    "exchange = %s: it is for the devices of one process, not for members of a cluster"
                            .formatted(exchange));
            require(
                    devices.stream().distinct().count() == devices.size(),
                    "a device is named twice: %s".formatted(devices));
            double[] pace = speeds == null
                    ? IntStream.range(0, members).mapToDouble(i -> 1).toArray()
                    : speeds;
            require(pace.length == members, "%d speeds for %d %ss".formatted(pace.length, members, kind));
            positive(pace, "the speed of " + kind + " %d");
            require(
                    exchange != ExchangeKind.NCCL || devices.stream().noneMatch(name -> name.startsWith("cpu")),
                    "exchange = nccl: NCCL works on GPUs, not on %s".formatted(String.join(",", devices)));
            for (int client = 0; client < clients; client++) {
                positive(problem.cost(client), "the cost of client %d", client);
            }
            atLeast("threads", threads, 1);
            atLeast("workers", workers, 1);
            atLeast("iterations", iterations, 1);
            atLeast("tau", tau, 1);
            atLeast("steps between evaluations", evaluateEvery, 0);
            atLeast("rounds between checkpoints", checkpointEvery, 1);
            Participation takingPart = takingPart();
            require(
                    takingPart.count() <= MeanWeights.MOST_TERMS,
                    "%d clients in a round; a mean has at most %d terms"
                            .formatted(takingPart.count(), MeanWeights.MOST_TERMS));
            require(weights.size() == clients, "%d weights for %d clients".formatted(weights.size(), clients));
            for (int client = 0; client < clients; client++) {
                positive(weights.get(client), "the weight of client %d", client);
            }
            requireNoMistakes();
            Floats w0 = start();
            method.validate(iterations, tau);
            require(recorded == null || resume != null || !new RunFiles(recorded).areTaken(), RunFiles.taken(recorded));
            var observers = new ArrayList<>(listeners);
            if (recorded != null && (cluster == null || cluster.self() == 0)) {
                observers.addFirst(new RunRecorder(recorded, settings(), Map::of, step -> Map.of()));
            }
            CheckpointStore kept = store == null && recorded != null
                    ? new CheckpointStore(new RunFiles(recorded).checkpoints())
                    : store;
            return new Federation(
                    new Setup(
                            name,
                            problem,
                            method,
                            devices,
                            Optional.ofNullable(cluster),
                            new Seating(
                                    takingPart, problem::cost, pace, cluster != null, Math.ceilDiv(iterations, tau)),
                            exchange,
                            exchangeSection,
                            exchangeCopies,
                            ncclTimeout,
                            threads,
                            workers,
                            iterations,
                            tau,
                            seed,
                            takingPart,
                            weights,
                            policy,
                            w0,
                            evaluateEvery,
                            Optional.ofNullable(evaluator),
                            store == null ? RECORDED_ROUNDS : checkpointEvery,
                            Optional.ofNullable(kept),
                            Optional.ofNullable(resume),
                            Collections.unmodifiableMap(new LinkedHashMap<>(description))),
                    List.copyOf(observers),
                    Optional.ofNullable(recorded),
                    Optional.ofNullable(lock));
        }

        /** Refuses a problem with mistakes, naming every client that has one. */
        private void requireNoMistakes() {
            var mistakes = new ArrayList<String>();
            for (int k = 0; k < problem.clients(); k++) {
                for (String mistake : problem.mistakes(k)) {
                    mistakes.add("client %d: %s".formatted(k, mistake));
                }
            }
            require(mistakes.isEmpty(), String.join("; ", mistakes));
        }

        private Participation takingPart() {
            int clients = problem.clients();
            require(
                    participation > 0 && participation <= 1,
                    "participation = %s; it is to be more than 0 and at most 1".formatted(participation));
            require(
                    cohort.isEmpty() || (cohort.getAsInt() >= 1 && cohort.getAsInt() <= clients),
                    "cohort = %d; it is to be at least 1 and at most %d, the number of clients"
                            .formatted(cohort.orElse(0), clients));
            int count = cohort.orElse((int) Math.max(1, Math.round(participation * clients)));
            if (probabilities == null) {
                return Participation.of(clients, count, seed);
            }
            require(
                    probabilities.length == clients,
                    "%d probabilities for %d clients".formatted(probabilities.length, clients));
            int possible = 0;
            for (int client = 0; client < clients; client++) {
                double value = probabilities[client];
                require(
                        value >= 0 && value < Double.POSITIVE_INFINITY,
                        "the probability of client %d is %s; it is to be at least 0 and finite"
                                .formatted(client, value));
                possible += value > 0 ? 1 : 0;
            }
            require(
                    possible >= count,
                    "%d clients in a round, but only %d have a probability above 0".formatted(count, possible));
            return Participation.of(probabilities, count, seed);
        }

        private Floats start() {
            long parameters = problem.layout().length();
            Floats w0 = initial != null ? initial : problem.initial(seed).orElseGet(() -> Floats.zeros(parameters));
            require(
                    w0.length() == parameters,
                    "%d initial values for %d parameters".formatted(w0.length(), parameters));
            for (long i = 0; i < w0.length(); i++) {
                float value = w0.get(i);
                if (!Float.isFinite(value)) {
                    throw new IllegalArgumentException("initial value %d is %s".formatted(i, value));
                }
            }
            return w0;
        }

        /** Returns the settings for the record of the run. */
        private Map<String, String> settings() {
            var all = new LinkedHashMap<String, String>();
            all.put("preset", name);
            all.put("method", method.name());
            method.parameters().forEach((parameter, value) -> all.put(parameter, value.toString()));
            all.put("seed", Long.toString(seed));
            all.put("clients", Integer.toString(problem.clients()));
            all.put("iterations", Long.toString(iterations));
            all.put("tau", Integer.toString(tau));
            all.put("participation", Double.toString(participation));
            cohort.ifPresent(count -> all.put("cohort", Integer.toString(count)));
            all.put("onFault", policy.toString().toLowerCase(Locale.ROOT));
            all.put("innerDimension", Integer.toString(problem.innerDimension()));
            all.put("parameters", Long.toString(problem.layout().length()));
            all.putAll(description);
            return all;
        }

        private static void positive(double[] values, String name) {
            for (int i = 0; i < values.length; i++) {
                positive(values[i], name, i);
            }
        }

        private static void positive(double value, String name, int number) {
            if (!(value > 0 && value < Double.POSITIVE_INFINITY)) { // a message for each of a million would take long
                throw new IllegalArgumentException(
                        "%s is %s; it is to be more than 0 and finite".formatted(name.formatted(number), value));
            }
        }

        private static void atLeast(String name, long value, long least) {
            require(value >= least, "%s = %d; at least %d is needed".formatted(name, value, least));
        }

        private static void require(boolean holds, String message) {
            if (!holds) {
                throw new IllegalArgumentException(message);
            }
        }
    }

    /**
     * How devices of one process exchange what a mean over their clients is computed from. Means are exact before they
     * are rounded, so results are bit-identical with each of these.
     */
    public enum ExchangeKind {
        /** By NCCL between GPUs where it is installed, and otherwise as {@link #PEER}. */
        AUTO,

        /** By our own kernels, which read the memory of other devices, or copies of it. */
        PEER,

        /** By NCCL, between GPUs of one kind. A run fails where it is not installed. */
        NCCL;

        /** Returns the name in settings and records. */
        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** Every client of a round has been dropped, so there is nothing to average. */
    public static final class NoClientsException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        NoClientsException() {
            super("no client is left in the round: every one that took part has failed, or has weight 0");
        }
    }
}
