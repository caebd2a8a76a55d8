package org.fedcomuon.method;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Platform threads that evaluate oracles, a client at a time each. The thread that asks works too, so one worker means
 * no other thread at all.
 */
final class Workers implements AutoCloseable {
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

    /** Calls {@code task} for 0 to {@code tasks - 1}, in any order; returns when all are done. */
    void run(int tasks, IntConsumer task) {
        if (others == null || tasks < 2) {
            for (int i = 0; i < tasks; i++) {
                task.accept(i);
            }
            return;
        }
        var next = new AtomicInteger();
        Runnable work = () -> {
            for (int i = next.getAndIncrement(); i < tasks; i = next.getAndIncrement()) {
                task.accept(i);
            }
        };
        List<Future<?>> helpers = new ArrayList<>();
        for (int i = 1; i < Math.min(count, tasks); i++) {
            helpers.add(others.submit(work));
        }
        @Nullable Throwable failure = null;
        try {
            work.run();
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
