package org.fedcomuon.bench;

import java.util.Arrays;

/**
 * A figure of a row, with its quartiles over the turns of the benchmark: an {@link Aim} that the quartiles straddle is
 * missed within the noise.
 *
 * @param median the figure itself
 * @param lower its first quartile
 * @param upper its third quartile
 */
record Figure(double median, double lower, double upper) {
    /** Returns a figure that has no noise, such as a count. */
    static Figure exactly(double value) {
        return new Figure(value, value, value);
    }

    /** Returns the figure of these values, one for each turn. */
    static Figure of(double[] values) {
        return new Figure(Timing.quantile(values, 0.5), Timing.quantile(values, 0.25), Timing.quantile(values, 0.75));
    }

    /** Returns the seconds of a call. */
    static Figure seconds(Timing timing) {
        return of(values(timing));
    }

    /**
     * Returns the time of one contender relative to another's: the ratio of the medians, and the quartiles of the
     * ratios of samples of the same turn, which a slow minute affects alike.
     *
     * @throws IllegalArgumentException when the two have different numbers of samples
     */
    static Figure ratio(Timing over, Timing under) {
        double[] above = values(over);
        double[] below = values(under);
        if (above.length != below.length) {
            throw new IllegalArgumentException(
                    "%d samples over %d: they have no turns in common".formatted(above.length, below.length));
        }
        Arrays.setAll(above, i -> above[i] / below[i]);
        Figure turns = of(above);
        return new Figure(over.median() / under.median(), turns.lower, turns.upper);
    }

    /** Returns the figure in another unit. */
    Figure times(double positive) {
        return new Figure(positive * median, positive * lower, positive * upper);
    }

    private static double[] values(Timing timing) {
        return timing.samples().stream().mapToDouble(Double::doubleValue).toArray();
    }
}
