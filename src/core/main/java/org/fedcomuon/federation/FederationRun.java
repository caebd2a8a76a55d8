package org.fedcomuon.federation;

import java.util.concurrent.CompletableFuture;
import org.fedcomuon.problem.Point;

/**
 * A run in the background, for services. {@link Federation#start} creates it.
 *
 * <p>For example: {@snippet file="org/fedcomuon/federation/FederationRunIT.java" region="background"}
 *
 * <p>Thread-safe. {@link #close} stops the run and waits for it; afterwards only the weights of its {@link Result}
 * remain in memory.
 */
public final class FederationRun implements AutoCloseable {
    private final Federation federation;
    private final CompletableFuture<Result> result;
    private final Thread thread;

    FederationRun(Federation federation, String name) {
        this.federation = federation;
        this.result = new Stopping(federation);
        this.thread = Thread.ofPlatform().name("federation-" + name).start(this::run);
    }

    /** Cancelling the result stops the run. */
    private static final class Stopping extends CompletableFuture<Result> {
        private final Federation federation;

        Stopping(Federation federation) {
            this.federation = federation;
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            federation.stop();
            return super.cancel(mayInterruptIfRunning);
        }
    }

    private void run() {
        try {
            result.complete(federation.run());
        } catch (Throwable e) { // for the callers of result()
            result.completeExceptionally(e);
        }
    }

    /**
     * Returns the future of the run: completed with a {@link Result}, also when the run was stopped, or with the
     * exception that {@link Federation#run} throws. Cancelling it stops the run after the current step, with a
     * checkpoint if it keeps any; {@link #close} waits for that. Dependent stages run on the run's own thread unless
     * they are asynchronous ({@link CompletableFuture#thenAcceptAsync}).
     *
     * @return the same future every time; the caller may modify the {@link Point} of its weights
     */
    public CompletableFuture<Result> result() {
        return result;
    }

    /** Returns whether the run has not ended. */
    public boolean isRunning() {
        return thread.isAlive();
    }

    /** Requests that the run end after the current step, with a checkpoint if it keeps any. Returns immediately. */
    public void stop() {
        federation.stop();
    }

    /**
     * Stops the run, and returns when it has ended and all its memory but the result's is freed. Waits through
     * interruptions, because a step cannot be cut off; an oracle that never returns is waited for indefinitely. Does
     * not throw when the run failed: {@link #result} does. Listeners, oracles and threads that they have started may
     * call it too; it then returns immediately, since a run cannot wait for itself.
     */
    @Override
    public void close() {
        stop();
        if (Thread.currentThread().equals(thread) || federation.hasStarted(Thread.currentThread())) {
            return;
        }
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
