package org.fedcomuon.cluster.spark;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.fedcomuon.cluster.Cluster.MemberStatus;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.cluster.WireFormat;
import org.fedcomuon.cluster.spark.Message.Kind;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Listener;

/**
 * The exchanges of a run, in the driver: it starts the members, answers their statuses, and starts members of lost
 * executors again. {@link Hub} has the values.
 */
final class ExchangeLoop implements AutoCloseable {
    /** What Spark says of this goes to its log only. */
    static final String ENDED = "Spark has ended the application, as it does when executors fail again and again";

    private static final long TURN = 500; // milliseconds

    private final JavaSparkContext spark;
    private final RunSpec run;
    private final List<Listener> listeners;
    private final Consumer<String> notes;
    private final LinkedBlockingQueue<Hub.Event> events = new LinkedBlockingQueue<>();
    private final ReplyFile replies;
    private final Hub hub;
    private final MemberPlaces places;
    private final Losses losses;
    private final Runnable check;
    private final Consumer<Throwable> errors;
    private final SparkListener ends;
    private final byte[][] statuses; // of the members, in the exchange under way
    private final boolean[] done; // by member
    private final Map<Integer, String> addresses = new HashMap<>(); // of members with others below
    private final Map<Integer, TransportClient> asking = new HashMap<>(); // members that wait for such an address
    private StartPoint start;
    private OptionalLong saved = OptionalLong.empty(); // the step of the checkpoint that the last exchange belongs to
    private long lastEvaluated = -1;
    private int exchange; // the number of the one under way
    private int exchanges;
    private long sent; // by members that are done
    private long received;

    /**
     * Prepares the exchanges.
     *
     * @param directory for the answers since the last checkpoint
     * @param health of this process
     */
    ExchangeLoop(
            JavaSparkContext spark,
            SparkExecutors executors,
            RunSpec run,
            StartPoint start,
            Path directory,
            List<Listener> listeners,
            Consumer<String> notes,
            Health health) {
        this.spark = spark;
        losses = health.losses();
        check = health.check();
        errors = health.errors();
        this.run = run;
        this.start = start;
        this.listeners = listeners;
        this.notes = notes;
        exchange = start.exchange();
        statuses = new byte[run.members()][];
        done = new boolean[run.members()];
        replies = new ReplyFile(directory);
        hub = new Hub(SparkEnv.get(), run, replies, events);
        places = new MemberPlaces(spark, executors, run, hub.port(), events, losses, health.limit());
        executors.onChange(() -> events.add(new Hub.Event.Executors()));
        ends = new SparkListener() {
            @Override
            public void onApplicationEnd(SparkListenerApplicationEnd end) {
                events.add(new Hub.Event.Broken(new MemberFailedException(losses.explain(ENDED))));
            }
        };
        spark.sc().addSparkListener(ends);
    }

    /**
     * What the run is ended by besides its members.
     *
     * @param losses of executors
     * @param errors receives what was thrown by other threads
     * @param check called several times a second; throws when this process cannot go on
     * @param limit the time that there may be no executor
     */
    record Health(Losses losses, Consumer<Throwable> errors, Runnable check, Duration limit) {}

    /** Returns the port at which members reach this process. */
    int port() {
        return hub.port();
    }

    /**
     * Runs exchanges until all members are done.
     *
     * @throws MemberFailedException when a member cannot go on
     * @throws ConfigurationException when a member cannot begin
     */
    void run(BooleanSupplier stopping) throws InterruptedException {
        try {
            runAll(stopping);
        } catch (RuntimeException e) {
            hub.endAll(String.valueOf(e.getMessage())); // so that no process ends in the middle of libtorch
            throw e;
        }
    }

    private void runAll(BooleanSupplier stopping) throws InterruptedException {
        places.startAll(start);
        long turn = System.nanoTime();
        while (true) {
            Hub.Event event = events.poll(TURN, TimeUnit.MILLISECONDS);
            switch (event) {
                case null -> {}
                case Hub.Event.Said said -> hear(said, stopping);
                case Hub.Event.Broken broken -> {
                    errors.accept(broken.reason()); // so that an error is explained as one
                    check.run();
                    throw SparkFailures.explained(broken.reason());
                }
                case Hub.Event.Started started -> {
                    places.started(started);
                    if (started.life() > 0) {
                        notes.accept("member %d starts again on %s, from %s"
                                .formatted(
                                        started.member(),
                                        started.host(),
                                        start.step() == 0 ? "the beginning" : "step " + start.step()));
                    }
                }
                case Hub.Event.Executors _ -> {}
            }
            long now = System.nanoTime();
            // Places do not change by what members say, but may have changed meanwhile.
            if (!(event instanceof Hub.Event.Said) || now - turn > TimeUnit.MILLISECONDS.toNanos(TURN)) {
                turn = now;
                places.lost(done).forEach(addresses::remove);
                places.startLost(start, done);
                requirePossible();
            }
            if (allDone()) {
                notes.accept("%d exchanges, in which members sent %d bytes and received %d bytes"
                        .formatted(exchanges, sent, received));
                return;
            }
        }
    }

