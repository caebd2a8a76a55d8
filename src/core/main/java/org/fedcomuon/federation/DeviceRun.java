package org.fedcomuon.federation;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.ClientStore;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Variable;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Point;
import org.jspecify.annotations.Nullable;

/**
 * A run as one device does it: all steps, for its own clients, with an exchange with the other devices, or members of a
 * cluster, at every synchronization. What is done once for all, such as notifying listeners, is done by the first.
 */
final class DeviceRun {
    private final Setup setup;
    private final SharedState shared;
    private final RunMonitor monitor;
    private final int self; // of the devices here
    private final int member; // of all that share the clients
    private final @Nullable SafetensorsFile resumed;

    // Confined to the device thread, from here on.
    private @Nullable Variable virtual; // for the average at a step that is no exchange
    private @Nullable MemorySegment average; // where the host sees it, if the device's memory is not the host's
    private long seated; // the round whose clients are here
    private Optional<Path> lastCheckpoint = Optional.empty();

    DeviceRun(Setup setup, SharedState shared, RunMonitor monitor, int self, @Nullable SafetensorsFile resumed) {
        this.setup = setup;
        this.shared = shared;
        this.monitor = monitor;
        this.self = self;
        this.member = setup.cluster().map(Cluster::self).orElse(self);
        this.resumed = resumed;
    }

    /**
     * Runs all steps. The result of device 0 is that of the run; the others return the same, with weights of their own.
     */
    Result run() {
        int devices = setup.devices().size();
        seated = resumed == null
                ? 0
                : Math.max(0, Checkpoint.Counters.of(resumed).step() - 1) / setup.tau(); // that of the last step
        try (Device device = Devices.open(
                        setup.devices().get(self), Math.max(1, setup.threads() / devices), InstructionSet.AUTO);
                Clients clients = new Clients(
                        device,
                        setup.problem(),
                        here(seated),
                        setup.seating().capacity(member),
                        setup.seed(),
                        setup.policy(),
                        this::fault,
                        Math.max(1, setup.workers() / devices));
                Exchange server = new Exchange(shared, self, clients, setup, monitor)) {
            try {
                return named(clients, () -> run(clients, server));
            } catch (Throwable e) {
                shared.barrier.abort(); // or those that wait there for this device would keep it waiting below
                throw e;
            } finally {
                server.leave();
            }
        }
    }

    /** A GPU may throw what a step has found as late as when an evaluation or a checkpoint waits for it. */
    private static Result named(Clients clients, Supplier<Result> run) {
        try {
            return run.get();
        } catch (DeviceException.NotFinite e) {
            throw clients.named(e);
        }
    }

    private Result run(Clients clients, Exchange server) {
        Method.Replica replica = setup.method().on(clients);
        long t = begin(clients, server, replica);
        if (leads()) {
            monitor.started(setup.start(t, server.bytes(), clients));
        }
        if (resumed == null) {
            evaluate(t, clients, server); // a run that goes on has done so before its checkpoint
        }
        boolean stopped = false;
        while (t < setup.iterations() && !stopped) {
            step(new Method.Step(t, setup.tau(), setup.iterations()), clients, server, replica);
            t++;
            stopped = agreeToStop();
            if (setup.store().isPresent() && (stopped || isCheckpointDue(t))) {
                save(setup.store().get(), t, clients, server);
            }
        }
        clients.requireConverging(clients.weights());
        clients.settle();
        return result(t, stopped && t < setup.iterations(), clients, server);
    }

    private boolean isCheckpointDue(long done) {
        return done == setup.iterations() || done % (setup.checkpointEvery() * setup.tau()) == 0;
    }

