package org.fedcomuon.dashboard;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A browser that listens. It is sent what waits for it by a thread of its own; one that does not keep up is left. */
final class Subscriber {
    /** At four updates a second, a quarter of a minute; and all that a reconnection may have missed. */
    static final int MOST_WAITING = 64;
    /** Between two signs of life, by which a browser that is gone is noticed. */
    private static final long SILENCE_SECONDS = 15;

    private static final byte[] ALIVE = ": alive\n\n".getBytes(StandardCharsets.US_ASCII);

    private final BlockingQueue<Event> waiting = new ArrayBlockingQueue<>(MOST_WAITING);
    private final Thread writer = Thread.currentThread();
    private volatile boolean left;

    /** Whether there was room; otherwise it has been left. Never waits. */
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
