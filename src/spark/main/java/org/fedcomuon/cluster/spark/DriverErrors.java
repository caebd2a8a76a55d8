package org.fedcomuon.cluster.spark;

import java.lang.Thread.UncaughtExceptionHandler;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import org.fedcomuon.cluster.MemberFailedException;
import org.jspecify.annotations.Nullable;

/**
 * Errors on any thread of the driver after which it cannot be relied on, above all that its heap is full: many threads
 * of Spark and of its network survive an {@link OutOfMemoryError} and leave undone what others wait for. The run ends
 * with the first of them; and if ending it takes long, because that needs memory too, the process is ended.
 *
 * <p>Thread-safe.
 */
final class DriverErrors implements AutoCloseable {
    /** For closing what there is, after which nothing is waited for any more. */
    private static final long LONGEST_END = 30; // seconds

    /** Kept until the heap is full, so that there is room to say so. */
    private static final int RESERVE = 2 << 20;

    private static final int RUN_FAILED = 1;
    private static final int MOST_CAUSES = 10;

    private final AtomicReference<@Nullable Error> first = new AtomicReference<>();
    private final CountDownLatch broken = new CountDownLatch(1);
    private final @Nullable UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
    private final String option;
    private final Thread watchdog;
    private volatile BiConsumer<String, Throwable> words = (_, _) -> {};
    private volatile boolean said;

    @SuppressWarnings("UnusedVariable") // what is needed of it is that it can be let go
    private volatile byte @Nullable [] reserve = new byte[RESERVE];

    /**
     * Begins to watch.
     *
     * @param submitted by {@code spark-submit}, which has an option of its own for the heap
     */
    DriverErrors(boolean submitted) {
        option = submitted ? "--driver-memory" : "FEDCOMUON_JAVA_OPTS=-Xmx";
        // Started now, because a thread needs memory.
        watchdog = Thread.ofPlatform().daemon().name("watchdog").start(this::watch);
        Thread.setDefaultUncaughtExceptionHandler(this::uncaught);
    }

    /** Sets what receives exceptions that end a thread. */
    void onUncaught(BiConsumer<String, Throwable> receiver) {
        words = receiver;
    }

    private void uncaught(Thread thread, Throwable failure) {
        try {
            report(failure);
            words.accept("uncaught in " + thread.getName(), failure);
        } catch (OutOfMemoryError e) {
            // It is known already.
        }
    }

    /** Takes note of something that was thrown by any thread. */
    void report(@Nullable Throwable failure) {
        Error error = fatal(failure);
        if (error instanceof OutOfMemoryError) {
            reserve = null;
        }
        if (error != null && first.compareAndSet(null, error)) {
            broken.countDown();
        }
    }

    private static @Nullable Error fatal(@Nullable Throwable failure) {
        Throwable each = failure;
        for (int i = 0; each != null && i < MOST_CAUSES; i++) {
            if (each instanceof VirtualMachineError error) {
                return error;
            }
            each = each.getCause();
        }
        return null;
    }

    /**
     * Throws if there was an error.
     *
     * @throws MemberFailedException with what can be done about it
     */
    void check() {
        Error error = first.get();
        if (error != null) {
            throw explained(error);
        }
    }

    /** Returns what to throw for a failure of any kind. */
    RuntimeException explained(Throwable failure) {
        report(failure);
        Error error = first.get();
        if (error != null) {
            return SparkFailures.failed(explanation(error), failure);
        }
        return SparkFailures.explained(failure);
    }

    private String explanation(Error error) {
        String words = String.valueOf(error.getMessage());
        if (!(error instanceof OutOfMemoryError)) {
            return "the driver, this process, failed: " + error;
        }
        if (words.contains("native thread")) {
            return "the driver, this process, cannot start a thread: %s; raise its limit of processes (ulimit -u)"
                    .formatted(words);
        }
        long heap = Runtime.getRuntime().maxMemory() >> 20;
        return String.format(
                Locale.ROOT,
                "the driver, this process, is out of memory: %s; its heap has %d MiB: give it more, such as by %s%s%dm",
                words,
                heap,
                option,
                option.startsWith("--") ? " " : "",
                2 * heap);
    }

    /** The run has failed, and somebody else says so: from now on, what Spark does when a JVM ends has limited time. */
    void fail() {
        said = true;
        Thread last = Thread.ofPlatform().daemon().name("last-watchdog").unstarted(() -> {
            try {
                TimeUnit.SECONDS.sleep(LONGEST_END);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(RUN_FAILED);
        });
        try {
            Runtime.getRuntime().addShutdownHook(Thread.ofPlatform().unstarted(last::start));
        } catch (IllegalStateException e) {
            last.start(); // the JVM is ending already
        }
    }

    @SuppressWarnings("SystemOut") // nobody else is able to say it
    private void watch() {
        try {
            broken.await();
            TimeUnit.SECONDS.sleep(LONGEST_END);
        } catch (InterruptedException e) {
            return; // the run has ended
        }
        Error error = first.get();
        if (!said && error != null) {
            System.err.println("fedcomuon: " + explanation(error));
        }
        Runtime.getRuntime().halt(RUN_FAILED);
    }

    /** Ends the watch, unless there was an error. */
    @Override
    public void close() {
        if (broken.getCount() > 0) {
            watchdog.interrupt();
        }
        Thread.setDefaultUncaughtExceptionHandler(before);
    }
}
