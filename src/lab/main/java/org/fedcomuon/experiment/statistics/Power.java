package org.fedcomuon.experiment.statistics;

import java.util.OptionalInt;
import org.apache.commons.statistics.distribution.GammaDistribution;
import org.apache.commons.statistics.distribution.NormalDistribution;
import org.apache.commons.statistics.distribution.TDistribution;

/**
 * The power of a one-sided paired t test, and how many pairs a power needs.
 *
 * <p>Thread-safe.
 */
public final class Power {
    /** More pairs than this are nobody's plan. */
    public static final int MOST_PAIRS = 100_000;

    private static final NormalDistribution NORMAL = NormalDistribution.of(0, 1);

    /** Of the integral over the spread of the sample; even, as Simpson's rule needs. */
    private static final int STEPS = 2000;

    /** The part of the distribution that the integral leaves out on either side. */
    private static final double TAIL = 1e-14;

    private Power() {}

    /**
     * Returns the probability that the test finds a true difference.
     *
     * @param effect the mean of the differences divided by their standard deviation
     * @param pairs the number of pairs, at least 2
     * @param level the largest p-value that decides
     */
    public static double of(double effect, int pairs, double level) {
        Interval.checkLevel(level);
        int freedom = pairs - 1;
        double critical = TDistribution.of(freedom).inverseSurvivalProbability(level);
        double shift = effect * Math.sqrt(pairs);
        // t is (normal + shift) / s, where freedom s^2 has a chi-squared distribution: the mean over s^2 of what the
        // normal variable contributes is the distribution of t, which the library does not have where shift is not 0.
        GammaDistribution squares = GammaDistribution.of(freedom / 2.0, 2.0 / freedom);
        double least = Math.log(squares.inverseCumulativeProbability(TAIL));
        double most = Math.log(squares.inverseSurvivalProbability(TAIL));
        double width = (most - least) / STEPS;
        double sum = 0;
        for (int i = 0; i <= STEPS; i++) {
            double square = Math.exp(least + i * width);
            double weight = i == 0 || i == STEPS ? 1 : i % 2 == 1 ? 4 : 2;
            sum += weight
                    * square // of d square = square d log square
                    * squares.density(square)
                    * NORMAL.survivalProbability(critical * Math.sqrt(square) - shift);
        }
        return Math.clamp(sum * width / 3, 0, 1);
    }

    /**
     * Returns the least number of pairs with which the test finds a difference of this size with this probability;
     * empty if more than {@value #MOST_PAIRS} are needed.
     */
    public static OptionalInt pairs(double effect, double level, double power) {
        Interval.checkLevel(level);
        Interval.checkLevel(power);
        if (!(effect > 0) || of(effect, MOST_PAIRS, level) < power) {
            return OptionalInt.empty();
        }
        int low = 1; // too few
        int high = MOST_PAIRS; // enough
        while (high - low > 1) {
            int middle = (low + high) >>> 1;
            if (of(effect, middle, level) < power) {
                low = middle;
            } else {
                high = middle;
            }
        }
        return OptionalInt.of(high);
    }
}
