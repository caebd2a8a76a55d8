package org.fedcomuon.experiment.statistics;

import java.util.List;
import java.util.SplittableRandom;

/** Counts the choices of signs whose sum is as large, or as small, as the observed one. */
final class SignFlips {
    /** Up to here all choices are counted; the sums of a half of them fit into 8 MB. */
    static final int MOST_EXACT = 40;

    private static final int SAMPLES = 1 << 17;

    private static final long SEED = 1;

    /** Of the sum of magnitudes: sums that differ by less are equal but for rounding. */
    private static final double ROUNDING = 1e-12;

    private SignFlips() {}

    static Significance test(List<Double> differences) {
        double[] values = differences.stream().mapToDouble(Double::doubleValue).toArray();
        double observed = 0;
        double magnitude = 0;
        for (double value : values) {
            observed += value;
            magnitude += Math.abs(value);
        }
        double tolerance = ROUNDING * magnitude;
        return values.length <= MOST_EXACT ? count(values, observed, tolerance) : sample(values, observed, tolerance);
    }

    /** Counts sums of one half with sums of the other, which takes 2^(n/2) and not 2^n steps. */
    private static Significance count(double[] values, double observed, double tolerance) {
        double[] left = sums(values, 0, values.length / 2);
        double[] right = sums(values, values.length / 2, values.length);
        double all = (double) left.length * right.length;
        // The signs of a choice can all be reversed, so as many sums are at most -x as are at least x.
        double greater = atLeast(left, right, observed - tolerance) / all;
        double less = atLeast(left, right, -observed - tolerance) / all;
        return new Significance(greater, less);
    }

    /** Returns all sums of some values with either sign, in ascending order. */
    private static double[] sums(double[] values, int from, int to) {
        double[] sums = {0};
        for (int i = from; i < to; i++) {
            double step = Math.abs(values[i]);
            var next = new double[2 * sums.length];
            int lower = 0;
            int upper = 0;
            for (int at = 0; at < next.length; at++) { // merges the sums minus the step with those plus it
                boolean takeLower =
                        upper == sums.length || (lower < sums.length && sums[lower] - step <= sums[upper] + step);
                next[at] = takeLower ? sums[lower++] - step : sums[upper++] + step;
            }
            sums = next;
        }
        return sums;
    }

    private static double atLeast(double[] left, double[] right, double bound) {
        double count = 0;
        int first = right.length; // the first on the right that is large enough
        for (double sum : left) {
            while (first > 0 && sum + right[first - 1] >= bound) {
                first--;
            }
            count += right.length - first;
        }
        return count;
    }

    private static Significance sample(double[] values, double observed, double tolerance) {
        var random = new SplittableRandom(SEED);
        int greater = 1; // the observed choice is one of them
        int less = 1;
        for (int sample = 0; sample < SAMPLES; sample++) {
            double sum = 0;
            long signs = 0;
            for (int i = 0; i < values.length; i++) {
                if (i % Long.SIZE == 0) {
                    signs = random.nextLong();
                }
                sum += (signs & 1) == 0 ? values[i] : -values[i];
                signs >>>= 1;
            }
            greater += sum >= observed - tolerance ? 1 : 0;
            less += sum <= observed + tolerance ? 1 : 0;
        }
        return new Significance((double) greater / (SAMPLES + 1), (double) less / (SAMPLES + 1));
    }
}
