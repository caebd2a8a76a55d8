package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * A statement of the paper that one row of a table is better than others.
 *
 * @param text the statement
 * @param metric of the last evaluation, by its name in {@code metrics.jsonl}; {@code unsteadiness} is the mean change
 *     of the test loss from one evaluation to the next, in the second half of the run
 * @param higher whether more is better
 * @param winner the row
 * @param others the rows it is said to be better than
 */
public record Claim(String text, String metric, boolean higher, String winner, List<String> others) {
    public Claim {
        others = List.copyOf(others);
    }

    /** Whether the runs support a claim. */
    public enum Answer {
        /** Better than every other, by more than the seeds differ. */
        YES,
        /** The difference is smaller than between seeds. */
        TIE,
        /** Another is better, by more than the seeds differ. */
        NO,
        /** The row diverged, or was not run. */
        UNKNOWN
    }

    /**
     * The answer with its figures.
     *
     * @param claim in words
     * @param rival the best of the others
     * @param mine the mean over seeds
     * @param its the rival's
     * @param spread half the largest distance between seeds, of the two
     */
    public record Verdict(String claim, Answer answer, String rival, double mine, double its, double spread) {
        @Override
        public String toString() {
            return answer == Answer.UNKNOWN
                    ? "%s: not known, no figures".formatted(claim)
                    : String.format(
                            Locale.ROOT,
                            "%s: %s (%.4f against %.4f of %s; seeds differ by %.4f)",
                            claim,
                            answer.name().toLowerCase(Locale.ROOT),
                            mine,
                            its,
                            rival,
                            spread);
        }
    }

    /**
     * A statement of the paper that the lead of a row is larger in one setting than in another.
     *
     * @param text the statement
     * @param from the lead where it is said to be smaller
     * @param to the lead where it is said to be larger
     */
    public record Growth(String text, Claim from, Claim to) {
        /** Compares the runs. */
        public Verdict judge(List<Reproduction.Outcome> outcomes) {
            Verdict small = from.judge(outcomes);
            Verdict large = to.judge(outcomes);
            if (small.answer() == Answer.UNKNOWN || large.answer() == Answer.UNKNOWN) {
                return new Verdict(text, Answer.UNKNOWN, "", Double.NaN, Double.NaN, Double.NaN);
            }
            double before = from.lead(small);
            double after = to.lead(large);
            double spread = Math.max(small.spread(), large.spread());
            return new Verdict(text, answer(after - before, spread), from.winner(), after, before, spread);
        }
    }

    /** Returns how far the winner is ahead of the best of the others. */
    private double lead(Verdict verdict) {
        return higher ? verdict.mine() - verdict.its() : verdict.its() - verdict.mine();
    }

    private static Answer answer(double margin, double spread) {
        return margin > spread ? Answer.YES : margin < -spread ? Answer.NO : Answer.TIE;
    }

    private record Figure(String label, double mean, double spread) {}

    /** Compares the runs. */
    public Verdict judge(List<Reproduction.Outcome> outcomes) {
        var figures = new ArrayList<Figure>();
        Figure mine = null;
        for (Reproduction.Outcome outcome : outcomes) {
            Optional<Reproduction.OverSeeds> seeds = outcome.overSeeds(metric);
            if (seeds.isEmpty()) {
                continue; // one of them has not run to its end
            }
            var figure =
                    new Figure(outcome.label(), seeds.get().mean(), seeds.get().spread());
            if (outcome.label().equals(winner)) {
                mine = figure;
            } else if (others.contains(outcome.label())) {
                figures.add(figure);
            }
        }
        List<String> there = outcomes.stream().map(Reproduction.Outcome::label).toList();
        if (mine == null || figures.isEmpty() || !there.containsAll(others)) {
            return new Verdict(text, Answer.UNKNOWN, "", Double.NaN, Double.NaN, Double.NaN);
        }
        Figure rival = figures.getFirst();
        for (Figure figure : figures) {
            if (higher ? figure.mean() > rival.mean() : figure.mean() < rival.mean()) {
                rival = figure;
            }
        }
        double spread = Math.max(mine.spread(), rival.spread());
        double margin = higher ? mine.mean() - rival.mean() : rival.mean() - mine.mean();
        return new Verdict(text, answer(margin, spread), rival.label(), mine.mean(), rival.mean(), spread);
    }

    /** Returns a metric of a run; empty unless the run has ended normally. */
    public static OptionalDouble value(RunRecord run, String metric) {
        if (run.evaluations().isEmpty() || run.state() != RunRecord.State.FINISHED) {
            return OptionalDouble.empty();
        }
        if (!metric.equals("unsteadiness")) {
            return of(run.evaluations().getLast(), metric);
        }
        var second = run.evaluations()
                .subList(run.evaluations().size() / 2, run.evaluations().size());
        double sum = 0;
        for (int i = 1; i < second.size(); i++) {
            sum += Math.abs(of(second.get(i), "test_loss").orElse(Double.NaN)
                    - of(second.get(i - 1), "test_loss").orElse(Double.NaN));
        }
        return second.size() < 2 ? OptionalDouble.empty() : OptionalDouble.of(sum / (second.size() - 1));
    }

    private static OptionalDouble of(RunRecord.Evaluation evaluation, String metric) {
        Double value = evaluation.metrics().get(metric);
        return value == null ? OptionalDouble.empty() : OptionalDouble.of(value);
    }
}