    /**
     * Throws when the run cannot go on, whatever its members do.
     *
     * @throws MemberFailedException with the reason
     */
    void requirePossible() {
        check.run();
        places.requirePossible();
    }

    private boolean allDone() {
        for (boolean one : done) {
            if (!one) {
                return false;
            }
        }
        return true;
    }

    private void hear(Hub.Event.Said said, BooleanSupplier stopping) {
        Message message = said.message();
        int member = message.node();
        if (message.life() < places.life(member)) {
            hub.end(said.connection(), "another executor has its clients now");
            return;
        }
        switch (message.kind()) {
            case STATUS -> status(said, stopping);
            case ADDRESS -> {
                addresses.put(member, new String(said.text(), StandardCharsets.UTF_8));
                asking.entrySet().removeIf(each -> answerAddress(each.getKey(), each.getValue()));
                // A host that is silent looks to those below like one that is slow.
                for (int node : run.tree().below(member)) {
                    hub.say(node, hub.message(Kind.ADDRESS_ABOVE), said.text());
                }
            }
            case ASK_ADDRESS -> {
                if (!answerAddress(member, said.connection())) {
                    asking.put(member, said.connection());
                }
            }
            case DONE -> {
                Reports reports = Reports.of(said.text());
                if (!done[member]) {
                    done[member] = true;
                    forward(reports);
                    String[] bytes = new String(reports.rest(), StandardCharsets.UTF_8).split(" ", 2);
                    sent += Long.parseLong(bytes[0]);
                    received += Long.parseLong(bytes[1]);
                }
            }
            case REFUSED, FAILED -> {
                Reports reports = Reports.of(said.text());
                forward(reports);
                String reason = new String(reports.rest(), StandardCharsets.UTF_8);
                throw message.kind() == Kind.REFUSED
                        ? new ConfigurationException(reason)
                        : new MemberFailedException(reason);
            }
            default -> throw new IllegalStateException("the driver gets no message " + message.kind());
        }
    }

    private boolean answerAddress(int member, TransportClient connection) {
        String address = addresses.get(run.tree().above(member));
        if (address != null) {
            hub.say(connection, hub.message(Kind.ADDRESS_ABOVE), address.getBytes(StandardCharsets.UTF_8));
        }
        return address != null;
    }

    private void status(Hub.Event.Said said, BooleanSupplier stopping) {
        int member = said.message().node();
        if (said.message().exchange() < exchange) {
            hub.repeatStatuses(said.connection(), said.message().exchange());
            return;
        }
        if (statuses[member] != null) {
            return; // it has asked for the answer, and there is none yet
        }
        for (int other = 0; other < done.length; other++) {
            if (done[other]) {
                throw new MemberFailedException(other, "it is done while others are not");
            }
        }
        Reports reports = Reports.of(said.text());
        forward(reports);
        statuses[member] = reports.rest();
        for (byte[] each : statuses) {
            if (each == null) {
                return;
            }
        }
        answer(stopping);
    }

    /** Answers an exchange in which all members take part now. */
    private void answer(BooleanSupplier stopping) {
        MemberStatus first = WireFormat.status(statuses[0]);
        if (stopping.getAsBoolean()) {
            statuses[0] = WireFormat.bytes(first.stopping()); // which stops all members
        }
        // The checkpoint is complete, because the first member has reached this exchange.
        saved.ifPresent(this::forget);
        var all = ByteBuffer.allocate(Arrays.stream(statuses)
                .mapToInt(each -> Integer.BYTES + each.length)
                .sum());
        for (byte[] each : statuses) {
            all.putInt(each.length).put(each);
        }
        Arrays.fill(statuses, null);
        places.progressed();
        exchanges++;
        hub.answerStatuses(exchange++, all.array());
        long step = first.step() + 1;
        // An exchange without values is the one after which the members' pieces become a checkpoint.
        saved = first.posted().isEmpty() ? OptionalLong.of(step) : OptionalLong.empty();
        if (step > 0) {
            listeners.forEach(listener -> listener.onStep(step));
        }
    }

    /** Drops the answers before the checkpoint of a step, because no member will start before that step any more. */
    private void forget(long step) {
        start = new StartPoint(step, exchange);
        hub.forget(exchange);
        for (int member : places.spread(done)) {
            hub.end(member, "another executor has its clients now");
            addresses.remove(member);
        }
    }

    private void forward(Reports reports) {
        reports.lines().forEach(notes);
        for (Evaluation evaluation : reports.evaluations()) {
            if (evaluation.step() > lastEvaluated) { // a restarted member repeats evaluations
                lastEvaluated = evaluation.step();
                listeners.forEach(listener -> listener.onEvaluation(evaluation));
            }
        }
    }

    @Override
    public void close() {
        spark.sc().removeSparkListener(ends);
        places.close();
        hub.close();
        replies.close();
    }
}