    /** Sets the initial state, or that of the checkpoint. Returns the number of steps done before. */
    private long begin(Clients clients, Exchange server, Method.Replica replica) {
        server.begin(setup.participation().cohort(seated));
        if (!setup.seating().isFixed()) {
            if (self == 0) {
                shared.kept = Optional.of(setup.store(clients));
            }
            shared.barrier.await();
        }
        if (resumed == null) {
            clients.weights().buffer().copyIn(0, setup.initial().segment());
            clients.weights().becomeCommon();
            clients.weights().respread();
            clients.timed(Clients.Phase.STEP, () -> replica.initialize(server));
            return 0;
        }
        var counters = Checkpoint.Counters.of(resumed);
        server.resume(counters.communicatedBytes(), counters.roundTrips());
        var rows = new Checkpoint.Rows(
                setup.participation().cohort(seated),
                Checkpoint.known(resumed, setup.problem().clients()));
        if (self == 0 && shared.kept.isPresent()) {
            Checkpoint.readKept(
                    resumed,
                    clients,
                    rows,
                    shared.kept.get(),
                    client -> setup.seating().isFor(client, member));
        }
        shared.barrier.await();
        Checkpoint.read(resumed, clients, shared.kept, rows);
        return counters.step();
    }

    /** Returns the clients of a round that are on this device. */
    private List<Integer> here(long round) {
        return setup.seating().clients(round).get(member);
    }

    /** Brings the clients of a round here; those of the round before leave with what they keep. */
    private void enter(long round, Clients clients, Exchange server, Method.Replica replica) {
        if (shared.kept.isPresent() && round != seated) {
            ClientStore kept = shared.kept.get();
            clients.save(kept);
            shared.barrier.await();
            clients.seat(here(round), kept);
            seated = round;
            server.begin(setup.participation().cohort(round));
            if (clients.admitNewcomers()) {
                clients.timed(Clients.Phase.STEP, replica::join);
            }
        }
        clients.admitAll();
        clients.forgetLosses();
    }

    private void step(Method.Step t, Clients clients, Exchange server, Method.Replica replica) {
        clients.enter(t.t());
        server.beginStep();
        if (t.startsRound()) {
            enter(t.round(), clients, server, replica);
        }
        clients.timed(Clients.Phase.STEP, () -> replica.step(t, server));
        if (t.isSync() && !server.isMean(clients.weights())) { // changed by the server after the average
            clients.requireConverging(clients.weights());
        }
        long done = t.t() + 1;
        if (leads()) {
            monitor.tell(listener -> listener.onStep(done));
            if (t.isSync()) {
                var round = new Round(
                        t.round(),
                        done,
                        server.participants(),
                        setup.participation().count() - server.participants(),
                        server.bytes(),
                        server.roundTrips(),
                        server.exchangedBytes(),
                        monitor.seconds(),
                        shared.seconds(Clients.Phase.STEP),
                        shared.seconds(Clients.Phase.GRADIENT),
                        shared.seconds(Clients.Phase.ORTHOGONALIZE),
                        shared.seconds(Clients.Phase.EXCHANGE),
                        Arrays.stream(setup.participation().cohort(t.round()))
                                .boxed()
                                .toList(),
                        Arrays.stream(shared.losses).boxed().toList(),
                        shared.seconds);
                monitor.round(round);
            }
        }
        evaluateIfDue(done, clients, server);
    }

    private void fault(ClientFault fault) {
        monitor.fault(fault);
        if (setup.cluster().isPresent() && !leads()) {
            shared.faults.add(fault); // who leads will hear of it
        }
    }

    /** Returns whether this device notifies listeners, evaluates and writes: one of all devices and members does. */
    private boolean leads() {
        return member == 0;
    }

    /**
     * Returns whether to stop. Only the first device reads the stop flag, so that all stop after the same step; members
     * of a cluster know it since their last exchange.
     */
    private boolean agreeToStop() {
        if (setup.cluster().isPresent()) {
            return shared.stop;
        }
        if (self == 0) {
            shared.stop = monitor.isStopping();
        }
        shared.barrier.await();
        boolean stop = shared.stop;
        if (shared.devices() > 1) {
            shared.barrier.await(); // all have read it
        }
        return stop;
    }

