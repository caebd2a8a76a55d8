package org.fedcomuon.federation;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.FaultPolicy;
import org.fedcomuon.method.Method;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Problem;
import org.jspecify.annotations.Nullable;

/**
 * A method on a problem: T local steps in rounds of tau, over any list of devices, to the same bits whatever the list.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="federation"}
 *
 * <p>One that keeps checkpoints goes on from them: {@snippet file="org/fedcomuon/SnippetsIT.java" region="resume"}
 *
 * <p>Thread-safe. {@link #run} may be called once, and makes a platform thread for each device; {@link #stop} from any
 * thread.
 */
public final class Federation {
    private final Setup setup;
    private final List<Listener> listeners;
    private final ThreadGroup own = new ThreadGroup("federation");
    private @Nullable Watch watch;
    private boolean stopBeforeStart;

    private Federation(Setup setup, List<Listener> listeners) {
        this.setup = setup;
        this.listeners = listeners;
    }

    /** Starts describing a run. */
    public static Builder of(Problem problem, Method method) {
        return new Builder(problem, method);
    }

    /**
     * Runs to the end, or until {@link #stop}.
     *
     * @throws CheckpointException when the run cannot go on from the checkpoint named, or cannot write one
     * @throws ClientFaultException when a client fails and the policy is to fail
     * @throws org.fedcomuon.method.DivergedException when the numbers leave the range of floats
     * @throws InterruptedException when the calling thread is interrupted; the run has then stopped as by {@link #stop}
     */
    public Result run() throws InterruptedException {
        if (!setup.cluster().map(Cluster::isRejoining).orElse(false)) {
            setup.store().ifPresent(this::requireOwn);
        }
        @Nullable
        SafetensorsFile resumed =
                setup.resume().map(path -> Checkpoint.open(path, setup)).orElse(null);
        try {
            long faults = resumed == null ? 0 : Checkpoint.Counters.of(resumed).faults();
            Watch mine = begin(faults);
            try {
                setup.method().warnings(setup.iterations(), setup.tau()).forEach(mine::warn);
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
     * Runs in the background, on threads of its own. May be called once, and instead of {@link #run}.
     *
     * @return how to wait for it and how to stop it
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

    private synchronized Watch begin(long faults) {
        if (watch != null) {
            throw new IllegalStateException("a federation runs once");
        }
        watch = new Watch(setup.name(), listeners, faults);
        if (stopBeforeStart) {
            watch.stop();
        }
        return watch;
    }

    /** Whether a thread was started by the run, or by one that was: who waits there for the run waits for ever. */
    boolean hasStarted(Thread thread) {
        ThreadGroup group = thread.getThreadGroup();
        return group != null && own.parentOf(group);
    }

    /**
     * Asks the run to end after the step that it is in, with a checkpoint if it keeps any. Returns at once;
     * {@link #run} returns when it is done. A step ends when all its oracles have returned: one that blocks is waited
     * for, and neither it nor its threads are interrupted.
     */
    public synchronized void stop() {
        stopBeforeStart = true;
        if (watch != null) {
            watch.stop();
        }
    }

    private Result run(Watch mine, @Nullable SafetensorsFile resumed) throws InterruptedException {
        int devices = setup.devices().size();
        var meeting = new Meeting(devices, setup.members(), setup.problem().clients());
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
                            results[self] = new DeviceRun(setup, meeting, mine, self, resumed).run();
                        } catch (Throwable e) { // rethrown by the caller's thread
                            failures[self] = e;
                            meeting.rendezvous.abort();
                        } finally {
                            meeting.departure.arriveAndDeregister();
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
     * The same one every time: of several devices that failed in one step, the first, but rather one that failed than
     * one that noticed.
     */
    private static void throwFirst(@Nullable Throwable[] failures) {
        @Nullable Throwable first = null;
        for (boolean elsewhere : new boolean[] {false, true}) {
            for (Throwable failure : failures) {
                if (failure != null && !(failure instanceof Rendezvous.Aborted) && isElsewhere(failure) == elsewhere) {
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

    /** A run being described. Every value has a default but the number of steps. Of one thread. */
    public static final class Builder {
        private final Problem problem;
        private final Method method;
        private String name;
        private List<String> devices = List.of("cpu:0");
        private @Nullable Cluster cluster;
        private double @Nullable [] speeds;
        private ExchangeKind exchange = ExchangeKind.ORDERED;
        private long exchangeChunk;
        private int threads = Runtime.getRuntime().availableProcessors();
        private int workers = threads;
        private long iterations;
        private int tau = 1;
        private long seed;
        private double participation = 1;
        private double[] weights;
        private FaultPolicy policy = FaultPolicy.FAIL;
        private Floats initial;
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
            weights = new double[problem.clients()];
            Arrays.fill(weights, 1);
            initial = Floats.zeros(problem.layout().length());
        }

        /** What logs, flight recordings, meters and threads call this run; the method's name by default. */
        public Builder name(String value) {
            name = value;
            return this;
        }

        /**
         * Where to run, by name; clients are placed on them so that all are done at about the same time, by
         * {@link Problem#cost} and {@link #speeds}. {@code cpu:0} by default.
         */
        public Builder devices(String... names) {
            devices = List.of(names);
            return this;
        }

        /**
         * Runs as one member of a cluster, with one device: the clients are placed on the members, and member 0 speaks
         * for all. Every member is to describe the same run; checkpoints go to a directory that all can reach. The
         * cluster is not closed here.
         */
        public Builder cluster(Cluster value) {
            cluster = value;
            return this;
        }

        /**
         * How fast each device is beside the others, such as 2 and 1; equal by default. Faster ones are given more
         * clients. Never changes a result.
         */
        public Builder speeds(double... values) {
            speeds = values.clone();
            return this;
        }

        /** How means over several devices are worked out; by default in client order, to the same bits on any. */
        public Builder exchange(ExchangeKind kind) {
            exchange = kind;
            return this;
        }

        /** Elements that an exchange between devices takes at a time; 0 to choose by size. For tests. */
        Builder exchangeChunk(long elements) {
            exchangeChunk = elements;
            return this;
        }

        /** How many threads the kernels of all devices together use; all cores by default. Never changes a result. */
        public Builder threads(int count) {
            threads = count;
            return this;
        }

        /**
         * How many threads evaluate the oracles of all devices together, a client at a time each; all cores by default.
         * Never changes a result.
         */
        public Builder workers(int count) {
            workers = count;
            return this;
        }

        /** T, the number of local steps. */
        public Builder iterations(long count) {
            iterations = count;
            return this;
        }

        /** Local steps a round; 1 by default. */
        public Builder tau(int steps) {
            tau = steps;
            return this;
        }

        /** Of all samples, and of who takes part; 0 by default. */
        public Builder seed(long value) {
            seed = value;
            return this;
        }

        /** The share of clients that take part in a round, at least one; all by default. */
        public Builder participation(double share) {
            participation = share;
            return this;
        }

        /** One weight a client in every average, such as its number of examples; equal by default. */
        public Builder weights(double... values) {
            weights = values.clone();
            return this;
        }

        /** What happens when a client fails; the run fails by default. */
        public Builder onFault(FaultPolicy value) {
            policy = value;
            return this;
        }

        /** W0, the same for all clients; zero by default. */
        public Builder initial(float... values) {
            return initial(Floats.of(values.clone()));
        }

        /** The same, in memory outside the heap for example; it is read when the run begins, and must stay as it is. */
        public Builder initial(Floats values) {
            initial = values;
            return this;
        }

        /**
         * Evaluates the average model before the first step, every so many steps, and after the last; a run that goes
         * on from a checkpoint, not before its first.
         */
        public Builder evaluate(long everySteps, Evaluator judge) {
            evaluateEvery = everySteps;
            evaluator = judge;
            return this;
        }

        /** Keeps the last two checkpoints in a directory: one every so many rounds, one at the end, one at a stop. */
        public Builder checkpoints(Path directory, long everyRounds) {
            store = new CheckpointStore(directory);
            checkpointEvery = everyRounds;
            return this;
        }

        /** Goes on from a checkpoint: a file, or the newest of a directory. It must be of this problem and method. */
        public Builder resume(Path checkpoint) {
            resume = checkpoint;
            return this;
        }

        /** Something about the problem that a checkpoint must agree with to be resumed, such as a dataset's hash. */
        public Builder describe(String key, String value) {
            description.put(key, value);
            return this;
        }

        /** Adds a listener. */
        public Builder listener(Listener listener) {
            listeners.add(listener);
            return this;
        }

        /**
         * The run.
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
                    cluster == null || exchange == ExchangeKind.ORDERED,
                    "exchange = %s: members of a cluster average in client order".formatted(exchange));
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
            double[] costs =
                    IntStream.range(0, clients).mapToDouble(problem::cost).toArray();
            positive(costs, "the cost of client %d");
            atLeast("threads", threads, 1);
            atLeast("workers", workers, 1);
            atLeast("iterations", iterations, 1);
            atLeast("tau", tau, 1);
            atLeast("steps between evaluations", evaluateEvery, 0);
            atLeast("rounds between checkpoints", checkpointEvery, 1);
            require(
                    participation > 0 && participation <= 1,
                    "participation = %s; it is to be more than 0 and at most 1".formatted(participation));
            require(weights.length == clients, "%d weights for %d clients".formatted(weights.length, clients));
            positive(weights, "the weight of client %d");
            long parameters = problem.layout().length();
            require(
                    initial.length() == parameters,
                    "%d initial values for %d parameters".formatted(initial.length(), parameters));
            for (long i = 0; i < initial.length(); i++) {
                float value = initial.get(i);
                if (!Float.isFinite(value)) {
                    throw new IllegalArgumentException("initial value %d is %s".formatted(i, value));
                }
            }
            method.validate(iterations, tau);
            return new Federation(
                    new Setup(
                            name,
                            problem,
                            method,
                            devices,
                            Optional.ofNullable(cluster),
                            Placement.of(costs, pace),
                            exchange,
                            exchangeChunk,
                            threads,
                            workers,
                            iterations,
                            tau,
                            seed,
                            new Participation(participation, clients, seed),
                            Arrays.stream(weights).boxed().toList(),
                            policy,
                            initial,
                            evaluateEvery,
                            Optional.ofNullable(evaluator),
                            checkpointEvery,
                            Optional.ofNullable(store),
                            Optional.ofNullable(resume),
                            Collections.unmodifiableMap(new LinkedHashMap<>(description))),
                    List.copyOf(listeners));
        }

        private static void positive(double[] values, String name) {
            for (int i = 0; i < values.length; i++) {
                require(
                        values[i] > 0 && values[i] < Double.POSITIVE_INFINITY,
                        "%s is %s; it is to be more than 0 and finite".formatted(name.formatted(i), values[i]));
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
}
