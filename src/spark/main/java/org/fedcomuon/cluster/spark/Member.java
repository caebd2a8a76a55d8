package org.fedcomuon.cluster.spark;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.IntPredicate;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.util.SignalUtils;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.Cluster.MeanBlock;
import org.fedcomuon.cluster.Cluster.MemberStatus;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.cluster.StagingBuffers;
import org.fedcomuon.cluster.WireFormat;
import org.fedcomuon.cluster.spark.Message.Kind;
import org.fedcomuon.cluster.spark.Message.Piece;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.federation.Evaluation;
import org.jspecify.annotations.Nullable;

/**
 * A member of a run in an executor: a program with its thread, connected to the driver. The program uses it as its
 * cluster.
 *
 * <p>All that waits for an answer is sent again when a connection was lost, and when no answer comes for some time the
 * driver is asked: it knows what this member cannot, such as that the node above has started again.
 */
final class Member implements Cluster, Transport.Receiver {
    /** The members in this executor, by run and number. Spark has no other place for state that outlives a task. */
    private static final Map<String, Member> MEMBERS = new ConcurrentHashMap<>();

    /** The most elements of the blocks under way, unless there is only one. */
    private static final int MOST_ELEMENTS = 3 * MeanBlock.MOST_ELEMENTS;

    /** Time until the driver is asked for an answer for the first time; twice as long each time after. */
    private static final long FIRST_ASK = TimeUnit.SECONDS.toMillis(3);

    private static final long LONGEST_WAIT = TimeUnit.SECONDS.toMillis(30);
    private static final long RECONNECT = 500; // milliseconds
    private static final long PATIENCE = TimeUnit.MINUTES.toNanos(10); // with a driver that cannot be reached

    /** The exit code of an executor of Spark that does not reach the driver. */
    private static final int DRIVER_UNREACHABLE = 56;

    static {
        // Ctrl-C in a terminal also reaches executors on the same machine; only the driver stops members.
        SignalUtils.register("INT", () -> true);
    }

    private final BeginTask task;
    private final RunSpec run;
    private final int self;
    private final int life;
    private final Transport transport;
    private final @Nullable Relay relay;
    private final LinkedBlockingQueue<Event> events = new LinkedBlockingQueue<>();
    private final Map<Integer, Work> works = new ConcurrentHashMap<>(); // of this exchange, by block
    private volatile @Nullable String abandoned; // the reason why there will be no more answers
    private volatile @Nullable TransportClient above; // for values

    // Guarded by this.
    private final ArrayList<String> lines = new ArrayList<>();
    private final ArrayList<Evaluation> evaluations = new ArrayList<>();

    // Confined to the thread that calls, from here on.
    private @Nullable TransportClient driver;
    private Event.@Nullable Address aboveAddress;
    private int exchange; // the number of the last one, from 0
    private boolean repeated; // whether the others have done this exchange before
    private final Deque<StagingBuffers> buffers = new ArrayDeque<>(); // of blocks that are done

    /** What threads of the network tell the thread of the member. */
    private sealed interface Event {
        @SuppressWarnings("ArrayRecordComponent") // they are never compared
        record Statuses(int exchange, boolean repeated, byte[] bytes) implements Event {}

        /** A piece of a block: its exponents or its mean; or, of a block that it asks for, that there are none. */
        record Arrived(Work work, Kind kind, int piece) implements Event {}

        record Address(String host, int port) implements Event {}

        record Lost() implements Event {}
    }

    private Member(BeginTask task, int self, SparkEnv env) {
        this.task = task;
        this.run = task.run();
        this.self = self;
        this.life = task.lives().get(self);
        exchange = task.start().exchange() - 1;
        List<Integer> below = run.tree().below(self);
        transport = below.isEmpty() ? Transport.client(env, this) : Transport.executor(env, this);
        relay = below.isEmpty() ? null : new Relay(self, below, new Links());
    }

    private final class Links implements Relay.Links {
        @Override
        public void up(Message message, PieceDevice.Slot values) {
            TransportClient to = above;
            if (to != null) { // otherwise it is repeated when there is a connection
                down(to, message, values);
            }
        }

        @Override
        public void down(TransportClient connection, Message message, PieceDevice.Slot values) {
            values.hold();
            transport.send(connection, message, values.memory(message.count()), _ -> values.release());
        }
    }

