package org.fedcomuon.method;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Platform threads that evaluate oracles, a client at a time each. The thread that asks works too, so one worker means
 * no other thread at all.
 */
final class Workers implements AutoCloseable {
    /** Tasks that take less together are done before another thread is awake, and are not shared. */
    private static final long WORTH_WAKING_NANOS = 100_000;

    /** How long tasks of one kind took when they last ran. Not thread-safe. */
    static final class Pace {
        private OptionalLong nanosOfTask = OptionalLong.empty();

        private boolean isWorthWaking(int tasks) {
            return nanosOfTask.isEmpty() || nanosOfTask.getAsLong() * tasks > WORTH_WAKING_NANOS;
        }

        private void ran(int tasks, long nanos) {
            if (tasks > 0) {
                nanosOfTask = OptionalLong.of(nanos / tasks);
            }
        }
    }

    private final int count;
    private final @Nullable ExecutorService others;
    private final List<Thread> threads = new CopyOnWriteArrayList<>();

    Workers(String name, int count) {
        this.count = count;
        ThreadFactory factory =
                Thread.ofPlatform().daemon().name(name + "-worker-", 1).factory();
        others = count == 1
                ? null
                : Executors.newFixedThreadPool(count - 1, work -> {
                    Thread thread = factory.newThread(work);
                    threads.add(thread);
                    return thread;
                });
    }

    /**
     * Calls {@code task} for 0 to {@code tasks - 1}, in any order; returns when all are done.
     *
     * @param pace of tasks of this kind
     */
    void run(int tasks, Pace pace, IntConsumer task) {
        long start = System.nanoTime();
        var next = new AtomicInteger();
        IntSupplier work = () -> {
            int done = 0;
            for (int i = next.getAndIncrement(); i < tasks; i = next.getAndIncrement()) {
                task.accept(i);
                done++;
            }
            return done;
        };
        if (others == null || tasks < 2 || !pace.isWorthWaking(tasks)) {
            pace.ran(work.getAsInt(), System.nanoTime() - start);
            return;
        }
        List<Future<?>> helpers = new ArrayList<>();
        for (int i = 1; i < Math.min(count, tasks); i++) {
            helpers.add(others.submit(work::getAsInt));
        }
        @Nullable Throwable failure = null;
        try {
            pace.ran(work.getAsInt(), System.nanoTime() - start);
        } catch (Throwable e) { // of another language than Java, perhaps; the helpers are still at work
            failure = e;
        }
        for (Future<?> helper : helpers) {
            Throwable thrown = await(helper);
            failure = failure == null ? thrown : failure;
        }
        switch (failure) {
            case null -> {}
            case Error e -> throw e;
            case RuntimeException e -> throw e;
            default -> throw new AssertionError(failure);
        }
    }

    /** Waits through interruptions: the worker uses buffers that must not be freed under it. */
    private static @Nullable Throwable await(Future<?> helper) {
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    helper.get();
                    return null;
                } catch (InterruptedException e) {
                    interrupted = true;
                } catch (ExecutionException e) {
                    return e.getCause();
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Waits for the threads themselves: an executor calls itself terminated while its last thread still ends. */
    @Override
    public void close() {
        if (others == null) {
            return;
        }
        others.close();
        boolean interrupted = false;
        for (Thread thread : threads) {
            while (thread.isAlive()) {
                try {
                    thread.join();
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
