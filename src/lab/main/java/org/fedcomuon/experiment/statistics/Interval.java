package org.fedcomuon.experiment.statistics;

/**
 * A confidence interval.
 *
 * <p>Immutable.
 *
 * @param level the share of samples whose interval has the true value, such as 0.95
 * @param low the lower end
 * @param high the upper end
 */
public record Interval(double level, double low, double high) {
    public Interval {
        checkLevel(level);
        if (!(low <= high)) {
            throw new IllegalArgumentException("an interval from %s to %s".formatted(low, high));
        }
    }

    /** Returns whether a value lies in the interval; its ends do. */
    public boolean contains(double value) {
        return low <= value && value <= high;
    }

    static void checkLevel(double level) {
        if (!(level > 0 && level < 1)) {
            throw new IllegalArgumentException("a level of %s, not between 0 and 1".formatted(level));
        }
    }
}
