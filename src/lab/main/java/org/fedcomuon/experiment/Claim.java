package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Stream;
import org.fedcomuon.experiment.statistics.PairedSample;
import org.fedcomuon.experiment.statistics.Significance;

/**
 * A statement of the paper about rows of a table. It is weighed by itself; {@link Verdict#of} decides about all claims
 * of a table together.
 *
 * <p>Immutable.
 */
public sealed interface Claim {
    /** The metric that is the mean change of the test loss from one evaluation to the next, in a run's second half. */
    String UNSTEADINESS = "unsteadiness";

    /** Returns the statement. */
    String text();

    /**
     * Weighs the statement.
     *
     * @param rows by their labels
     */
    Evidence weigh(Map<String, RowValues> rows);

    /**
     * What the runs say about a claim.
     *
     * <p>Immutable.
     *
     * @param comparisons with every rival; none if the runs can say nothing
     * @param closest the index of the comparison that supports the claim least
     * @param test the p-values of the claim ({@code greater}) and of its opposite ({@code less}), not yet corrected for
     *     other claims
     * @param check the same without an assumed distribution
     * @param prospect what more seeds would decide, if it can be said
     * @param gap why the runs can say nothing; empty if they can
     */
    record Evidence(
            List<Comparison> comparisons,
            int closest,
            Significance test,
            Significance check,
            Optional<Prospect> prospect,
            String gap) {
        public Evidence {
            comparisons = List.copyOf(comparisons);
        }

        static Evidence none(String gap) {
            return new Evidence(List.of(), 0, Significance.NONE, Significance.NONE, Optional.empty(), gap);
        }
    }

    /**
     * What more seeds would decide if the observed means and spreads are the true ones.
     *
     * @param holds whether they would support the claim
     * @param effect the distance from the bound, in standard deviations
     * @param tests the number of tests that share the level of the claim
     */
    record Prospect(boolean holds, double effect, int tests) {}

    /**
     * That a row is better than each of others.
     *
     * <p>It holds if the row is better than every other, so the largest p-value counts and several rivals need no
     * correction. Its opposite holds if one of them is better, and the smallest p-value counts as often as there are
     * rivals.
     *
     * @param text the statement
     * @param metric of the last evaluation, by its name in {@code metrics.jsonl}, or {@link #UNSTEADINESS}
     * @param higher whether more is better
     * @param winner the row
     * @param others the rows it is said to be better than
     */
    record Better(String text, String metric, boolean higher, String winner, List<String> others) implements Claim {
        public Better {
            others = List.copyOf(others);
        }

        @Override
        public Evidence weigh(Map<String, RowValues> rows) {
            Optional<String> gap = gap(rows, metric, winner, others);
            if (gap.isPresent()) {
                return Evidence.none(gap.get());
            }
            List<Comparison> comparisons = comparisons(rows, metric, higher, winner, others);
            List<Significance> tests =
                    comparisons.stream().map(Comparison::test).toList();
            return new Evidence(
                    comparisons,
                    largest(tests),
                    together(tests),
                    together(comparisons.stream().map(Comparison::check).toList()),
                    measured(comparisons)
                            .map(all -> all.mapToDouble(each -> each.effect(0))
                                    .min()
                                    .orElse(0))
                            .map(effect -> prospect(effect, others.size())),
                    "");
        }

        /** Returns by how much the row is ahead of the best of the others, by seed; a rival that diverged is not it. */
        private Map<Long, Double> leads(Map<String, RowValues> rows) {
            var leads = new TreeMap<Long, Double>();
            row(rows, winner)
                    .of(metric)
                    .forEach((seed, mine) -> others.stream()
                            .map(other -> row(rows, other).of(metric).get(seed))
                            .flatMap(Stream::ofNullable)
                            .map(its -> higher ? mine - its : its - mine)
                            .min(Comparator.naturalOrder())
                            .ifPresent(lead -> leads.put(seed, lead)));
            return leads;
        }
    }

    /**
     * That a row differs from each of others by less than a margin: two one-sided tests for each.
     *
     * @param text the statement
     * @param metric of the last evaluation
     * @param margin the largest difference that does not matter
     * @param row the row
     * @param others the rows it is said to be on a par with
     */
    record OnPar(String text, String metric, double margin, String row, List<String> others) implements Claim {
        public OnPar {
            others = List.copyOf(others);
        }

