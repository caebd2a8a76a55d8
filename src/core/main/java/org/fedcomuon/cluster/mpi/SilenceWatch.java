package org.fedcomuon.cluster.mpi;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.IntStream;

/**
 * Counts how long each of some processes has given no sign of life, and reports those that were silent for too long,
 * once and by a thread of its own. The thread that could wait for them is in a call of MPI, and stays there.
 *
 * <p>Time during which this process itself was stopped does not count: what the others have sent meanwhile is unread.
 *
 * <p>Thread-safe.
 */
final class SilenceWatch implements AutoCloseable {
    private static final Duration LONGEST_INTERVAL = Duration.ofSeconds(1);

    private final long mostNanos;
    private final long tickNanos;
    private final Consumer<List<Integer>> onSilence;
    private final int first;
    private final long[] silentNanos;
    private long lastTick = System.nanoTime();
    private volatile boolean closed;

    /**
     * Creates a watch of the processes from {@code first} up to, but not including, {@code end}. {@link #start} starts
     * it.
     *
     * @param onSilence receives the numbers of all that were silent for {@code most}
     */
    SilenceWatch(int first, int end, Duration most, Consumer<List<Integer>> onSilence) {
        this.first = first;
        this.onSilence = onSilence;
        mostNanos = most.toNanos();
        tickNanos = interval(most).toNanos();
        silentNanos = new long[end - first];
    }

    /** Returns the time between two signs of life: a tenth of the silence that is allowed, and at most a second. */
    static Duration interval(Duration silence) {
        Duration tenth = silence.dividedBy(10);
        return tenth.compareTo(LONGEST_INTERVAL) < 0 ? tenth : LONGEST_INTERVAL;
    }

    static String text(Duration silence) {
        return silence.toSeconds() > 0 ? silence.toSeconds() + " s" : silence.toMillis() + " ms";
    }

    void start() {
        Thread.ofPlatform().daemon().name("mpi-watch").start(this::watch);
    }

    private void watch() {
        while (!closed) {
            try {
                TimeUnit.NANOSECONDS.sleep(tickNanos);
            } catch (InterruptedException e) {
                return; // nobody has this thread to interrupt it
            }
            List<Integer> silent = silentAt(System.nanoTime());
            if (!silent.isEmpty() && !closed) {
                onSilence.accept(silent);
                return;
            }
        }
    }

    /** Notes a sign of life. */
    synchronized void heard(int process) {
        silentNanos[process - first] = 0;
    }

    /** Counts the time since the last call, and returns the processes that were silent for too long. */
    synchronized List<Integer> silentAt(long now) {
        long passed = Math.min(now - lastTick, 2 * tickNanos); // more only if this process was stopped
        lastTick = now;
        Arrays.setAll(silentNanos, i -> silentNanos[i] + passed);
        return IntStream.range(0, silentNanos.length)
                .filter(i -> silentNanos[i] >= mostNanos)
                .mapToObj(i -> first + i)
                .toList();
    }

    @Override
    public void close() {
        closed = true;
    }
}
