package org.fedcomuon.dashboard;

import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;

/** The speed of a run over its last seconds; an average over all of it would hide a change. Not thread-safe. */
final class Pace {
    private static final long SHORT = TimeUnit.SECONDS.toNanos(10);
    private static final long LONG = TimeUnit.SECONDS.toNanos(60);
    /** The least time between two moments that are kept. */
    private static final long APART = TimeUnit.MILLISECONDS.toNanos(200);

    private record Moment(long nanos, long step) {}

    private final ArrayDeque<Moment> moments = new ArrayDeque<>();

    void begin(long nanos, long step) {
        moments.clear();
        moments.add(new Moment(nanos, step));
    }

    void see(long nanos, long step) {
        if (!moments.isEmpty() && nanos - moments.getLast().nanos() < APART) {
            return;
        }
        moments.add(new Moment(nanos, step));
        while (nanos - moments.getFirst().nanos() > LONG) {
            moments.removeFirst();
        }
    }

    /** Steps per second over the last ten seconds; NaN before anything can be measured. */
    double now(long nanos, long step) {
        return over(SHORT, nanos, step);
    }

    /** Steps per second over the last minute, which includes evaluations and checkpoints, to estimate the time left. */
    double steady(long nanos, long step) {
        return over(LONG, nanos, step);
    }

    private double over(long window, long nanos, long step) {
        for (Moment moment : moments) {
            if (nanos - moment.nanos() <= window) {
                double seconds = (nanos - moment.nanos()) * 1e-9;
                return seconds > 0 ? (step - moment.step()) / seconds : Double.NaN;
            }
        }
        return Double.NaN;
    }
}
