package org.fedcomuon.experiment.statistics;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.commons.statistics.distribution.BinomialDistribution;
import org.apache.commons.statistics.distribution.TDistribution;

/**
 * Differences between two rows of runs, one per seed that both have. Runs of the same seed share their data, split and
 * initial model, so that what a seed does to both cancels.
 *
 * <p>Immutable.
 *
 * @param seeds of the pairs
 * @param differences the first value minus the second, one per seed
 */
public record PairedSample(List<Long> seeds, List<Double> differences) {
    /** Of the largest difference; that of two values near each other has a few digits less than they have. */
    private static final double ROUNDING = 1e-9;

    public PairedSample {
        seeds = List.copyOf(seeds);
        differences = List.copyOf(differences);
        if (seeds.size() != differences.size()) {
            throw new IllegalArgumentException(
                    "%d seeds for %d differences".formatted(seeds.size(), differences.size()));
        }
        if (!differences.stream().allMatch(Double::isFinite)) {
            throw new IllegalArgumentException("differences that are not finite: %s".formatted(differences));
        }
    }

    /** Pairs the values of two rows by their seeds; a seed that only one of them has is left out. */
    public static PairedSample of(Map<Long, Double> first, Map<Long, Double> second) {
        var seeds = new ArrayList<Long>();
        var differences = new ArrayList<Double>();
        first.keySet().stream().filter(second::containsKey).sorted().forEach(seed -> {
            seeds.add(seed);
            differences.add(first.getOrDefault(seed, Double.NaN) - second.getOrDefault(seed, Double.NaN));
        });
        return new PairedSample(seeds, differences);
    }

    /** Returns the number of pairs. */
    public int count() {
        return differences.size();
    }

    /**
     * Returns mean and spread of the differences, of which there must be one at least. Where they are equal but for
     * rounding there is no spread.
     */
    public Summary summary() {
        Summary summary = Summary.of(differences);
        double largest = differences.stream().mapToDouble(Math::abs).max().orElse(0);
        return summary.deviation() <= ROUNDING * largest ? new Summary(count(), summary.mean(), 0) : summary;
    }

    /** Returns the same pairs with a constant taken from each difference: a test of it asks for more than zero. */
    public PairedSample minus(double margin) {
        return new PairedSample(
                seeds,
                differences.stream()
                        .map(value -> {
                            double rest = value - margin;
                            double rounding = ROUNDING * Math.max(Math.abs(value), Math.abs(margin));
                            return Math.abs(rest) <= rounding ? 0 : rest;
                        })
                        .toList());
    }

    /**
     * Returns the paired t test. Where all differences are equal there is no spread to measure them by: then it is
     * {@link #signFlipTest}, which needs none.
     */
    public Significance tTest() {
        if (count() < 2) {
            return Significance.NONE;
        }
        Summary summary = summary();
        if (summary.deviation() == 0) {
            return signFlipTest();
        }
        double t = summary.mean() / summary.error();
        TDistribution student = TDistribution.of(count() - 1);
        return new Significance(student.survivalProbability(t), student.cumulativeProbability(t));
    }

    /**
     * Returns the permutation test of pairs: the share of all 2^n choices of signs whose sum of differences is as large
     * as the observed one. It assumes only that a difference is as probable as its opposite where the two rows are
     * alike. It is exact up to {@value SignFlips#MOST_EXACT} pairs; beyond, choices are sampled from a fixed seed.
     */
    public Significance signFlipTest() {
        return count() == 0 ? Significance.NONE : SignFlips.test(differences);
    }

    /**
     * Returns the exact sign test, for pairs of which only the order is known.
     *
     * @param positive the number of pairs with a positive difference
     * @param negative the number of pairs with a negative difference; pairs without a difference count nowhere
     */
    public static Significance signTest(int positive, int negative) {
        if (positive < 0 || negative < 0) {
            throw new IllegalArgumentException("%d and %d pairs".formatted(positive, negative));
        }
        if (positive + negative == 0) {
            return Significance.NONE;
        }
        BinomialDistribution coin = BinomialDistribution.of(positive + negative, 0.5);
        return new Significance(coin.survivalProbability(positive - 1), coin.survivalProbability(negative - 1));
    }
}
