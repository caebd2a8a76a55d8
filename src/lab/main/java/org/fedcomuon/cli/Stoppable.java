package org.fedcomuon.cli;

import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Work that Ctrl-C and a kill end in order. */
final class Stoppable {
    /** The JVM ends after this time even if the current step and its checkpoint are not done. */
    private static final long STOP_SECONDS = 120;

    private Stoppable() {}

    interface Work {
        void run() throws IOException, InterruptedException;
    }

    /**
     * Runs {@code work}, and on Ctrl-C or a kill waits for the current step, because a process must not end during a
     * call of libtorch.
     */
    static void run(Runnable stop, Work work) throws IOException, InterruptedException {
        var done = new CountDownLatch(1);
        Thread hook = Thread.ofPlatform().unstarted(() -> {
            stop.run();
            try {
                done.await(STOP_SECONDS, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        Runtime.getRuntime().addShutdownHook(hook);
        try {
            work.run();
        } finally {
            done.countDown();
            try {
                Runtime.getRuntime().removeShutdownHook(hook);
            } catch (IllegalStateException e) {
                // The JVM is shutting down, and the hook waits for this method.
            }
        }
    }
}
