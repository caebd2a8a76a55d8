package org.fedcomuon.experiment.statistics;

/**
 * The outcome of a test, in both directions: how probable a difference as large as the observed one is where there is
 * none.
 *
 * <p>Immutable.
 *
 * @param greater the p-value of "the difference is positive"
 * @param less the p-value of "the difference is negative"
 */
public record Significance(double greater, double less) {
    /** Of a test that had nothing to decide by. */
    public static final Significance NONE = new Significance(1, 1);

    public Significance {
        checkProbability(greater);
        checkProbability(less);
    }

    /** Returns the p-value of "there is a difference". */
    public double twoSided() {
        return Math.min(1, 2 * Math.min(greater, less));
    }

    static void checkProbability(double value) {
        if (!(value >= 0 && value <= 1)) {
            throw new IllegalArgumentException("a p-value of %s".formatted(value));
        }
    }
}
