package org.fedcomuon.cluster.spark;

import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import java.util.function.IntSupplier;

/**
 * Keeps a cluster from starting executors many times a second where they end at once, such as on a host with a full
 * disk: after some of these, no more are asked for until some time has passed, which doubles each time. Those that are
 * there stay. Thread-safe.
 */
final class LaunchLimit implements AutoCloseable {
    /** The number of executors that may end at once before no more are asked for. */
    private static final int FAILURES = 5;

    private static final int NO_LIMIT = Integer.MAX_VALUE;
    private static final long FIRST_PAUSE = 5; // seconds
    private static final long LONGEST_PAUSE = 60;

    private final IntSupplier count;
    private final IntConsumer request;
    private final ScheduledExecutorService later = Executors.newSingleThreadScheduledExecutor(
            Thread.ofPlatform().daemon().name("launch-limit").factory());
    private int failures;
    private long pause = FIRST_PAUSE;
    private boolean holding;

    /**
     * @param count returns the number of executors that are there
     * @param request asks the cluster for a number of executors; may take long
     */
    LaunchLimit(IntSupplier count, IntConsumer request) {
        this.count = count;
        this.request = request;
    }

    /** An executor has ended before it was of any use. */
    synchronized void failed() {
        failures++;
        if (failures >= FAILURES && !holding && !later.isShutdown()) {
            holding = true;
            later.execute(() -> request.accept(count.getAsInt()));
            Future<?> _ = later.schedule(this::release, pause, TimeUnit.SECONDS);
            pause = Math.min(LONGEST_PAUSE, 2 * pause);
        }
    }

    /** An executor was of use. */
    synchronized void succeeded() {
        failures = 0;
        pause = FIRST_PAUSE;
    }

    private void release() {
        synchronized (this) {
            failures = 0;
            holding = false;
        }
        request.accept(NO_LIMIT);
    }

    @Override
    public void close() {
        later.shutdownNow();
    }
}
