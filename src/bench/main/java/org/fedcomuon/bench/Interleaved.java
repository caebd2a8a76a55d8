package org.fedcomuon.bench;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.DoubleSupplier;
import java.util.function.IntToDoubleFunction;

/**
 * A benchmark whose contenders take turns: every round runs each of them once, so that a slow minute affects all of
 * them. {@code prepare} changes global settings, such as the number of threads, before each turn and is not timed.
 *
 * <p>On a GPU a call may return before its work is done: {@code synchronize} waits for it, before the clock is read at
 * the start and at the end of a sample. The calls of a sample follow each other without a wait.
 */
final class Interleaved {
    /** The least length of a sample; shorter calls are repeated. */
    private static final double SAMPLE_SECONDS = 0.1;

    /** Calls of at least this length need no further warm-up. */
    private static final double LONG_SECONDS = 1;

    /** Rivals that take this many times as long as the fastest of them in the warm-up are not measured. */
    private static final double OUT = 1.25;

    /**
     * The pause before each sample. OpenBLAS's threads spin for up to a tenth of a second after a call; without a pause
     * the next contender would share its cores with them.
     */
    private static final Duration SETTLE = Duration.ofMillis(150);

    /**
     * A contender.
     *
     * @param seconds runs the given number of calls and returns their total time
     */
    private record Contender(Runnable prepare, IntToDoubleFunction seconds) {
        double seconds(int calls) {
            return seconds.applyAsDouble(calls);
        }
    }

    private final String what;
    private final Runnable synchronize;
    private final TurnListener listener;
    private final Map<String, Contender> contenders = new LinkedHashMap<>();
    private int done;

    /**
     * Creates a benchmark without contenders.
     *
     * @param what the name of the benchmark, for the listener
     * @param synchronize waits until the work of all calls is done
     */
    Interleaved(String what, Runnable synchronize, TurnListener listener) {
        this.what = what;
        this.synchronize = synchronize;
        this.listener = listener;
    }

    /** Creates a benchmark without contenders, for calls that return when their work is done. */
    Interleaved(String what, TurnListener listener) {
        this(what, () -> {}, listener);
    }

    Interleaved add(String name, Runnable work) {
        return add(name, () -> {}, work);
    }

    Interleaved add(String name, Runnable prepare, Runnable work) {
        contenders.put(name, new Contender(prepare, calls -> seconds(work, calls)));
        return this;
    }

    /** Adds a contender that measures its own time, because a part of its work must not be counted. */
    Interleaved addTimed(String name, DoubleSupplier seconds) {
        contenders.put(name, new Contender(() -> {}, calls -> {
            double sum = 0;
            for (int i = 0; i < calls; i++) {
                sum += seconds.getAsDouble();
            }
            return sum;
        }));
        return this;
    }

    /**
     * Warms every contender up, then measures {@code rounds} samples of each. A single sample shows that all contenders
     * run, not how fast: it may be one short call, and no pause is made before it.
     */
    Map<String, Timing> measure(int rounds) {
        return measure(rounds, Set.of());
    }

    /**
     * Measures like {@link #measure(int)}, but leaves out rivals that are far behind the best of them in the warm-up.
     */
    Map<String, Timing> measure(int rounds, Set<String> rivals) {
        var warm = new LinkedHashMap<String, Double>();
        contenders.forEach((name, contender) -> {
            turn(name + ", warm-up", contenders.size() * (1 + rounds), rounds);
            contender.prepare().run();
            warm.put(name, warmUp(contender));
        });
        double best = warm.entrySet().stream()
                .filter(entry -> rivals.contains(entry.getKey()))
                .mapToDouble(Map.Entry::getValue)
                .min()
                .orElse(0);
        warm.entrySet().removeIf(entry -> rivals.contains(entry.getKey()) && entry.getValue() > OUT * best);

        int turns = contenders.size() + warm.size() * rounds;
        var samples = new LinkedHashMap<String, double[]>();
        warm.keySet().forEach(name -> samples.put(name, new double[rounds]));
        for (int round = 0; round < rounds; round++) {
            for (var entry : warm.entrySet()) {
                Contender contender = contenders.get(entry.getKey());
                int repeat = rounds == 1 ? 1 : (int) Math.ceil(SAMPLE_SECONDS / Math.max(1e-7, entry.getValue()));
                turn("%s, sample %d of %d".formatted(entry.getKey(), round + 1, rounds), turns, rounds);
                contender.prepare().run();
                if (entry.getValue() < LONG_SECONDS) {
                    contender.seconds(1);
                }
                samples.get(entry.getKey())[round] = contender.seconds(repeat) / repeat;
            }
        }
        listener.onTurn(what, turns, turns);
        var timings = new LinkedHashMap<String, Timing>();
        samples.forEach((name, seconds) -> timings.put(name, Timing.of(seconds)));
        return timings;
    }

    private static double warmUp(Contender contender) {
        double first = contender.seconds(1);
        return first < LONG_SECONDS ? Math.min(contender.seconds(1), contender.seconds(1)) : first;
    }

    private void turn(String name, int turns, int rounds) {
        listener.onTurn(what + ": " + name, done++, turns);
        if (rounds == 1) {
            return;
        }
        try {
            Thread.sleep(SETTLE);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
    }

    private double seconds(Runnable work, int calls) {
        synchronize.run();
        long start = System.nanoTime();
        for (int i = 0; i < calls; i++) {
            work.run();
        }
        synchronize.run();
        return (System.nanoTime() - start) * 1e-9;
    }
}
