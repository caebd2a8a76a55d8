package org.fedcomuon.federation;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Objects;
import java.util.Optional;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Phase;
import org.fedcomuon.method.Replica;
import org.fedcomuon.method.Step;
import org.fedcomuon.method.Variable;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Point;
import org.jspecify.annotations.Nullable;

/**
 * A run as one device does it: all steps, for its own clients, meeting the other devices, or members of a cluster, at
 * every exchange. What is done once for all, such as telling listeners, is the first one's.
 */
final class DeviceRun {
    private final Setup setup;
    private final Meeting meeting;
    private final Watch watch;
    private final int self; // of the devices here
    private final int member; // of all that share the clients
    private final @Nullable SafetensorsFile resumed;

    // Of the device's thread, from here on.
    private @Nullable Variable virtual; // for the average at a step that is no exchange
    private @Nullable MemorySegment average; // where the host sees it, if the device's memory is not the host's
    private boolean[] admitted = {};
    private Optional<Path> lastCheckpoint = Optional.empty();

    DeviceRun(Setup setup, Meeting meeting, Watch watch, int self, @Nullable SafetensorsFile resumed) {
        this.setup = setup;
        this.meeting = meeting;
        this.watch = watch;
        this.self = self;
        this.member = setup.cluster().map(Cluster::self).orElse(self);
        this.resumed = resumed;
    }

    /** What device 0 says of the run; the others return the same, with weights of their own. */
    Result run() {
        int devices = setup.devices().size();
        try (Device device = Devices.open(
                        setup.devices().get(self), Math.max(1, setup.threads() / devices), InstructionSet.AUTO);
                Clients clients = new Clients(
                        device,
                        setup.problem(),
                        setup.placement().clients().get(member),
                        setup.seed(),
                        setup.policy(),
                        this::fault,
                        Math.max(1, setup.workers() / devices));
                Exchange server = new Exchange(meeting, self, clients, setup, watch)) {
            try {
                return run(clients, server);
            } catch (Throwable e) {
                meeting.rendezvous.abort(); // or those that wait there for this device would keep it waiting below
                throw e;
            } finally {
                server.leave();
            }
        }
    }

    private Result run(Clients clients, Exchange server) {
        Replica replica = setup.method().on(clients);
        long t = begin(clients, server, replica);
        if (leads()) {
            watch.started(setup.start(t, server.bytes()));
        }
        if (resumed == null) {
            evaluate(t, clients, server); // a run that goes on has done so before its checkpoint
        }
        boolean stopped = false;
        while (t < setup.iterations() && !stopped) {
            step(new Step(t, setup.tau(), setup.iterations()), clients, server, replica);
            t++;
            stopped = agreeToStop();
            if (setup.store().isPresent() && (stopped || isCheckpointDue(t))) {
                save(setup.store().get(), t, clients, server);
            }
        }
        clients.requireConverging(clients.weights());
        return result(t, stopped && t < setup.iterations(), clients, server);
    }

    private boolean isCheckpointDue(long done) {
        return done == setup.iterations() || done % (setup.checkpointEvery() * setup.tau()) == 0;
    }

    /** Sets the initial state, or that of the checkpoint; the number of steps done before. */
    private long begin(Clients clients, Exchange server, Replica replica) {
        if (resumed == null) {
            for (int k = 0; k < clients.count(); k++) {
                clients.weights()
                        .buffer()
                        .copyIn(k * clients.n(), setup.initial().segment());
            }
            admitted = new boolean[clients.count()];
            Arrays.fill(admitted, true);
            clients.timed(Phase.STEP, () -> replica.initialize(server));
            return 0;
        }
        var counters = Checkpoint.Counters.of(resumed);
        server.resume(counters.communicatedBytes(), counters.roundTrips());
        admitted = admitted(counters.step() / setup.tau(), clients);
        clients.admit(Checkpoint.read(resumed, clients, setup.problem().clients(), admitted));
        return counters.step();
    }

    private boolean[] admitted(long round, Clients clients) {
        boolean[] all = setup.participation().of(round);
        var here = new boolean[clients.count()];
        for (int k = 0; k < here.length; k++) {
            here[k] = all[clients.number(k)];
        }
        return here;
    }

    private void step(Step t, Clients clients, Exchange server, Replica replica) {
        clients.enter(t.t());
        if (t.startsRound()) {
            admitted = admitted(t.round(), clients);
            clients.admit(admitted);
            clients.forgetLosses();
        }
        clients.timed(Phase.STEP, () -> replica.step(t, server));
        if (t.isSync()) {
            clients.requireConverging(clients.weights());
        }
        long done = t.t() + 1;
        if (leads()) {
            watch.tell(listener -> listener.onStep(done));
            if (t.isSync()) {
                var round = new Round(
                        t.round(),
                        done,
                        server.participants(),
                        setup.participation().count() - server.participants(),
                        server.bytes(),
                        server.roundTrips(),
                        watch.seconds(),
                        meeting.seconds(Phase.STEP),
                        meeting.seconds(Phase.GRADIENT),
                        meeting.seconds(Phase.ORTHOGONALIZE),
                        meeting.seconds(Phase.EXCHANGE),
                        Arrays.stream(meeting.losses).boxed().toList(),
                        meeting.seconds);
                watch.round(round);
            }
        }
        evaluateIfDue(done, clients, server);
    }

