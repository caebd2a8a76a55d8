package org.fedcomuon.experiment.statistics;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import org.apache.commons.statistics.distribution.NormalDistribution;

/**
 * Bootstrap intervals for a mean, which assume no distribution: a check on {@link Summary#interval}, which assumes the
 * normal one. They are too narrow for a handful of values.
 *
 * <p>Immutable.
 *
 * @param resamples the number of samples that are drawn from the values
 * @param seed by which they are drawn
 */
public record Bootstrap(int resamples, long seed) {
    private static final NormalDistribution NORMAL = NormalDistribution.of(0, 1);

    public Bootstrap {
        if (resamples < 1) {
            throw new IllegalArgumentException("%d resamples".formatted(resamples));
        }
    }

    /** Returns the percentile interval; empty unless the values differ. */
    public Optional<Interval> percentile(List<Double> values, double level) {
        Interval.checkLevel(level);
        return differ(values)
                ? Optional.of(between(means(values), level, (1 - level) / 2, (1 + level) / 2))
                : Optional.empty();
    }

    /**
     * Returns the interval that is corrected for bias and acceleration (BCa), which follows a skewed sample; empty
     * unless the values differ.
     */
    public Optional<Interval> corrected(List<Double> values, double level) {
        Interval.checkLevel(level);
        if (!differ(values)) {
            return Optional.empty();
        }
        double[] means = means(values);
        double mean = Summary.of(values).mean();
        double below = Arrays.stream(means)
                        .map(each -> each < mean ? 1 : each == mean ? 0.5 : 0)
                        .sum()
                / means.length;
        double bias = NORMAL.inverseCumulativeProbability(below);
        double acceleration = acceleration(values, mean);
        return Optional.of(between(
                means,
                level,
                corrected((1 - level) / 2, bias, acceleration),
                corrected((1 + level) / 2, bias, acceleration)));
    }

    private static boolean differ(List<Double> values) {
        return values.stream().distinct().count() > 1;
    }

    private static double corrected(double share, double bias, double acceleration) {
        double z = bias + NORMAL.inverseCumulativeProbability(share);
        return NORMAL.cumulativeProbability(bias + z / (1 - acceleration * z));
    }

    /** Returns a sixth of the skewness of the jackknife's means, which for a mean is the sample's own. */
    private static double acceleration(List<Double> values, double mean) {
        double squares = 0;
        double cubes = 0;
        for (double value : values) {
            squares += Math.pow(value - mean, 2);
            cubes += Math.pow(value - mean, 3);
        }
        return cubes / (6 * Math.pow(squares, 1.5));
    }

    /** Returns the means of the resamples, in ascending order. */
    private double[] means(List<Double> values) {
        double[] from = values.stream().mapToDouble(Double::doubleValue).toArray();
        var random = new SplittableRandom(seed);
        var means = new double[resamples];
        for (int i = 0; i < resamples; i++) {
            double sum = 0;
            for (int j = 0; j < from.length; j++) {
                sum += from[random.nextInt(from.length)];
            }
            means[i] = sum / from.length;
        }
        Arrays.sort(means);
        return means;
    }

    private static Interval between(double[] ascending, double level, double low, double high) {
        return new Interval(level, quantile(ascending, low), quantile(ascending, high));
    }

    /** Returns a quantile, linear between neighbours. */
    private static double quantile(double[] ascending, double share) {
        double at = share * (ascending.length - 1);
        int below = (int) Math.floor(at);
        int above = Math.min(below + 1, ascending.length - 1);
        return ascending[below] + (at - below) * (ascending[above] - ascending[below]);
    }
}
