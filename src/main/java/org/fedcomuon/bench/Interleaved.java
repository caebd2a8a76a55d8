package org.fedcomuon.bench;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.DoubleSupplier;
import java.util.function.IntToDoubleFunction;

/**
 * Contenders that take turns: every round runs each of them once, so that a slow minute slows them all. {@code prepare}
 * sets what is global (threads, say) before each turn, outside the clock.
 */
final class Interleaved {
    /** A sample is at least this long; a shorter call is repeated within it. */
    private static final double SAMPLE_SECONDS = 0.1;

    /** From here on a call is its own warm-up. */
    private static final double LONG_SECONDS = 1;

    /** Of rivals, those that take this much longer than the fastest of them in the warm-up are out. */
    private static final double OUT = 1.25;

    /**
     * Before each sample. OpenBLAS's threads spin for up to a tenth of a second after a call; without a pause the next
     * contender would share its cores with them.
     */
    private static final Duration SETTLE = Duration.ofMillis(150);

    /**
     * One of them.
     *
     * @param seconds works so many times, and says how long all that took
     */
    private record Contender(Runnable prepare, IntToDoubleFunction seconds) {
        double seconds(int calls) {
            return seconds.applyAsDouble(calls);
        }
    }

    private final Map<String, Contender> contenders = new LinkedHashMap<>();

    Interleaved add(String name, Runnable work) {
        return add(name, () -> {}, work);
    }

    Interleaved add(String name, Runnable prepare, Runnable work) {
        contenders.put(name, new Contender(prepare, calls -> seconds(work, calls)));
        return this;
    }

    /** One that says itself how many seconds it took, because a part of what it does is not to be counted. */
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

    /** Warms every contender up, then measures {@code rounds} samples of each. */
    Map<String, Timing> measure(int rounds) {
        return measure(rounds, Set.of());
    }

    /**
     * The same where only the best of some rivals matter: those that the warm-up shows to be far behind are not
     * measured.
     */
    Map<String, Timing> measure(int rounds, Set<String> rivals) {
        var warm = new LinkedHashMap<String, Double>();
        contenders.forEach((name, contender) -> {
            settle();
            contender.prepare().run();
            warm.put(name, warmUp(contender));
        });
        double best = warm.entrySet().stream()
                .filter(entry -> rivals.contains(entry.getKey()))
                .mapToDouble(Map.Entry::getValue)
                .min()
                .orElse(0);
        warm.entrySet().removeIf(entry -> rivals.contains(entry.getKey()) && entry.getValue() > OUT * best);

        var samples = new LinkedHashMap<String, double[]>();
        warm.keySet().forEach(name -> samples.put(name, new double[rounds]));
        for (int round = 0; round < rounds; round++) {
            for (var entry : warm.entrySet()) {
                Contender contender = contenders.get(entry.getKey());
                int repeat = (int) Math.ceil(SAMPLE_SECONDS / Math.max(1e-7, entry.getValue()));
                settle();
                contender.prepare().run();
                if (entry.getValue() < LONG_SECONDS) {
                    contender.seconds(1);
                }
                samples.get(entry.getKey())[round] = contender.seconds(repeat) / repeat;
            }
        }
        var timings = new LinkedHashMap<String, Timing>();
        samples.forEach((name, seconds) -> timings.put(name, Timing.of(seconds)));
        return timings;
    }

    private static double warmUp(Contender contender) {
        double first = contender.seconds(1);
        return first < LONG_SECONDS ? Math.min(contender.seconds(1), contender.seconds(1)) : first;
    }

    private static void settle() {
        try {
            Thread.sleep(SETTLE);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
    }

    private static double seconds(Runnable work, int calls) {
        long start = System.nanoTime();
        for (int i = 0; i < calls; i++) {
            work.run();
        }
        return (System.nanoTime() - start) * 1e-9;
    }
}
