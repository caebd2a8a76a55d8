package org.fedcomuon.bench;

import java.util.Arrays;
import java.util.List;

/**
 * The statistics of the samples of one contender.
 *
 * @param median seconds per call
 * @param spread half the distance between the quartiles, relative to the median
 * @param samples seconds per call, in the order in which they were measured
 */
record Timing(double median, double spread, List<Double> samples) {
    Timing {
        samples = List.copyOf(samples);
    }

    static Timing of(double[] seconds) {
        double median = quantile(seconds, 0.5);
        return new Timing(
                median,
                (quantile(seconds, 0.75) - quantile(seconds, 0.25)) / 2 / median,
                Arrays.stream(seconds).boxed().toList());
    }

    /** Returns a quantile, interpolated linearly between the two nearest values. */
    static double quantile(double[] values, double part) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        double at = part * (sorted.length - 1);
        int below = (int) at;
        int above = Math.min(below + 1, sorted.length - 1);
        return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
    }
}
