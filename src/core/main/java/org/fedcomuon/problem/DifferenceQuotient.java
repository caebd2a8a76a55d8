package org.fedcomuon.problem;

import java.util.HashMap;
import java.util.Map;

/**
 * Derivatives of values in single precision along a direction, by central differences. A large step bends and crosses
 * kinks, whose effect vanishes slowly; a small one drowns in rounding errors. Kinks cannot be foreseen, but rounding
 * errors can be measured. So the step is as small as they allow, and what is left of kinks is estimated twice: by a
 * step four times as large, and by the difference of the slopes on both sides. Each of them may be small by chance.
 */
final class DifferenceQuotient {
    /** Halvings of the largest step; with more of them the parameters themselves would be rounded to nothing. */
    private static final int HALVINGS = 14;

    /** The first guess, for the size of the derivative. */
    private static final int MIDDLE = 6;

    /** Steps of slightly different sizes, whose rounding errors differ. */
    private static final int REPETITIONS = 4;

    /** By how much the smallest of them is smaller. */
    private static final double SPREAD = 0.28;

    /** The rounding error of a step that is aimed at, relative to the derivative. */
    private static final double AIM = 0.005;

    /** Rounding errors that are exceeded never, rather than seldom. */
    private static final double DEVIATIONS = 3;

    /**
     * The same where the step is the largest one and still too small: repetitions do not help, because the value hardly
     * changes, and is off by its last bit.
     */
    private static final double MORE_DEVIATIONS = 5;

    /** How much larger the second step is, as a number of doublings. */
    private static final int COARSER = 2;

    /** The values at two points, one on each side. */
    @FunctionalInterface
    interface Sides {
        /** Returns the differences at a step. */
        Differences at(double h) throws GradientCheck.Mistake;
    }

    /** Differences of several values. */
    static final class Differences {
        /** {@code (g(x + h) - g(x - h)) / 2h}. */
        private final double[] slopes;

        /** Half of what the slopes of the two sides differ by, {@code (g(x + h) - 2 g(x) + g(x - h)) / 2h}. */
        private final double[] bends;

        Differences(int count) {
            slopes = new double[count];
            bends = new double[count];
        }

        /** Sets number {@code i}. */
        void set(int i, double above, double middle, double below, double h) {
            slopes[i] = (above - below) / (2 * h);
            bends[i] = (above - 2 * middle + below) / (2 * h);
        }

        void add(Differences other, double weight) {
            for (int i = 0; i < slopes.length; i++) {
                slopes[i] += weight * other.slopes[i];
                bends[i] += weight * other.bends[i];
            }
        }
    }

    /**
     * A derivative.
     *
     * @param slope the estimate
     * @param error how far it may be off
     */
    record Estimate(double slope, double error) {}

    private final double largest;
    private final Sides sides;
    /** By halvings; components share evaluations. */
    private final Map<Integer, Differences> means = new HashMap<>();

    /**
     * Prepares differences along a direction.
     *
     * @param largest the largest step that is tried
     */
    DifferenceQuotient(double largest, Sides sides) {
        this.largest = largest;
        this.sides = sides;
    }

    /**
     * Returns the derivative of value number {@code i}.
     *
     * @param expected what it is said to be, which the size of steps depends on
     * @param noise the standard deviation of rounding errors of the value
     */
    Estimate of(int i, double expected, double noise) throws GradientCheck.Mistake {
        return of(i, halvings(i, expected, noise), noise);
    }

    private int halvings(int i, double expected, double noise) throws GradientCheck.Mistake {
        double size = Math.max(Math.abs(expected), Math.abs(mean(MIDDLE).slopes[i]));
        double step = noise / (Math.sqrt(2) * AIM * size);
        return step > 0 && step < Double.POSITIVE_INFINITY
                ? (int) Math.clamp(Math.floor(Math.log(largest / step) / Math.log(2)), 0, HALVINGS)
                : HALVINGS;
    }

    private Estimate of(int i, int halvings, double noise) throws GradientCheck.Mistake {
        Differences here = mean(halvings);
        double slope = here.slopes[i];
        // A larger step shows more of kinks and curvature than is left; a smaller one less, but at least half of it.
        double change = halvings >= COARSER
                ? Math.abs(slope - mean(halvings - COARSER).slopes[i])
                : 2 * Math.abs(slope - mean(halvings + COARSER).slopes[i]);
        double h = Math.scalb(largest, -halvings);
        double rounding = noise / (Math.sqrt(2.0 * REPETITIONS) * h);
        double kinks = change + Math.abs(here.bends[i]);
        return new Estimate(slope, (halvings > 0 ? DEVIATIONS : MORE_DEVIATIONS) * rounding + kinks);
    }

    private Differences mean(int halvings) throws GradientCheck.Mistake {
        Differences known = means.get(halvings);
        if (known != null) {
            return known;
        }
        double h = Math.scalb(largest, -halvings);
        Differences first = sides.at(h);
        Differences mean = new Differences(first.slopes.length);
        mean.add(first, 1.0 / REPETITIONS);
        for (int r = 1; r < REPETITIONS; r++) {
            mean.add(sides.at(h * (1 - SPREAD * r / REPETITIONS)), 1.0 / REPETITIONS);
        }
        means.put(halvings, mean);
        return mean;
    }
}
