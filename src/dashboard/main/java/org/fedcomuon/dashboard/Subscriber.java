package org.fedcomuon.dashboard;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A connected browser. Its own thread sends its queue; a browser that does not keep up is disconnected. */
final class Subscriber {
    /**
     * The longest queue: 16 seconds at four updates per second, and all that a reconnecting browser may have missed.
     */
    static final int MOST_WAITING = 64;
    /** The time between two comments, whose failure shows that a browser is gone. */
    private static final long SILENCE_SECONDS = 15;

    private static final byte[] ALIVE = ": alive\n\n".getBytes(StandardCharsets.US_ASCII);

    private final BlockingQueue<Event> waiting = new ArrayBlockingQueue<>(MOST_WAITING);
    private final Thread writer = Thread.currentThread();
    private volatile boolean left;

    /** Whether the queue had room; otherwise the browser is disconnected. Never waits. */
    boolean offer(Event event) {
        if (!left && !waiting.offer(event)) {
            leave();
        }
        return !left;
    }

    /** Ends it, even in the middle of a write: an interrupt closes the channel. */
    void leave() {
        left = true;
        writer.interrupt();
    }

    /** Writes what comes until there is no more to come, or nobody to write to. On the thread that made it. */
    void serve(OutputStream out) throws IOException {
        try {
            while (!left) {
                @Nullable Event event = waiting.poll(SILENCE_SECONDS, TimeUnit.SECONDS);
                out.write(event == null ? ALIVE : event.bytes());
                if (waiting.isEmpty()) {
                    out.flush();
                }
                if (event != null && event.isLast()) {
                    return;
                }
            }
        } catch (InterruptedException e) {
            // It was left.
        }
    }
}