    /** Starts a member in this executor, unless that has been done. */
    static void begin(BeginTask task, int self, SparkEnv env) {
        MEMBERS.compute(task.run().number() + "/" + self, (_, before) -> {
            if (before != null && before.life >= task.lives().get(self)) {
                return before; // Spark repeats a task whose result was lost
            }
            if (before != null) {
                before.abandon("it was started again");
            }
            var member = new Member(task, self, env);
            member.start(Transport.host(env));
            return member;
        });
    }

    private void start(String host) {
        Thread.ofPlatform().daemon().name("member-" + self).start(() -> {
            try {
                run.program().run(this, task.start());
                last(Kind.DONE, "%d %d".formatted(transport.sent(), transport.received()));
            } catch (Throwable e) { // reported by the driver
                last(
                        e instanceof ConfigurationException ? Kind.REFUSED : Kind.FAILED,
                        "member %d on %s: %s".formatted(self, host, reason(e)));
            } finally {
                MEMBERS.remove(run.number() + "/" + self, this);
                transport.close();
                if (relay != null) {
                    relay.close();
                }
            }
        });
    }

    private static String reason(Throwable failure) {
        Throwable reason = failure;
        while (reason instanceof LinkageError && reason.getCause() != null) {
            reason = reason.getCause(); // an ExceptionInInitializerError says nothing itself
        }
        String message = reason.getMessage();
        if (reason instanceof OutOfMemoryError) {
            return "out of memory: %s; the heap of this executor has %d MiB: give executors more by -Dspark.executor.memory=..."
                    .formatted(message, Runtime.getRuntime().maxMemory() >> 20);
        }
        return reason instanceof RuntimeException && message != null ? message : reason.toString();
    }

