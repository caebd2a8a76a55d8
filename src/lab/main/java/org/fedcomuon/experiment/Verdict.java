package org.fedcomuon.experiment;

import static java.util.stream.Collectors.toMap;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalInt;
import org.fedcomuon.experiment.statistics.Holm;
import org.fedcomuon.experiment.statistics.Interval;
import org.fedcomuon.experiment.statistics.Power;
import org.fedcomuon.experiment.statistics.Significance;

/**
 * What several seeds decide about a claim.
 *
 * <p>Immutable.
 *
 * @param claim in words
 * @param answer to it
 * @param p the probability of such an answer where it is wrong, corrected for the other claims; two-sided
 * @param evidence on which it rests
 * @param seeds about how many would decide, if the observed means and spreads are the true ones; empty if the answer is
 *     yes or no, or nothing can be said
 */
public record Verdict(String claim, Answer answer, double p, Claim.Evidence evidence, OptionalInt seeds) {
    /** The probability of any wrong yes or no among the claims of a table is at most this. */
    public static final double LEVEL = 0.05;

    /** With which probability the estimated number of seeds decides. */
    public static final double POWER = 0.8;

    /** What the answers of a table mean, for readers of it. */
    public static final String HOW =
            "Differences are paired by seed and tested by t, and p-values are corrected for the"
                    + " number of claims (Holm): the probability of any wrong yes or no in this list is at most 5 %.";

    /** Yes has half of the level, and no has the other. */
    private static final double EACH = LEVEL / 2;

    /** With fewer seeds, their spread is itself hardly known. */
    private static final int FEW = 5;

    /** Whether the runs support a claim. */
    public enum Answer {
        YES("yes"),
        NO("no"),
        /** The seeds differ too much, or are too few. */
        NOT_DECIDED("not decided");

        private final String words;

        Answer(String words) {
            this.words = words;
        }

        @Override
        public String toString() {
            return words;
        }
    }

    /** Decides about claims, corrected for how many of them the runs can say something about. */
    public static List<Verdict> of(List<? extends Claim> claims, List<RowValues> rows) {
        Map<String, RowValues> byLabel = rows.stream().collect(toMap(RowValues::label, row -> row));
        List<Claim.Evidence> all =
                claims.stream().map(claim -> claim.weigh(byLabel)).toList();
        List<Significance> tests = all.stream()
                .filter(evidence -> evidence.gap().isEmpty())
                .map(Claim.Evidence::test)
                .toList();
        // Two families: one of "it holds", one of "it does not". In each of them, Holm's correction allows any
        // dependence, and the claims of a table depend on each other.
        List<Double> yes = Holm.adjust(tests.stream().map(Significance::greater).toList());
        List<Double> no = Holm.adjust(tests.stream().map(Significance::less).toList());
        var verdicts = new ArrayList<Verdict>();
        int at = 0;
        for (int i = 0; i < all.size(); i++) {
            Claim.Evidence evidence = all.get(i);
            if (evidence.gap().isEmpty()) {
                verdicts.add(decide(claims.get(i).text(), evidence, yes.get(at), no.get(at), tests.size()));
                at++;
            } else {
                verdicts.add(new Verdict(claims.get(i).text(), Answer.NOT_DECIDED, 1, evidence, OptionalInt.empty()));
            }
        }
        return List.copyOf(verdicts);
    }

    private static Verdict decide(String claim, Claim.Evidence evidence, double yes, double no, int claims) {
        Answer answer = yes <= EACH ? Answer.YES : no <= EACH ? Answer.NO : Answer.NOT_DECIDED;
        return new Verdict(
                claim,
                answer,
                Math.min(1, 2 * Math.min(yes, no)),
                evidence,
                answer == Answer.NOT_DECIDED ? seeds(evidence, claims) : OptionalInt.empty());
    }

    private static OptionalInt seeds(Claim.Evidence evidence, int claims) {
        return evidence.prospect()
                .map(prospect -> {
                    double level = EACH / claims / prospect.tests();
                    int more = evidence.comparisons().get(evidence.closest()).seeds() + 1;
                    OptionalInt pairs = Double.isInfinite(prospect.effect())
                            ? OptionalInt.of((int) Math.ceil(Math.log(1 / level) / Math.log(2))) // sign flips
                            : Power.pairs(prospect.effect(), level, POWER);
                    return pairs.isEmpty() ? pairs : OptionalInt.of(Math.max(more, pairs.getAsInt()));
                })
                .orElse(OptionalInt.empty());
    }

    /** Returns the figures behind the answer, in words. */
    public String reason() {
        if (!evidence.gap().isEmpty()) {
            return evidence.gap();
        }
        Comparison closest = evidence.comparisons().get(evidence.closest());
        var words = new StringBuilder();
        if (closest.diverged() > 0) {
            words.append("a run diverged with %d of %d seeds, so seeds are counted: ahead of %s with %d, behind with %d"
                    .formatted(
                            closest.diverged(), closest.seeds(), closest.rival(), closest.ahead(), closest.behind()));
        } else {
            words.append("%s against %s of %s, a lead of %s"
                    .formatted(
                            figure(closest.mine()),
                            figure(closest.its()),
                            closest.rival(),
                            figure(closest.lead().summary().mean())));
            closest.interval().ifPresent(interval -> words.append(words(interval)));
        }
        words.append("; %s over %d seeds".formatted(p(p), closest.seeds()));
        return words.append(answer == Answer.NOT_DECIDED ? outlook(closest.seeds()) : doubt())
                .toString();
    }

    private static String words(Interval interval) {
        return String.format(
                Locale.ROOT,
                ", %.0f %% interval %s to %s",
                100 * interval.level(),
                figure(interval.low()),
                figure(interval.high()));
    }

    private String outlook(int now) {
        return evidence.prospect()
                .map(prospect -> seeds.isEmpty()
                        ? "; no number of seeds up to %d would decide it".formatted(Power.MOST_PAIRS)
                        : "; about %d seeds would decide it as %s if these means and spreads are the true ones%s"
                                .formatted(
                                        seeds.getAsInt(),
                                        prospect.holds() ? Answer.YES : Answer.NO,
                                        now < FEW ? ", a guess from so few seeds" : ""))
                .orElse("");
    }

    /** Returns what speaks against the answer: without an assumed distribution, few seeds cannot decide. */
    private String doubt() {
        double check = answer == Answer.YES
                ? evidence.check().greater()
                : evidence.check().less();
        return check <= EACH
                ? ""
                : "; it rests on normally distributed differences: by sign flips alone, %s"
                        .formatted(p(Math.min(1, 2 * check)));
    }

    private static String figure(double value) {
        String format = value == 0 || Math.abs(value) >= 0.001 ? "%.4f" : "%.1e"; // small leads have digits too
        return String.format(Locale.ROOT, format, value);
    }

    private static String p(double value) {
        return value < 0.001 ? "p < 0.001" : String.format(Locale.ROOT, "p = %.3f", value);
    }

    @Override
    public String toString() {
        return "%s: %s (%s)".formatted(claim, answer, reason());
    }
}
