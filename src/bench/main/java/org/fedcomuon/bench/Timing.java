package org.fedcomuon.bench;

import java.util.Arrays;

/**
 * The statistics of the samples of one contender.
 *
 * @param median seconds per call
 * @param spread half the distance between the quartiles, relative to the median
 */
record Timing(double median, double spread) {
    static Timing of(double[] seconds) {
        double[] sorted = seconds.clone();
        Arrays.sort(sorted);
        double median = quantile(sorted, 0.5);
        return new Timing(median, (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 2 / median);
    }

    /** Returns a quantile, interpolated linearly between the two nearest samples. */
    private static double quantile(double[] sorted, double part) {
        double at = part * (sorted.length - 1);
        int below = (int) at;
        int above = Math.min(below + 1, sorted.length - 1);
        return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
    }
}
