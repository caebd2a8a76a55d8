package org.fedcomuon.experiment;

import java.util.function.DoubleUnaryOperator;

/**
 * What is left of the noise of a client's inner function in its tracker, by the two rules of trackers: the moving
 * average of FedCoMuon and the variance-reduced one of FedCoMuon-VR. Computed from values of g at two neighbouring
 * iterates on the same samples.
 *
 * <p>Both errors are those that a tracker settles at if every step were like the one between the two iterates: the same
 * change of g, and samples that are independent of each other. For the moving average that is the error of a client
 * whose loss falls steadily, and more than that of one whose loss goes up and down.
 *
 * <p>Immutable, provided that the arrays are not changed.
 *
 * @param here g at the iterate, a row per sample with the d components of g
 * @param before g at the iterate before, on the same samples
 */
@SuppressWarnings("ArrayRecordComponent") // they are never compared
public record TrackerErrors(double[][] here, double[][] before) {
    private static final double LEAST_ALPHA = 1e-3;
    private static final int ALPHAS = 301;

    public TrackerErrors {
        if (here.length < 2 || here.length != before.length) {
            throw new IllegalArgumentException("%d and %d samples; at least 2 of each are needed, and as many"
                    .formatted(here.length, before.length));
        }
    }

    /**
     * An error, and the alpha that it takes.
     *
     * <p>Immutable.
     */
    public record Least(double alpha, double error) {}

    /** Returns the mean of g at the iterate. */
    public double[] mean() {
        return mean(0);
    }

    /** Returns the standard deviation of g at the iterate: the error of a tracker that only has the last sample. */
    public double deviation() {
        return Math.sqrt(variance(0));
    }

    /** Returns the standard deviation of the change of g between the iterates. */
    public double deviationOfChange() {
        return Math.sqrt(variance(1));
    }

    /** Returns by how much the mean of g changes between the iterates. */
    public double change() {
        double squares = 0;
        for (double component : mean(1)) {
            squares += component * component;
        }
        return Math.sqrt(squares);
    }

    /** Returns the error of {@code u = (1 - alpha) u + alpha g}: noise that is left, and the way it lags behind. */
    public double ofMovingAverage(double alpha) {
        double lag = (1 - alpha) / alpha * change();
        return Math.sqrt(alpha / (2 - alpha) * variance(0) + lag * lag);
    }

    /** Returns the error of {@code u = g + (1 - alpha) (u - g before)}, which does not lag behind. */
    public double ofVarianceReduction(double alpha) {
        return Math.sqrt(variance(1 - alpha) / (alpha * (2 - alpha)));
    }

    /** Returns the least error of the moving average. */
    public Least leastOfMovingAverage() {
        return least(this::ofMovingAverage);
    }

    /** Returns the least error of variance reduction. */
    public Least leastOfVarianceReduction() {
        return least(this::ofVarianceReduction);
    }

    private static Least least(DoubleUnaryOperator error) {
        var least = new Least(1, error.applyAsDouble(1));
        for (int i = 0; i < ALPHAS - 1; i++) {
            double alpha = Math.pow(LEAST_ALPHA, 1 - (double) i / (ALPHAS - 1));
            if (error.applyAsDouble(alpha) < least.error()) {
                least = new Least(alpha, error.applyAsDouble(alpha));
            }
        }
        return least;
    }

    /** Returns the mean of {@code here - factor * before}. */
    private double[] mean(double factor) {
        var mean = new double[here[0].length];
        for (int i = 0; i < here.length; i++) {
            for (int j = 0; j < mean.length; j++) {
                mean[j] += (here[i][j] - factor * before[i][j]) / here.length;
            }
        }
        return mean;
    }

    /** Returns the variance of {@code here - factor * before}, the sum over components. */
    private double variance(double factor) {
        double[] mean = mean(factor);
        double squares = 0;
        for (int i = 0; i < here.length; i++) {
            for (int j = 0; j < mean.length; j++) {
                double deviation = here[i][j] - factor * before[i][j] - mean[j];
                squares += deviation * deviation;
            }
        }
        return squares / (here.length - 1);
    }
}
