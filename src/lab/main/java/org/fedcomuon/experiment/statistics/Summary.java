package org.fedcomuon.experiment.statistics;

import java.util.List;
import java.util.Optional;
import org.apache.commons.statistics.distribution.TDistribution;

/**
 * What is kept of a sample, such as a metric over seeds.
 *
 * <p>Immutable.
 *
 * @param count the number of values, at least 1
 * @param mean of the values
 * @param deviation the standard deviation with the divisor count - 1; NaN of a single value, which has no spread
 */
public record Summary(int count, double mean, double deviation) {
    /**
     * Summarizes values.
     *
     * @throws IllegalArgumentException when there are none, or one is not finite
     */
    public static Summary of(List<Double> values) {
        if (values.isEmpty()) {
            throw new IllegalArgumentException("a summary of no values");
        }
        double sum = 0;
        for (double value : values) {
            if (!Double.isFinite(value)) {
                throw new IllegalArgumentException("a summary of values with %s among them".formatted(value));
            }
            sum += value;
        }
        int count = values.size();
        double mean = sum / count;
        if (count == 1) {
            return new Summary(1, mean, Double.NaN);
        }
        if (values.stream().distinct().count() == 1) {
            return new Summary(count, values.getFirst(), 0); // exactly, whatever the division did to the mean
        }
        double squares = 0;
        for (double value : values) {
            squares += (value - mean) * (value - mean);
        }
        return new Summary(count, mean, Math.sqrt(squares / (count - 1)));
    }

    /** Returns the standard error of the mean; NaN of a single value. */
    public double error() {
        return deviation / Math.sqrt(count);
    }

    /** Returns Student's t interval for the mean; empty of a single value. */
    public Optional<Interval> interval(double level) {
        Interval.checkLevel(level);
        if (count < 2) {
            return Optional.empty();
        }
        double half = TDistribution.of(count - 1).inverseSurvivalProbability((1 - level) / 2) * error();
        return Optional.of(new Interval(level, mean - half, mean + half));
    }
}
