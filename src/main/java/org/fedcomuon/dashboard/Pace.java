package org.fedcomuon.dashboard;

import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;

/** How fast a run is, over its last seconds: an average since the beginning would hide a change. Not thread-safe. */
final class Pace {
    private static final long SHORT = TimeUnit.SECONDS.toNanos(10);
    private static final long LONG = TimeUnit.SECONDS.toNanos(60);
    /** Between two moments that are remembered. */
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

    /** Steps a second, lately; NaN before there is anything to measure. */
    double now(long nanos, long step) {
        return over(SHORT, nanos, step);
    }

    /** The same over a longer time, which evaluations and checkpoints are part of, to tell what is left. */
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