    private void fault(ClientFault fault) {
        watch.fault(fault);
        if (setup.cluster().isPresent() && !leads()) {
            meeting.faults.add(fault); // who leads will hear of it
        }
    }

    /** Who tells listeners, evaluates and writes: one for all devices and members. */
    private boolean leads() {
        return member == 0;
    }

    /** Only the first looks, so that all stop after the same step; members of a cluster know since they last met. */
    private boolean agreeToStop() {
        if (setup.cluster().isPresent()) {
            return meeting.stop;
        }
        if (self == 0) {
            meeting.stop = watch.isStopping();
        }
        meeting.rendezvous.await();
        boolean stop = meeting.stop;
        if (meeting.devices() > 1) {
            meeting.rendezvous.await(); // all have read it
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
        Point average = average(clients, server);
        if (leads()) {
            var event = new EvaluationEvent();
            event.begin();
            var metrics = new LinkedHashMap<String, Double>();
            clients.timed(Phase.EVALUATE, () -> {
                try {
                    metrics.putAll(setup.evaluator().get().evaluate(step, average));
                } catch (RuntimeException e) {
                    throw e;
                } catch (Exception e) {
                    throw new EvaluationException(step, e);
                }
            });
            var evaluation = new Evaluation(
                    step,
                    step / setup.tau(),
                    metrics,
                    server.bytes(),
                    watch.seconds(),
                    meeting.seconds(Phase.STEP),
                    meeting.seconds(Phase.GRADIENT),
                    meeting.seconds(Phase.ORTHOGONALIZE),
                    meeting.seconds(Phase.EXCHANGE),
                    clients.seconds(Phase.EVALUATE));
            watch.evaluation(event, evaluation);
        }
        meeting.rendezvous.await(); // no device works beside an evaluation
    }

    /** The average of the clients' W; the run itself is not touched. Valid until the next call. */
    private Point average(Clients clients, Exchange server) {
        if (virtual == null) {
            virtual = clients.scratch("average W", clients.n());
        }
        Variable w = clients.weights();
        virtual.buffer().copyFrom(w.buffer(), 0, 0, w.buffer().length());
        server.mean(virtual);
        long bytes = clients.n() * Float.BYTES;
        if (clients.device().isHost()) {
            return new Point(
                    clients.layout(), Floats.of(virtual.buffer().segment().asSlice(0, bytes)));
        }
        if (average == null) {
            average = Floats.zeros(clients.n()).segment();
        }
        virtual.buffer().copyOut(0, average);
        return new Point(clients.layout(), Floats.of(average));
    }

    private void save(CheckpointStore store, long step, Clients clients, Exchange server) {
        var event = new CheckpointEvent();
        event.begin();
        if (setup.cluster().isPresent()) {
            saveAsMember(event, store, step, clients, server);
        } else if (self == 0) {
            var counters = new Checkpoint.Counters(step, server.bytes(), server.roundTrips(), watch.faults());
            try (var pending = Checkpoint.begin(store, setup, counters, clients)) {
                meeting.pending = pending;
                writeTogether(pending, clients);
                committed(event, step, pending.commit());
            }
        } else {
            writeTogether(null, clients);
        }
    }

    /** The others leave pieces, which the first puts together when all are there. */
    private void saveAsMember(
            CheckpointEvent event, CheckpointStore store, long step, Clients clients, Exchange server) {
        if (!leads()) {
            CheckpointPiece.write(store, step, member, clients, admitted);
        }
        server.meet();
        if (leads() && CheckpointPiece.areDone(store, step, setup.members())) {
            committed(event, step, store.file(step)); // before this member was lost and started again
        } else if (leads()) {
            var counters = new Checkpoint.Counters(step, server.bytes(), server.roundTrips(), watch.faults());
            try (var pending = Checkpoint.begin(store, setup, counters, clients)) {
                Checkpoint.write(pending::write, clients, admitted, clients::number, true);
                for (int other = 1; other < setup.members(); other++) {
                    CheckpointPiece.copy(
                            store, step, other, setup.placement().clients().get(other), pending);
                }
                committed(event, step, pending.commit());
            }
            CheckpointPiece.deleteUpTo(store, step);
        }
    }

    private void committed(CheckpointEvent event, long step, Path file) {
        lastCheckpoint = Optional.of(file);
        watch.checkpoint(event, step, file);
    }

    /** Device 0 brings the file; nobody goes on before all is in it. */
    private void writeTogether(CheckpointStore.@Nullable Pending own, Clients clients) {
        meeting.rendezvous.await();
        CheckpointStore.Pending pending = own != null ? own : Objects.requireNonNull(meeting.pending);
        Checkpoint.write(pending::write, clients, admitted, clients::number, clients.number(0) == 0);
        meeting.rendezvous.await();
    }

    private Result result(long step, boolean stopped, Clients clients, Exchange server) {
        Point average = average(clients, server);
        Floats copy = Floats.zeros(clients.n());
        copy.segment().copyFrom(average.values().segment());
        return new Result(
                step,
                stopped,
                new Point(clients.layout(), copy),
                Sha256.of(copy.segment()),
                server.bytes(),
                server.roundTrips(),
                watch.faults(),
                watch.seconds(),
                server.title(),
                lastCheckpoint);
    }
}
