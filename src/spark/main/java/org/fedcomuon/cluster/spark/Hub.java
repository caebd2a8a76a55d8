package org.fedcomuon.cluster.spark;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.client.TransportClient;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.cluster.spark.Message.Kind;
import org.fedcomuon.cluster.spark.Message.Piece;
import org.fedcomuon.cluster.spark.PieceDevice.Slot;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.jspecify.annotations.Nullable;

/**
 * The driver's end of the exchanges. It computes means from the sums of the members directly below it, piece by piece
 * as they arrive, answers all of them, and keeps the answers for members that start again. What is not about values it
 * passes on to {@link ExchangeLoop}.
 *
 * <p>Every message can be repeated: what is there already is ignored, and what is known is answered. So a member whose
 * connection was lost, or which was started again, sends once more what it has no answer to. Thread-safe.
 */
final class Hub implements Transport.Receiver, AutoCloseable {
    /** The pseudo block of the statuses of an exchange. */
    private static final int STATUSES = -1;

    private final RunSpec run;
    private final List<Integer> below;
    private final Consumer<Event> events;
    private final PieceDevice device = new PieceDevice();
    private final ReplyFile replies;
    private final Transport transport;
    private final Map<Integer, Connection> connections = new ConcurrentHashMap<>(); // of members
    private final Map<Piece, Gathering> gatherings = new HashMap<>(); // guarded by itself
    private int oldest; // exchange that anybody takes part in, guarded by gatherings

    /** What happens to the run. */
    sealed interface Event {
        /** A member has sent a message that is not about values. */
        @SuppressWarnings("ArrayRecordComponent") // they are never compared
        record Said(Message message, byte[] text, TransportClient connection) implements Event {}

        /** The run cannot go on. */
        record Broken(Throwable reason) implements Event {}

        /** The executors are not the same as before. */
        record Executors() implements Event {}

        /** A member was started, or could not be. */
        record Started(int member, int life, String executor, String host) implements Event {}
    }

    /** @param life of the member that has it */
    private record Connection(int life, TransportClient client) {}

    /** What the nodes below have contributed to the mean of a piece. */
    private static final class Gathering {
        final Map<Integer, Slot> exponents = new LinkedHashMap<>(); // by node
        final Map<Integer, Slot> sums = new LinkedHashMap<>();

        @Nullable
        Slot combined; // exponents of all members

        @Nullable
        Message scale; // of the sums
    }

    Hub(SparkEnv env, RunSpec run, ReplyFile replies, BlockingQueue<Event> events) {
        this.run = run;
        this.replies = replies;
        this.events = events::add;
        below = run.tree().below(Message.DRIVER);
        transport = Transport.driver(env, this);
    }

    int port() {
        return transport.port();
    }

    @Override
    public Transport.Incoming begin(TransportClient connection, Message message, int bytes) {
        if (message.run() != run.number()) {
            throw new IllegalArgumentException("this is a message of another run");
        }
        var mine = new Connection(message.life(), connection);
        connections.merge(message.node(), mine, (old, now) -> old.life() > now.life() ? old : now);
        return switch (message.kind()) {
            case EXPONENTS -> values(connection, message, ElementType.UINT8);
            case SUMS -> values(connection, message, ElementType.INT64);
            case ASK -> new Transport.Incoming(MemorySegment.NULL, () -> answer(connection, message));
            default -> {
                var text = new byte[bytes];
                yield new Transport.Incoming(
                        MemorySegment.ofArray(text), () -> events.accept(new Event.Said(message, text, connection)));
            }
        };
    }

    @Override
    public void failed(Error error) {
        events.accept(new Event.Broken(error));
    }

    private Transport.Incoming values(TransportClient connection, Message message, ElementType type) {
        Slot slot = take(type);
        return new Transport.Incoming(
                slot.memory(message.count()), () -> arrived(connection, message, slot), slot::release);
    }

    private Slot take(ElementType type) {
        try {
            return device.take(type);
        } catch (DeviceException e) { // the sender would try again for ever
            events.accept(new Event.Broken(e));
            throw e;
        }
    }

    /** @param slot held; this takes it over */
    private void arrived(TransportClient connection, Message message, Slot slot) {
        synchronized (gatherings) {
            if (message.exchange() < oldest) { // of a member that was given up, and has others' work to do no more
                slot.release();
                return;
            }
            if (!replies.has(message.piece())) {
                Gathering gathering = gatherings.computeIfAbsent(message.piece(), _ -> new Gathering());
                if (message.kind() == Kind.SUMS) {
                    if (gathering.sums.putIfAbsent(message.node(), slot) == null) {
                        sumsArrived(gathering, message);
                        return;
                    }
                } else if (gathering.combined == null) {
                    if (gathering.exponents.putIfAbsent(message.node(), slot) == null) {
                        if (gathering.exponents.keySet().containsAll(below)) {
                            List<Slot> parts = List.copyOf(gathering.exponents.values());
                            device.submit(() -> guarded(() -> combine(gathering, message, parts)));
                        }
                        return;
                    }
                }
            }
        }
        slot.release();
        answer(connection, message);
    }

