package org.fedcomuon.federation;

import java.util.concurrent.CompletableFuture;
import org.fedcomuon.problem.Point;

/**
 * A run in the background, for services: {@link Federation#start} makes one.
 *
 * <p>For example: {@snippet file="org/fedcomuon/federation/FederationRunIT.java" region="background"}
 *
 * <p>Thread-safe. {@link #close} stops the run and waits for it; nothing of it is left then, but the weights of its
 * {@link Result}.
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

    /** Cancelling the result is a wish like any other. */
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
        } catch (Throwable e) { // for whoever asks for the result
            result.completeExceptionally(e);
        }
    }

    /**
     * How it ends: completed by a {@link Result}, also when it was stopped, or by what {@link Federation#run} throws.
     * Cancelling it stops the run after the step it is in, with a checkpoint if it keeps any; {@link #close} waits for
     * that. What depends on it is run by the run's own thread unless you say otherwise
     * ({@link CompletableFuture#thenAcceptAsync}).
     *
     * @return the same every time; {@link Point} of its weights is yours
     */
    public CompletableFuture<Result> result() {
        return result;
    }

    /** Whether it goes on. */
    public boolean isRunning() {
        return thread.isAlive();
    }

    /** Asks it to end after the step that it is in, with a checkpoint if it keeps any. Returns at once. */
    public void stop() {
        federation.stop();
    }

    /**
     * Stops it, and returns when it has ended and all its memory but the result's is free. Waits through interruptions,
     * because a step cannot be cut off; for an oracle that never returns, for ever. Says nothing of a failure:
     * {@link #result} does. Listeners, oracles and threads that they have started may call it too, but it then returns
     * at once, since a run cannot wait for itself.
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
