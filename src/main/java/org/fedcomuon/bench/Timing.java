package org.fedcomuon.bench;

import java.util.Arrays;

/**
 * What the samples of one contender say.
 *
 * @param median seconds a call
 * @param spread half the distance between the quartiles, relative to the median: how much the machine wavered
 */
record Timing(double median, double spread) {
    static Timing of(double[] seconds) {
        double[] sorted = seconds.clone();
        Arrays.sort(sorted);
        double median = quantile(sorted, 0.5);
        return new Timing(median, (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 2 / median);
    }

    /** Between the two nearest samples, linearly. */
    private static double quantile(double[] sorted, double part) {
        double at = part * (sorted.length - 1);
        int below = (int) at;
        int above = Math.min(below + 1, sorted.length - 1);
        return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
    }
}