        @Override
        public Evidence weigh(Map<String, RowValues> rows) {
            Optional<String> gap = gap(rows, metric, row, others);
            if (gap.isPresent()) {
                return Evidence.none(gap.get());
            }
            List<Comparison> comparisons = comparisons(rows, metric, true, row, others);
            List<Significance> tests = comparisons.stream()
                    .map(each -> within(each, PairedSample::tTest))
                    .toList();
            List<Significance> checks = comparisons.stream()
                    .map(each -> within(each, PairedSample::signFlipTest))
                    .toList();
            return new Evidence(
                    comparisons,
                    largest(tests),
                    together(tests),
                    together(checks),
                    measured(comparisons)
                            .map(all -> all.mapToDouble(each -> Math.min(each.effect(-margin), -each.effect(margin)))
                                    .min()
                                    .orElse(0))
                            .map(effect -> prospect(effect, 2 * others.size())),
                    "");
        }

        /** Weighs the claim against one rival. Where a run diverged, the difference is beyond every margin. */
        private Significance within(Comparison pair, Function<PairedSample, Significance> test) {
            if (pair.diverged() > 0) {
                return new Significance(1, pair.test().twoSided());
            }
            Significance above = test.apply(pair.lead().minus(-margin));
            Significance below = test.apply(pair.lead().minus(margin));
            return new Significance(
                    Math.max(above.greater(), below.less()), Math.min(1, 2 * Math.min(above.less(), below.greater())));
        }
    }

    /**
     * That the lead of a row is larger in one setting than in another. The lead of a seed is the distance to the best
     * of the other rows with that seed.
     *
     * @param text the statement
     * @param from the lead where it is said to be smaller
     * @param to the lead where it is said to be larger
     */
    record Growth(String text, Better from, Better to) implements Claim {
        @Override
        public Evidence weigh(Map<String, RowValues> rows) {
            Optional<String> gap = gap(rows, from.metric, from.winner, from.others)
                    .or(() -> gap(rows, to.metric, to.winner, to.others))
                    .or(() -> Stream.of(from.winner, to.winner)
                            .filter(label -> !row(rows, label).diverged().isEmpty())
                            .findFirst()
                            .map("%s diverged, and what did has no lead"::formatted));
            if (gap.isPresent()) {
                return Evidence.none(gap.get());
            }
            Comparison growth = Comparison.of(
                    new RowValues(to.winner, Map.of(text, to.leads(rows)), List.of()),
                    new RowValues(from.winner, Map.of(text, from.leads(rows)), List.of()),
                    text,
                    true);
            return growth.seeds() < 2
                    ? Evidence.none(ONE_SEED)
                    : new Evidence(
                            List.of(growth),
                            0,
                            growth.test(),
                            growth.check(),
                            Optional.of(prospect(growth.effect(0), 1)),
                            "");
        }
    }

    /** Why one run says nothing. */
    String ONE_SEED = "one seed does not show how much seeds differ";

    private static RowValues row(Map<String, RowValues> rows, String label) {
        return rows.getOrDefault(label, new RowValues(label, Map.of(), List.of()));
    }

    private static Optional<String> gap(
            Map<String, RowValues> rows, String metric, String row, Collection<String> others) {
        var all = new ArrayList<>(List.of(row));
        all.addAll(others);
        for (String label : all) {
            RowValues values = row(rows, label);
            if (values.of(metric).isEmpty() && values.diverged().isEmpty()) {
                return Optional.of("%s was not run".formatted(label));
            }
        }
        RowValues mine = row(rows, row);
        return others.stream()
                        .anyMatch(other -> Comparison.of(mine, row(rows, other), metric, true)
                                        .seeds()
                                < 2)
                ? Optional.of(ONE_SEED)
                : Optional.empty();
    }

    private static List<Comparison> comparisons(
            Map<String, RowValues> rows, String metric, boolean higher, String row, List<String> others) {
        return others.stream()
                .map(other -> Comparison.of(row(rows, row), row(rows, other), metric, higher))
                .toList();
    }

    /** All have to hold, or else one has to fail. */
    private static Significance together(List<Significance> each) {
        double holds = each.stream().mapToDouble(Significance::greater).max().orElse(1);
        double fails = each.stream().mapToDouble(Significance::less).min().orElse(1);
        return new Significance(holds, Math.min(1, each.size() * fails));
    }

    private static int largest(List<Significance> tests) {
        int largest = 0;
        for (int i = 1; i < tests.size(); i++) {
            if (tests.get(i).greater() > tests.get(largest).greater()) {
                largest = i;
            }
        }
        return largest;
    }

    /** Returns the comparisons, if nothing has diverged in any of them. */
    private static Optional<Stream<Comparison>> measured(List<Comparison> comparisons) {
        return comparisons.stream().anyMatch(each -> each.diverged() > 0)
                ? Optional.empty()
                : Optional.of(comparisons.stream());
    }

    private static Prospect prospect(double effect, int tests) {
        return effect > 0 ? new Prospect(true, effect, 1) : new Prospect(false, -effect, tests);
    }
}