    private void evaluateIfDue(long step, Clients clients, Exchange server) {
        if (step == setup.iterations() || (setup.evaluateEvery() > 0 && step % setup.evaluateEvery() == 0)) {
            evaluate(step, clients, server);
        }
    }

    private void evaluate(long step, Clients clients, Exchange server) {
        if (setup.evaluator().isEmpty()) {
            return;
        }
        Variable mean = average(clients, server);
        var event = new EvaluationEvent();
        event.begin();
        var found = new ArrayList<Evaluator.Scores>(); // by the device that leads
        clients.timed(Clients.Phase.EVALUATE, () -> {
            try {
                if (shared.evaluator.isPresent()) {
                    evaluateShare(step, clients, mean, shared.evaluator.get()).ifPresent(found::add);
                } else if (leads()) {
                    found.add(setup.evaluator().get().scores(step, onHost(clients, mean)));
                }
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new Evaluation.FailedException(step, e);
            }
        });
        if (leads()) {
            var evaluation = new Evaluation(
                    step,
                    step / setup.tau(),
                    found.getFirst().metrics(),
                    found.getFirst().clients(),
                    server.bytes(),
                    monitor.seconds(),
                    shared.seconds(Clients.Phase.STEP),
                    shared.seconds(Clients.Phase.GRADIENT),
                    shared.seconds(Clients.Phase.ORTHOGONALIZE),
                    shared.seconds(Clients.Phase.EXCHANGE),
                    clients.seconds(Clients.Phase.EVALUATE));
            monitor.evaluation(event, evaluation);
        }
        shared.barrier.await(); // no device works beside an evaluation
    }

    /**
     * Evaluates the share of this device, in its own memory, and returns the metrics if this device leads. Members of a
     * cluster have one device each, and the first evaluates alone.
     */
    private Optional<Evaluator.Scores> evaluateShare(
            long step, Clients clients, Variable mean, Evaluator.OnDevices evaluator) throws Exception {
        boolean alone = setup.cluster().isPresent();
        if (!alone || leads()) {
            Device device = clients.device();
            device.synchronize(); // a library that computes there may have a stream of its own
            Floats values = device.isHost()
                    ? onHost(clients, mean).values()
                    : Floats.onDevice(device.name(), mean.buffer().address(), clients.n());
            shared.evaluated[self] =
                    evaluator.share(device, self, shared.devices(), new Point(clients.layout(), values));
        }
        shared.barrier.await(); // all shares are there
        return leads() ? Optional.of(evaluator.scores(step, List.of(shared.evaluated))) : Optional.empty();
    }

    /** Computes the average of the clients' W without changing the run's state. Valid until the next call. */
    private Variable average(Clients clients, Exchange server) {
        if (virtual == null) {
            virtual = clients.scratch("average W", clients.n());
        }
        Variable w = clients.weights();
        virtual.buffer().copyFrom(w.buffer(), 0, 0, w.buffer().length());
        server.mean(virtual);
        return virtual;
    }

    /** Returns an average where the host sees it: a view, or a copy that is valid until the next call. */
    private Point onHost(Clients clients, Variable mean) {
        if (clients.device().isHost()) {
            return new Point(
                    clients.layout(), Floats.of(mean.buffer().segment().asSlice(0, clients.n() * Float.BYTES)));
        }
        if (average == null) {
            average = Floats.zeros(clients.n()).segment();
        }
        mean.buffer().copyOut(0, average);
        return new Point(clients.layout(), Floats.of(average));
    }