    /** Sends the last message of this member until it has arrived. */
    private void last(Kind kind, String text) {
        byte[] bytes = reports(text.getBytes(StandardCharsets.UTF_8));
        var arrived = new LinkedBlockingQueue<Boolean>();
        try {
            do {
                transport.send(driver(), message(kind), MemorySegment.ofArray(bytes), arrived::add);
            } while (abandoned == null && !arrived.take());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (MemberFailedException e) {
            if (abandoned == null) {
                // Spark may still reach the driver, which would wait for this member for ever.
                Runtime.getRuntime().exit(DRIVER_UNREACHABLE);
            }
        }
    }

    private void abandon(String reason) {
        abandoned = reason;
        events.add(new Event.Lost());
    }

    /** Reports a line to the driver, with the next message. */
    synchronized void report(String line) {
        lines.add(line);
    }

    /** Reports an evaluation to the driver, with the next message. */
    synchronized void report(Evaluation evaluation) {
        evaluations.add(evaluation);
    }

    private synchronized byte[] reports(byte[] rest) {
        byte[] bytes = new Reports(lines, evaluations, rest).bytes();
        lines.clear();
        evaluations.clear();
        return bytes;
    }

    private Message message(Kind kind) {
        return Message.of(kind, run.number(), self, life).in(exchange);
    }

    // What arrives, by threads of the network

    @Override
    public Transport.Incoming begin(TransportClient connection, Message message, int bytes) {
        if (message.run() != run.number()) {
            throw new IllegalArgumentException("this is a message of another run");
        }
        return switch (message.kind()) {
            case EXPONENTS, SUMS -> requireRelay().fromBelow(connection, message);
            case COMBINED, MEAN -> answer(message, bytes);
            case UNKNOWN ->
                new Transport.Incoming(MemorySegment.NULL, () -> {
                    Work work = works.get(message.block());
                    if (work != null && message.exchange() == work.exchange) {
                        events.add(new Event.Arrived(work, Kind.UNKNOWN, message.at() / Piece.ELEMENTS));
                    }
                });
            default -> {
                var text = new byte[bytes];
                yield new Transport.Incoming(MemorySegment.ofArray(text), () -> text(message, text));
            }
        };
    }

    private Relay requireRelay() {
        if (relay == null) {
            throw new IllegalArgumentException("no member is below this one");
        }
        return relay;
    }

    private void text(Message message, byte[] text) {
        switch (message.kind()) {
            case STATUSES -> events.add(new Event.Statuses(message.exchange(), message.count() == 1, text));
            case END -> abandon(new String(text, StandardCharsets.UTF_8));
            case ADDRESS_ABOVE -> {
                String[] address = new String(text, StandardCharsets.UTF_8).split(" ", 2);
                events.add(new Event.Address(address[0], Integer.parseInt(address[1])));
            }
            default -> throw new IllegalArgumentException("a member gets no message " + message.kind());
        }
    }

    private Transport.Incoming answer(Message message, int bytes) {
        if (relay != null) {
            PieceDevice.Slot slot = relay.take(message.kind());
            MemorySegment values = slot.memory(message.count());
            return new Transport.Incoming(
                    values,
                    () -> {
                        relay.answered(message, slot);
                        Transport.Incoming here = here(message, bytes);
                        here.into().copyFrom(values);
                        here.complete().run();
                        slot.release();
                    },
                    slot::release);
        }
        return here(message, bytes);
    }

    private Transport.Incoming here(Message message, int bytes) {
        Work work = works.get(message.block());
        if (work == null || message.exchange() != work.exchange) {
            return ignored(bytes);
        }
        return work.answer(message, bytes);
    }

    private static Transport.Incoming ignored(int bytes) {
        return new Transport.Incoming(MemorySegment.ofArray(new byte[bytes]), () -> {});
    }

    @Override
    public void closed(TransportClient connection) {
        events.add(new Event.Lost());
    }

    @Override
    public void failed(Error error) {
        abandon(reason(error));
    }

    // Connections, by the thread of the member

    private TransportClient driver() throws InterruptedException {
        TransportClient now = driver;
        long start = System.nanoTime();
        while (now == null || !now.isActive()) {
            requireNotAbandoned();
            try {
                now = transport.connect(task.host(), task.port());
                driver = now;
                if (relay != null) {
                    byte[] address = "%s %d"
                            .formatted(Transport.host(SparkEnv.get()), transport.port())
                            .getBytes(StandardCharsets.UTF_8);
                    transport.send(now, message(Kind.ADDRESS), MemorySegment.ofArray(address), _ -> {});
                }
            } catch (IOException e) {
                if (System.nanoTime() - start > PATIENCE) {
                    throw new MemberFailedException(self, "it does not reach the driver: " + e.getMessage());
                }
                Thread.sleep(RECONNECT);
            }
        }
        return now;
    }

    private boolean isBelowDriver() {
        return run.tree().above(self) == Message.DRIVER;
    }

    /** Returns whether the connection for values is not what it was before. */
    private boolean connectAbove() throws InterruptedException {
        TransportClient before = above;
        if (before != null && before.isActive()) {
            return false;
        }
        if (isBelowDriver()) {
            above = driver();
        } else {
            above = null;
            transport.send(driver(), message(Kind.ASK_ADDRESS), MemorySegment.ofArray(new byte[0]), _ -> {});
        }
        return above != null;
    }

    private boolean reconnectAbove() throws InterruptedException {
        TransportClient now = above;
        if (now == null || !now.isActive()) {
            Thread.sleep(RECONNECT); // or the driver would be asked all the time until it knows where that node is
        }
        return connectAbove();
    }

    private void requireNotAbandoned() {
        if (abandoned != null) {
            throw new MemberFailedException(String.valueOf(abandoned));
        }
    }

    /** Waits for something to happen; null after some time. */
    private @Nullable Event await(long milliseconds) throws InterruptedException {
        Event event = events.poll(milliseconds, TimeUnit.MILLISECONDS);
        requireNotAbandoned();
        return event;
    }

    // The interface of the program

    @Override
    public int members() {
        return run.members();
    }

    @Override
    public int self() {
        return self;
    }

    @Override
    public boolean isRejoining() {
        return life > 0;
    }

    @Override
    public boolean keepsLock() {
        return true; // the driver does
    }

    @Override
    public long exchangedBytes() {
        return transport.sent() + transport.received();
    }

    @Override
    public List<MemberStatus> exchange(MemberStatus mine) {
        exchange++;
        byte[] bytes = reports(WireFormat.bytes(mine));
        try {
            connectAbove();
            long wait = FIRST_ASK;
            transport.send(driver(), message(Kind.STATUS), MemorySegment.ofArray(bytes), _ -> {});
            while (true) {
                Event event = await(wait);
                switch (event) {
                    case Event.Statuses all
                    when all.exchange() == exchange -> {
                        repeated = all.repeated();
                        return statuses(all.bytes());
                    }
                    case Event.Address address -> connect(address);
                    case null -> {
                        wait = Math.min(LONGEST_WAIT, 2 * wait);
                        transport.send(driver(), message(Kind.STATUS), MemorySegment.ofArray(bytes), _ -> {});
                    }
                    case Event.Lost _ -> {
                        if (driver == null || !driver.isActive()) {
                            transport.send(driver(), message(Kind.STATUS), MemorySegment.ofArray(bytes), _ -> {});
                        }
                        reconnectAbove();
                    }
                    default -> {} // of the exchange before
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new MemberFailedException(self, "interrupted");
        }
    }

    private static List<MemberStatus> statuses(byte[] all) {
        var statuses = new ArrayList<MemberStatus>();
        var in = ByteBuffer.wrap(all);
        while (in.hasRemaining()) {
            var one = new byte[in.getInt()];
            in.get(one);
            statuses.add(WireFormat.status(one));
        }
        return statuses;
    }

    private void connect(Event.Address address) {
        TransportClient now = above;
        if (now != null && now.isActive()) {
            if (address.equals(aboveAddress)) {
                return;
            }
            now.close(); // that node has started again elsewhere
        }
        try {
            above = transport.connect(address.host(), address.port());
            aboveAddress = address;
        } catch (IOException e) {
            events.add(new Event.Lost()); // then the driver is asked again
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void mean(List<? extends MeanBlock> blocks) {
        try {
            var active = new ArrayList<Work>();
            long wait = FIRST_ASK;
            int next = 0;
            while (next < blocks.size() || !active.isEmpty()) {
                while (next < blocks.size() && hasRoom(active, blocks.get(next))) {
                    var work = new Work(blocks.get(next), next++);
                    active.add(work);
                    work.start();
                }
                Event event = await(wait);
                switch (event) {
                    case Event.Arrived arrived -> {
                        wait = FIRST_ASK;
                        if (arrived.work().exchange == exchange
                                && arrived.work().goOn(arrived)) {
                            active.remove(arrived.work());
                        }
                    }
                    case Event.Address address -> {
                        connect(address);
                        sendAgain(active);
                    }
                    case null -> {
                        wait = Math.min(LONGEST_WAIT, 2 * wait);
                        active.forEach(Work::ask);
                        if (connectAbove()) {
                            sendAgain(active);
                        }
                    }
                    case Event.Lost _ -> {
                        if (reconnectAbove()) {
                            sendAgain(active);
                        }
                    }
                    default -> {} // the statuses, once more
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new MemberFailedException(self, "interrupted");
        }
    }

    private static boolean hasRoom(List<Work> active, MeanBlock block) {
        long elements = active.stream().mapToLong(work -> work.block.length()).sum();
        return active.isEmpty() || elements + block.length() <= MOST_ELEMENTS;
    }

    private void sendAgain(List<Work> active) {
        if (relay != null) {
            relay.repeat();
        } else {
            active.forEach(Work::send);
        }
    }

    /** A block whose mean is being computed. */
    private final class Work {
        private static final int NOT_THERE = 0;
        private static final int ARRIVING = 1;
        private static final int THERE = 2;

        final MeanBlock block;
        final int number;
        final int exchange = Member.this.exchange;
        private final int pieces;
        private final StagingBuffers memory;
        private final MemorySegment own; // exponents
        private final MemorySegment combined; // exponents of all members
        private final MemorySegment sums;
        private final MemorySegment mean;
        private final AtomicIntegerArray combinedStates;
        private final AtomicIntegerArray meanStates;
        private final AtomicInteger sending = new AtomicInteger();
        private boolean[] unknown = {}; // pieces that the driver was asked for without success
        private Stage stage = Stage.EXPONENTS;

        private enum Stage {
            ASKING,
            EXPONENTS,
            SUMS
        }

        Work(MeanBlock block, int number) {
            this.block = block;
            this.number = number;
            int length = block.length();
            pieces = Piece.count(length);
            StagingBuffers free = buffers.poll();
            memory = free == null ? new StagingBuffers() : free;
            own = memory.get(0, length);
            combined = memory.get(1, length);
            sums = memory.get(2, (long) Long.BYTES * length);
            mean = memory.get(3, (long) Float.BYTES * length);
            combinedStates = new AtomicIntegerArray(pieces);
            meanStates = new AtomicIntegerArray(pieces);
        }

        void start() throws InterruptedException {
            works.put(number, this);
            if (repeated) {
                stage = Stage.ASKING;
                unknown = new boolean[pieces];
                ask();
            } else {
                sendExponents();
            }
        }

        private void sendExponents() {
            stage = Stage.EXPONENTS;
            block.exponents(own);
            for (int piece = 0; piece < pieces; piece++) {
                if (meanStates.get(piece) == THERE && combinedStates.compareAndSet(piece, NOT_THERE, THERE)) {
                    part(combined, 1, piece).copyFrom(part(own, 1, piece)); // as good as any: its sums are not needed
                }
            }
            send();
        }

        /** Returns whether the mean is there. */
        boolean goOn(Event.Arrived arrived) {
            if (works.get(number) != this) {
                return false; // what has arrived once more
            }
            if (stage == Stage.ASKING) {
                unknown[arrived.piece()] |= arrived.kind() == Kind.UNKNOWN;
                if (!isAll(piece -> unknown[piece] || isThere(combinedStates, piece) || isThere(meanStates, piece))) {
                    return false;
                }
                if (!isAll(piece -> isThere(meanStates, piece))) {
                    sendExponents();
                }
            }
            if (stage == Stage.EXPONENTS && isAll(piece -> isThere(combinedStates, piece))) {
                stage = Stage.SUMS;
                block.sums(combined, sums);
                send();
            }
            if (!isAll(piece -> isThere(meanStates, piece))) {
                return false;
            }
            block.receive(mean);
            works.remove(number);
            boolean unused = sending.get() == 0;
            for (int piece = 0; piece < pieces; piece++) {
                combinedStates.compareAndSet(piece, NOT_THERE, THERE);
                unused &= isThere(combinedStates, piece);
            }
            if (unused) { // otherwise the network still reads or writes there
                buffers.add(memory);
            }
            return true;
        }

        private boolean isAll(IntPredicate condition) {
            for (int piece = 0; piece < pieces; piece++) {
                if (!condition.test(piece)) {
                    return false;
                }
            }
            return true;
        }

        private static boolean isThere(AtomicIntegerArray states, int piece) {
            return states.get(piece) == THERE;
        }

        /** Sends what there is no answer to. */
        void send() {
            for (int piece = 0; piece < pieces; piece++) {
                if (stage == Stage.EXPONENTS && !isThere(combinedStates, piece)) {
                    send(piece, Kind.EXPONENTS, part(own, 1, piece));
                } else if (stage == Stage.SUMS && !isThere(meanStates, piece)) {
                    send(piece, Kind.SUMS, part(sums, Long.BYTES, piece));
                }
            }
        }

        private void send(int piece, Kind kind, MemorySegment values) {
            Message message = about(kind, piece).scaled(block.terms(), block.total());
            TransportClient to = above;
            if (relay != null) {
                relay.own(message, values);
            } else if (to != null) {
                sending.incrementAndGet();
                transport.send(to, message, values, _ -> sending.decrementAndGet());
            }
        }

        /** Asks the driver for what is missing. */
        void ask() {
            try {
                for (int piece = 0; piece < pieces; piece++) {
                    if (!isThere(meanStates, piece)) {
                        transport.send(driver(), about(Kind.ASK, piece), MemorySegment.NULL, _ -> {});
                    }
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        private Message about(Kind kind, int piece) {
            int at = piece * Piece.ELEMENTS;
            return message(kind).piece(number, at, Piece.length(block.length(), at));
        }

        private MemorySegment part(MemorySegment whole, int bytes, int piece) {
            int at = piece * Piece.ELEMENTS;
            return whole.asSlice((long) at * bytes, (long) Piece.length(block.length(), at) * bytes);
        }

        /** Begins to receive an answer, by a thread of the network. */
        Transport.Incoming answer(Message message, int bytes) {
            boolean last = message.kind() == Kind.MEAN;
            AtomicIntegerArray states = last ? meanStates : combinedStates;
            int piece = message.at() / Piece.ELEMENTS;
            if (!states.compareAndSet(piece, NOT_THERE, ARRIVING)) {
                return ignored(bytes); // it is there, or on its way by another connection
            }
            return new Transport.Incoming(
                    part(last ? mean : combined, last ? Float.BYTES : 1, piece),
                    () -> {
                        states.set(piece, THERE);
                        events.add(new Event.Arrived(this, message.kind(), piece));
                    },
                    () -> states.set(piece, NOT_THERE));
        }
    }

    /** Does nothing: the program ends by an exception, which becomes the last message. */
    @Override
    public void fail(String reason) {}

    @Override
    public void close() {}
}
