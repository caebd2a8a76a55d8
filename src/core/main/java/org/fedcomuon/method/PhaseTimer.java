package org.fedcomuon.method;

import java.util.EnumMap;
import java.util.Map;

/** Adds up the time that a device's thread spends in each phase. Phases may be nested. */
final class PhaseTimer {
    private final Map<Clients.Phase, Long> nanos = new EnumMap<>(Clients.Phase.class);
    private final Map<Clients.Phase, Long> running = new EnumMap<>(Clients.Phase.class); // since when

    /** Runs {@code work} and adds its time to a phase. */
    void timed(Clients.Phase phase, Runnable work) {
        long start = System.nanoTime();
        running.put(phase, start);
        try {
            work.run();
        } finally {
            running.remove(phase);
            nanos.merge(phase, System.nanoTime() - start, Long::sum);
        }
    }

    /** Returns the seconds spent in a phase since the beginning, up to now if it is running. */
    double seconds(Clients.Phase phase) {
        long now = System.nanoTime();
        return (nanos.getOrDefault(phase, 0L) + now - running.getOrDefault(phase, now)) * 1e-9;
    }
}
