package org.fedcomuon.bench;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Contenders that take turns: every round runs each of them once, so that a slow minute slows them all. {@code prepare}
 * sets what is global (threads, say) before each turn, outside the clock.
 */
final class Interleaved {
    /** A sample is at least this long; a shorter call is repeated within it. */
    private static final double SAMPLE_SECONDS = 0.1;

    /**
     * Before each sample. OpenBLAS's threads spin for up to a tenth of a second after a call; without a pause the next
     * contender would share its cores with them.
     */
    private static final Duration SETTLE = Duration.ofMillis(150);

    private record Contender(Runnable prepare, Runnable work) {}

    private final Map<String, Contender> contenders = new LinkedHashMap<>();

    Interleaved add(String name, Runnable work) {
        return add(name, () -> {}, work);
    }

    Interleaved add(String name, Runnable prepare, Runnable work) {
        contenders.put(name, new Contender(prepare, work));
        return this;
    }

    /** Warms every contender up, then measures {@code rounds} samples of each. */
    Map<String, Timing> measure(int rounds) {
        var calls = new LinkedHashMap<String, Integer>();
        contenders.forEach((name, contender) -> {
            contender.prepare().run();
            seconds(contender.work(), 2);
            calls.put(name, (int) Math.ceil(SAMPLE_SECONDS / Math.max(1e-7, seconds(contender.work(), 1))));
        });
        var samples = new LinkedHashMap<String, double[]>();
        contenders.keySet().forEach(name -> samples.put(name, new double[rounds]));
        for (int round = 0; round < rounds; round++) {
            for (var contender : contenders.entrySet()) {
                int repeat = calls.get(contender.getKey());
                settle();
                contender.getValue().prepare().run();
                contender.getValue().work().run();
                samples.get(contender.getKey())[round] =
                        seconds(contender.getValue().work(), repeat) / repeat;
            }
        }
        var timings = new LinkedHashMap<String, Timing>();
        samples.forEach((name, seconds) -> timings.put(name, Timing.of(seconds)));
        return timings;
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
