package org.fedcomuon.experiment;

import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import org.fedcomuon.experiment.statistics.Bootstrap;
import org.fedcomuon.experiment.statistics.Interval;
import org.fedcomuon.experiment.statistics.PairedSample;
import org.fedcomuon.experiment.statistics.Significance;
import org.fedcomuon.experiment.statistics.Summary;

/**
 * One row beside another, paired by seed.
 *
 * <p>A run that diverged is worse than any that ended, but nobody knows by how much. Where there is one, seeds are
 * counted and not measured: {@link #ahead} against {@link #behind}.
 *
 * <p>Immutable.
 *
 * @param rival the other row
 * @param mine the mean over the pairs; NaN if there are none
 * @param its the rival's
 * @param lead by how much each seed is better than the rival's, positive for the better whatever the metric; only of
 *     pairs in which both runs ended normally
 * @param ahead the number of seeds that are better
 * @param behind the number of seeds that are worse
 * @param diverged the number of seeds with which either diverged
 */
public record Comparison(
        String rival, double mine, double its, PairedSample lead, int ahead, int behind, int diverged) {
    /** Of intervals that are printed. */
    public static final double CONFIDENCE = 0.95;

    private static final Bootstrap BOOTSTRAP = new Bootstrap(10_000, 1);

    static Comparison of(RowValues mine, RowValues its, String metric, boolean higher) {
        Map<Long, Double> first = mine.of(metric);
        Map<Long, Double> second = its.of(metric);
        PairedSample lead = higher ? PairedSample.of(first, second) : PairedSample.of(second, first);
        var diverged = new TreeSet<Long>();
        int ahead = (int) lead.differences().stream().filter(value -> value > 0).count();
        int behind =
                (int) lead.differences().stream().filter(value -> value < 0).count();
        for (long seed : its.diverged()) {
            ahead += first.containsKey(seed) && diverged.add(seed) ? 1 : 0;
        }
        for (long seed : mine.diverged()) {
            behind += second.containsKey(seed) && diverged.add(seed) ? 1 : 0;
            if (its.diverged().contains(seed)) {
                diverged.add(seed); // no better and no worse
            }
        }
        return new Comparison(its.label(), mean(first, lead), mean(second, lead), lead, ahead, behind, diverged.size());
    }

    private static double mean(Map<Long, Double> values, PairedSample pairs) {
        return pairs.seeds().stream()
                .mapToDouble(seed -> values.getOrDefault(seed, Double.NaN))
                .average()
                .orElse(Double.NaN);
    }

    /** Returns the number of seeds that both rows have, diverged ones included. */
    public int seeds() {
        return lead.count() + diverged;
    }

    /** Returns the test that decides: of t, or of signs if a run diverged. */
    public Significance test() {
        return diverged > 0 ? PairedSample.signTest(ahead, behind) : lead.tTest();
    }

    /** Returns the test that assumes no distribution: of sign flips, or of signs if a run diverged. */
    public Significance check() {
        return diverged > 0 ? PairedSample.signTest(ahead, behind) : lead.signFlipTest();
    }

    /** Returns Student's interval of the mean lead; empty if it is unknown how large the lead or its spread is. */
    public Optional<Interval> interval() {
        return diverged > 0 || lead.count() == 0
                ? Optional.empty()
                : lead.summary().interval(CONFIDENCE);
    }

    /** Returns the bootstrap's interval of the mean lead, if there is one. */
    public Optional<Interval> bootstrap() {
        return diverged > 0 ? Optional.empty() : BOOTSTRAP.corrected(lead.differences(), CONFIDENCE);
    }

    /** Returns how many standard deviations the mean lead is away from a bound; infinite if there is no spread. */
    double effect(double bound) {
        Summary distance = lead.minus(bound).summary();
        return distance.mean() == 0 ? 0 : distance.mean() / distance.deviation();
    }
}
