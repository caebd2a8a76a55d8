package org.fedcomuon.dashboard;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Optional;

/**
 * A visitor: what has arrived of its request, what it has still to be sent, and how long it may take for either.
 * Confined to the thread of the server.
 */
final class Connection {
    /** What a visitor is at. */
    enum Stage {
        REQUEST,
        ANSWER,
        EVENTS,
        /** The answer is sent, and the visitor is given time to read it before the connection is closed. */
        PARTING
    }

    private static final long NEVER = Long.MAX_VALUE;
    /** What a visitor may send after its request, to nobody; beyond it, it loses the answer. */
    private static final long MOST_IGNORED = 1L << 20;

    private static final int FIRST_BYTES = 1 << 10;

    private final SocketChannel channel;
    private final SelectionKey key;
    private final Limits limits;
    private final long began = System.nanoTime();
    private Stage stage = Stage.REQUEST;
    private long patience; // nanoseconds since it began; NEVER for ever
    private byte[] request = new byte[0];
    private int length;
    private boolean atLineStart;
    private long ignored;
    private final ArrayDeque<byte[]> waiting = new ArrayDeque<>();
    private int sent; // of the first of these
    private Optional<Subscriber> subscriber = Optional.empty();
    private boolean last; // what is waiting is followed by nothing

    Connection(SocketChannel channel, SelectionKey key, Limits limits) {
        this.channel = channel;
        this.key = key;
        this.limits = limits;
        allow(limits.request());
    }

    private void allow(Duration time) {
        patience = System.nanoTime() - began + time.toNanos();
    }

    Stage stage() {
        return stage;
    }

    /** Whom it sends events; empty unless it has asked for them. */
    Optional<Subscriber> subscriber() {
        return subscriber;
    }

    boolean isLate() {
        return System.nanoTime() - began >= patience;
    }

    /** The bytes that wait to be read. */
    long waitingBytes() {
        return waiting.stream().mapToLong(bytes -> bytes.length).sum();
    }

    boolean isIdle() {
        return waiting.isEmpty();
    }

    /** What has become of a request when something has arrived. */
    enum Arrival {
        MORE_TO_COME,
        COMPLETE,
        TOO_LARGE,
        /** The visitor has closed its side, or sends too much. */
        GONE
    }

    /** Reads what has arrived. */
    Arrival read(ByteBuffer buffer) throws IOException {
        buffer.clear();
        if (channel.read(buffer) < 0) {
            return Arrival.GONE;
        }
        buffer.flip();
        while (stage == Stage.REQUEST && buffer.hasRemaining()) {
            byte next = buffer.get();
            if (next == '\n' && atLineStart && length > 0) {
                ignored += buffer.remaining();
                return Arrival.COMPLETE;
            }
            atLineStart = next == '\n' || (next == '\r' && atLineStart);
            boolean blank = length == 0 && (next == '\r' || next == '\n'); // some send a line too many before it
            if (!blank && !append(next)) {
                return Arrival.TOO_LARGE;
            }
        }
        ignored += buffer.remaining();
        return ignored > MOST_IGNORED ? Arrival.GONE : Arrival.MORE_TO_COME;
    }

    private boolean append(byte next) {
        if (length == limits.requestBytes()) {
            return false;
        }
        if (length == request.length) {
            request = Arrays.copyOf(request, Math.clamp(2L * length, FIRST_BYTES, limits.requestBytes()));
        }
        request[length++] = next;
        return true;
    }

    /** The request that has arrived; empty if it is none. */
    Optional<Request> request() {
        return Request.parse(request, length);
    }

    /** Begins to send an answer. */
    void answer(Answer answer, boolean withBody) {
        request = new byte[0];
        waiting.add(answer.head());
        if (withBody && answer.body().length > 0) {
            waiting.add(answer.body());
        }
        subscriber = withBody ? answer.events() : Optional.empty();
        stage = subscriber.isPresent() ? Stage.EVENTS : Stage.ANSWER;
        last = subscriber.isEmpty();
        allow(limits.answer());
        listen();
    }

    /** Sends one more thing, and nothing after it if it is the last. */
    void send(byte[] bytes, boolean isLast) {
        if (waiting.isEmpty()) {
            allow(limits.answer());
        }
        waiting.add(bytes);
        last = isLast;
        listen();
    }

    /** Sends what the visitor takes at once, as much as a buffer has. */
    void write(ByteBuffer buffer) throws IOException {
        buffer.clear();
        int skip = sent;
        for (byte[] bytes : waiting) {
            buffer.put(bytes, skip, Math.min(bytes.length - skip, buffer.remaining()));
            skip = 0;
        }
        buffer.flip();
        sent += channel.write(buffer);
        while (!waiting.isEmpty() && sent >= waiting.getFirst().length) {
            sent -= waiting.removeFirst().length;
        }
        if (waiting.isEmpty()) {
            if (last) {
                part();
            } else {
                patience = NEVER;
            }
        }
        listen();
    }

    /** A connection closed with something unread would be reset, and the answer lost. */
    private void part() throws IOException {
        stage = Stage.PARTING;
        channel.shutdownOutput();
        allow(limits.parting());
    }

    private void listen() {
        int reads = stage == Stage.ANSWER ? 0 : SelectionKey.OP_READ;
        key.interestOps(reads | (waiting.isEmpty() ? 0 : SelectionKey.OP_WRITE));
    }

    void close() {
        try {
            channel.close();
        } catch (IOException e) {
            // It is closed all the same.
        }
    }
}