    private void sumsArrived(Gathering gathering, Message message) {
        Message scale = gathering.scale == null ? message : gathering.scale;
        gathering.scale = scale;
        if (scale.terms() != message.terms() || scale.total() != message.total()) {
            events.accept(new Event.Broken(new MemberFailedException(
                    message.node(),
                    "its mean is of weights with the sum %s, and that of others of %s"
                            .formatted(message.total(), scale.total()))));
        } else if (gathering.sums.keySet().containsAll(below)) {
            device.submit(() -> guarded(() -> finish(gathering, message)));
        }
    }

    private void guarded(Runnable work) {
        try {
            work.run();
        } catch (RuntimeException | Error e) { // members would wait for ever
            events.accept(new Event.Broken(e));
        }
    }

    private void combine(Gathering gathering, Message message, List<Slot> parts) {
        device.combine(parts, message.count());
        Slot combined = parts.getFirst();
        synchronized (gatherings) {
            gathering.combined = combined;
        }
        parts.stream().skip(1).forEach(Slot::release);
        sendAll(message.as(Kind.COMBINED, Message.DRIVER, 0), combined);
    }

    private void finish(Gathering gathering, Message message) {
        Slot mean = device.take(ElementType.FLOAT32);
        Slot combined = gathering.combined;
        if (combined == null) {
            throw new IllegalStateException("sums without exponents");
        }
        List<Slot> sums = List.copyOf(gathering.sums.values());
        device.finish(sums, combined, message.count(), message.terms(), message.total(), mean);
        replies.put(message.piece(), mean.memory(message.count()));
        synchronized (gatherings) {
            gatherings.remove(message.piece());
        }
        combined.release();
        sums.forEach(Slot::release);
        sendAll(message.as(Kind.MEAN, Message.DRIVER, 0), mean);
        mean.release();
    }

    private void sendAll(Message message, Slot values) {
        for (int node : below) {
            Connection connection = connections.get(node);
            if (connection != null) { // otherwise it asks when it is there again
                send(connection.client(), message, values);
            }
        }
    }

    private void send(TransportClient connection, Message message, Slot values) {
        values.hold();
        transport.send(connection, message, values.memory(message.count()), _ -> values.release());
    }

    /** Answers what is known about a piece. */
    private void answer(TransportClient connection, Message message) {
        device.submit(() -> guarded(() -> {
            Piece piece = message.piece();
            if (replies.has(piece)) {
                Slot mean = device.take(ElementType.FLOAT32);
                replies.read(piece, mean.memory(message.count()));
                send(connection, message.as(Kind.MEAN, Message.DRIVER, 0), mean);
                mean.release();
                return;
            }
            Slot combined;
            synchronized (gatherings) {
                Gathering gathering = gatherings.get(piece);
                combined = gathering == null || gathering.combined == null ? null : gathering.combined.hold();
            }
            if (combined != null) {
                send(connection, message.as(Kind.COMBINED, Message.DRIVER, 0), combined);
                combined.release();
            } else if (message.kind() == Kind.ASK) {
                say(connection, message.as(Kind.UNKNOWN, Message.DRIVER, 0), new byte[0]);
            }
        }));
    }

    /** Sends a message that is not about values. */
    void say(TransportClient connection, Message message, byte[] text) {
        transport.send(connection, message, MemorySegment.ofArray(text), _ -> {});
    }

    /** Sends a message to a member, if it is connected. */
    void say(int member, Message message, byte[] text) {
        Connection connection = connections.get(member);
        if (connection != null) {
            say(connection.client(), message, text);
        }
    }

    /** Tells a member that it ends. */
    void end(TransportClient connection, String reason) {
        say(connection, message(Kind.END), reason.getBytes(StandardCharsets.UTF_8));
    }

    /** Tells all members that they end, and waits a moment for them to hear it. */
    void endAll(String reason) throws InterruptedException {
        byte[] text = reason.getBytes(StandardCharsets.UTF_8);
        var heard = new CountDownLatch(connections.size());
        connections
                .values()
                .forEach(connection -> transport.send(
                        connection.client(), message(Kind.END), MemorySegment.ofArray(text), _ -> heard.countDown()));
        heard.await(2, TimeUnit.SECONDS);
    }

    /** Tells a member that it ends, and forgets its connection. */
    void end(int member, String reason) {
        Connection connection = connections.remove(member);
        if (connection != null) {
            end(connection.client(), reason);
        }
    }

    Message message(Kind kind) {
        return Message.of(kind, run.number(), Message.DRIVER, 0);
    }

    /** Answers all members with the statuses of all, and keeps the answer. */
    void answerStatuses(int exchange, byte[] statuses) {
        replies.put(new Piece(exchange, STATUSES, 0), MemorySegment.ofArray(statuses));
        for (int member = 0; member < run.tree().members(); member++) {
            say(member, message(Kind.STATUSES).in(exchange), statuses);
        }
    }

    /** Answers a member once more. */
    void repeatStatuses(TransportClient connection, int exchange) {
        var piece = new Piece(exchange, STATUSES, 0);
        var statuses = new byte[replies.size(piece)];
        replies.read(piece, MemorySegment.ofArray(statuses));
        say(connection, message(Kind.STATUSES).in(exchange).piece(0, 0, 1), statuses);
    }

    /** Forgets all answers before an exchange; returns when that is done. */
    void forget(int exchange) {
        synchronized (gatherings) {
            oldest = exchange;
        }
        device.run(replies::clear); // after all reading that was asked for
    }

    @Override
    public void close() {
        transport.close();
        device.close();
    }
}