    private void save(CheckpointStore store, long step, Clients clients, Exchange server) {
        var event = new CheckpointEvent();
        event.begin();
        monitor.requireLock();
        shared.kept.ifPresent(clients::save);
        if (setup.cluster().isPresent()) {
            saveAsMember(event, store, step, clients, server);
            return;
        }
        shared.barrier.await();
        var rows = new Checkpoint.Rows(setup.participation().cohort(seated), known());
        if (self == 0) {
            var counters = new Checkpoint.Counters(step, server.bytes(), server.roundTrips(), monitor.faults());
            try (var pending = Checkpoint.begin(store, setup, counters, clients, rows)) {
                shared.pending = pending;
                writeTogether(pending, clients, rows);
                committed(event, step, pending.commit());
            }
        } else {
            writeTogether(null, clients, rows);
        }
    }

    /** Returns the clients of this process that have ever taken part, ascending. */
    private int[] known() {
        return shared.kept
                .map(ClientStore::clients)
                .orElseGet(() -> IntStream.range(0, setup.problem().clients()).toArray());
    }

    /** The other members write pieces, which the first merges when all are there. */
    private void saveAsMember(
            CheckpointEvent event, CheckpointStore store, long step, Clients clients, Exchange server) {
        if (!leads()) {
            CheckpointPiece.write(store, step, member, clients, shared.kept);
        }
        server.await();
        if (leads() && CheckpointPiece.areDone(store, step, setup.members())) {
            committed(event, step, store.file(step)); // before this member was lost and started again
        } else if (leads()) {
            var counters = new Checkpoint.Counters(step, server.bytes(), server.roundTrips(), monitor.faults());
            List<List<Integer>> members = setup.seating().clients(seated);
            var rows = new Checkpoint.Rows(setup.participation().cohort(seated), knownByAll(store, step));
            try (var pending = Checkpoint.begin(store, setup, counters, clients, rows)) {
                write(pending, clients, rows);
                for (int other = 1; other < setup.members(); other++) {
                    CheckpointPiece.copy(store, step, other, members.get(other), clients, rows, pending);
                }
                committed(event, step, pending.commit());
            }
            CheckpointPiece.deleteUpTo(store, step);
        }
    }

    private void committed(CheckpointEvent event, long step, Path file) {
        lastCheckpoint = Optional.of(file);
        monitor.checkpoint(event, step, file);
    }

    /** Returns the clients of all members that have ever taken part, ascending. */
    private int[] knownByAll(CheckpointStore store, long step) {
        if (shared.kept.isEmpty()) {
            return known();
        }
        IntStream all = IntStream.of(known());
        for (int other = 1; other < setup.members(); other++) {
            all = IntStream.concat(
                    all,
                    IntStream.of(CheckpointPiece.known(
                            store, step, other, setup.problem().clients())));
        }
        return all.sorted().toArray();
    }

    /** Device 0 creates the file; no device continues before all have written. */
    private void writeTogether(CheckpointStore.@Nullable Pending own, Clients clients, Checkpoint.Rows rows) {
        shared.barrier.await();
        write(own != null ? own : Objects.requireNonNull(shared.pending), clients, rows);
        shared.barrier.await();
    }

    /** Writes what this device has, and the first one what clients of this process have kept. */
    private void write(CheckpointStore.Pending pending, Clients clients, Checkpoint.Rows rows) {
        Checkpoint.write(pending::write, clients, shared.kept, rows, self == 0);
        if (self == 0) {
            shared.kept.ifPresent(kept -> Checkpoint.writeKept(pending::write, clients, kept, rows));
        }
    }

    private Result result(long step, boolean stopped, Clients clients, Exchange server) {
        Point mean = onHost(clients, average(clients, server));
        Floats copy = Floats.zeros(clients.n());
        copy.segment().copyFrom(mean.values().segment());
        return new Result(
                step,
                stopped,
                new Point(clients.layout(), copy),
                Sha256.of(copy.segment()),
                server.bytes(),
                server.roundTrips(),
                server.exchangedBytes(),
                server.exchanges(),
                monitor.faults(),
                monitor.seconds(),
                server.title(),
                lastCheckpoint);
    }
}
