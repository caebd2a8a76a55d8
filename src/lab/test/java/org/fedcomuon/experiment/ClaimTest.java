package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.fedcomuon.experiment.Reproduction.Form;
import org.fedcomuon.experiment.statistics.Significance;
import org.junit.jupiter.api.Test;

/** The paper's claims are answered where the seeds decide them, and not where they do not. */
class ClaimTest {
    private static final Claim.Better CLAIM =
            new Claim.Better("a is best", "test_accuracy", true, "a", List.of("b", "c"));

    private static final double[] NEAR = {0.900, 0.912, 0.905, 0.894, 0.917, 0.899, 0.908, 0.911};

    /** The values of seeds 42, 43, ...; NaN is a run that diverged. */
    private static RowValues row(String label, String metric, double... bySeed) {
        var values = new LinkedHashMap<Long, Double>();
        var diverged = new ArrayList<Long>();
        for (int i = 0; i < bySeed.length; i++) {
            if (Double.isNaN(bySeed[i])) {
                diverged.add(42L + i);
            } else {
                values.put(42L + i, bySeed[i]);
            }
        }
        return new RowValues(label, Map.of(metric, values), diverged);
    }

    private static RowValues row(String label, double... bySeed) {
        return row(label, "test_accuracy", bySeed);
    }

    private static double[] plus(double more, double[] values) {
        double[] moved = values.clone();
        for (int i = 0; i < moved.length; i++) {
            moved[i] += more + 1e-4 * (i % 3); // differences that are all equal have no spread
        }
        return moved;
    }

    private static Verdict judge(Claim claim, RowValues... rows) {
        return Verdict.of(List.of(claim), List.of(rows)).getFirst();
    }

    private static Verdict judge(RowValues... rows) {
        return judge(CLAIM, rows);
    }

    /** Seeds differ by more than the rows do, and by the same in each: only pairs show the difference. */
    @Test
    void aLeadInEverySeedIsAYes() {
        Verdict verdict =
                judge(row("a", plus(0.004, NEAR)), row("b", NEAR), row("c", 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2));
        assertThat(verdict.answer()).isEqualTo(Verdict.Answer.YES);
        assertThat(verdict.p()).isLessThan(0.001);
        assertThat(verdict.toString())
                .startsWith(
                        "a is best: yes (0.9098 against 0.9058 of b, a lead of 0.0041, 95 % interval 0.0040 to 0.0042;")
                .endsWith("p < 0.001 over 8 seeds)");
    }

    /** To be better than all, it has to be better than each: the largest p-value counts. */
    @Test
    void oneRivalThatIsLevelLeavesItUndecided() {
        double[] level = {0.905, 0.905, 0.905, 0.905, 0.905, 0.905, 0.905, 0.905};
        Verdict verdict = judge(row("a", plus(0.004, NEAR)), row("b", plus(-0.1, NEAR)), row("c", level));
        assertThat(verdict.answer()).isEqualTo(Verdict.Answer.NOT_DECIDED);
        assertThat(verdict.evidence()
                        .comparisons()
                        .get(verdict.evidence().closest())
                        .rival())
                .isEqualTo("c");
        assertThat(verdict.seeds()).isPresent();
        assertThat(verdict.toString())
                .contains("about %d seeds would decide it as yes"
                        .formatted(verdict.seeds().getAsInt()));
    }

    @Test
    void oneRivalThatIsBetterIsANo() {
        Verdict verdict = judge(row("a", NEAR), row("b", plus(-0.1, NEAR)), row("c", plus(0.01, NEAR)));
        assertThat(verdict.answer()).isEqualTo(Verdict.Answer.NO);
        assertThat(verdict.toString()).contains("of c, a lead of -0.0101");
    }

    // st.ttest_rel([.50,.53,.52], [.49,.50,.50], alternative='greater').pvalue: 0.037, of c 0.37090055512641945;
    // st.ttest_rel([.50,.53,.52], [.50,.51,.53], alternative='greater').pvalue is the latter, 'less' 0.62909944487358
    @Test
    void theLargestPCountsForItAndTheSmallestPerRivalAgainstIt() {
        Claim.Evidence evidence = CLAIM.weigh(Map.of(
                "a", row("a", 0.50, 0.53, 0.52), "b", row("b", 0.49, 0.50, 0.50), "c", row("c", 0.50, 0.51, 0.53)));
        assertThat(evidence.test().greater()).isCloseTo(0.37090055512641945, within(1e-12));
        assertThat(evidence.test().less()).isEqualTo(1); // twice 0.629, at most 1
        assertThat(evidence.closest()).isEqualTo(1);
        // st.ttest_rel([.50,.53,.52], [.53,.55,.54], alternative='less').pvalue, for each of two rivals
        Claim.Evidence against = CLAIM.weigh(Map.of(
                "a", row("a", 0.50, 0.53, 0.52), "b", row("b", 0.49, 0.50, 0.50), "c", row("c", 0.53, 0.55, 0.54)));
        assertThat(against.test().less()).isCloseTo(2 * 0.009901970590196566, within(1e-12));
    }

    @Test
    void lessCanBeBetter() {
        var claim = new Claim.Better("a is lowest", "test_loss", false, "a", List.of("b"));
        RowValues near = row("b", "test_loss", NEAR);
        assertThat(judge(claim, row("a", "test_loss", plus(-0.01, NEAR)), near).answer())
                .isEqualTo(Verdict.Answer.YES);
        assertThat(judge(claim, row("a", "test_loss", plus(0.01, NEAR)), near).answer())
                .isEqualTo(Verdict.Answer.NO);
    }

    /** The more claims are made, the more probable it is that one holds by chance. */
    @Test
    void aDecisionAmongManyClaimsNeedsMore() {
        // 2 * st.ttest_rel(a, b, alternative='greater').pvalue = 0.0065: decided alone, not among ten
        RowValues[] rows = {row("a", 0.50, 0.53, 0.52, 0.55), row("b", 0.47, 0.51, 0.48, 0.51)};
        var claim = new Claim.Better("a is better", "test_accuracy", true, "a", List.of("b"));
        assertThat(judge(claim, rows).answer()).isEqualTo(Verdict.Answer.YES);
        var opposite = new Claim.Better("b is better", "test_accuracy", true, "b", List.of("a"));
        var ten = new ArrayList<Claim>(List.of(claim));
        for (int i = 0; i < 9; i++) {
            ten.add(opposite);
        }
        List<Verdict> verdicts = Verdict.of(ten, List.of(rows));
        assertThat(verdicts.getFirst().answer()).isEqualTo(Verdict.Answer.NOT_DECIDED);
        assertThat(verdicts.getFirst().p()).isCloseTo(10 * judge(claim, rows).p(), within(1e-12));
        // a claim that was not tested corrects nothing
        var untested = new Claim.Better("d is better", "test_accuracy", true, "d", List.of("a"));
        assertThat(Verdict.of(List.of(claim, untested), List.of(rows))
                        .getFirst()
                        .p())
                .isEqualTo(judge(claim, rows).p());
    }

    @Test
    void twoSeedsSayHowManyWouldDecide() {
        Verdict verdict = judge(row("a", 0.9657, 0.9597), row("b", 0.9488, 0.9648), row("c", 0.80, 0.81));
        assertThat(verdict.answer()).isEqualTo(Verdict.Answer.NOT_DECIDED);
        // the least n with nct.sf(t.isf(.025, n-1), n-1, effect*sqrt(n)) >= .8, effect = mean/std(ddof=1) = 0.3793
        assertThat(verdict.seeds()).hasValue(57);
        assertThat(verdict.toString()).contains("not decided", "about 57 seeds would decide it as yes", "a guess");
    }

    /** The t of two differences that happen to be near each other is huge. */
    @Test
    void anAnswerThatRestsOnNormalityAloneSaysSo() {
        var claim = new Claim.Better("a is better", "test_accuracy", true, "a", List.of("b"));
        Verdict verdict = judge(claim, row("a", 0.91, 0.92), row("b", 0.81, 0.8201));
        assertThat(verdict.answer()).isEqualTo(Verdict.Answer.YES);
        assertThat(verdict.toString()).contains("by sign flips alone, p = 0.500");
        // and where they are equal, it does not even exist
        Verdict equal = judge(claim, row("a", 0.75, 0.875), row("b", 0.5, 0.625));
        assertThat(equal.answer()).isEqualTo(Verdict.Answer.NOT_DECIDED);
        assertThat(equal.seeds()).hasValue(6); // 2^-6 is the first below 2.5 %
    }

    /** What diverged is worse by an unknown amount, so seeds are counted. */
    @Test
    void whereARunDivergedSeedsAreCounted() {
        double nan = Double.NaN;
        RowValues c = row("c", plus(-0.2, NEAR));
        RowValues b = row("b", nan, 0.5, 0.5, nan, 0.5, 0.5, 0.5, 0.5);
        Verdict verdict = judge(row("a", NEAR), b, c);
        assertThat(verdict.answer()).isEqualTo(Verdict.Answer.YES);
        assertThat(verdict.evidence().test().greater()).isCloseTo(Math.pow(2, -8), within(1e-15));
        assertThat(verdict.toString()).contains("a run diverged with 2 of 8 seeds", "ahead of b with 8, behind with 0");
        assertThat(b.summary("test_accuracy")).isEmpty();

        double[] never = {nan, nan, nan, nan, nan, nan, nan, nan};
        assertThat(judge(row("a", never), row("b", NEAR), c).answer()).isEqualTo(Verdict.Answer.NO);
        assertThat(judge(row("a", never), row("b", never), row("c", never)).answer())
                .isEqualTo(Verdict.Answer.NOT_DECIDED);
        assertThat(judge(row("a", nan, 0.9), row("b", 0.1, 0.1), row("c", 0.1, 0.1))
                        .answer())
                .isEqualTo(Verdict.Answer.NOT_DECIDED);
    }

    @Test
    void nothingIsSaidOfRowsThatWereNotRunOrOfOneSeed() {
        assertThat(judge(row("a", 0.9, 0.9), row("b", 0.1, 0.2)).toString())
                .isEqualTo("a is best: not decided (c was not run)");
        assertThat(judge(row("a", 0.9), row("b", 0.1), row("c", 0.1)).toString())
                .isEqualTo("a is best: not decided (one seed does not show how much seeds differ)");
    }

    @Test
    void onAParMeansWithinTheMargin() {
        var claim = new Claim.OnPar("a is like b", "test_accuracy", 0.01, "a", List.of("b"));
        RowValues near = row("b", NEAR);
        assertThat(judge(claim, row("a", plus(0.004, NEAR)), near).answer()).isEqualTo(Verdict.Answer.YES);
        assertThat(judge(claim, row("a", plus(-0.004, NEAR)), near).answer()).isEqualTo(Verdict.Answer.YES);
        assertThat(judge(claim, row("a", plus(0.02, NEAR)), near).answer()).isEqualTo(Verdict.Answer.NO);
        assertThat(judge(claim, row("a", plus(-0.02, NEAR)), near).answer()).isEqualTo(Verdict.Answer.NO);
        assertThat(judge(claim, row("a", 0.8321, 0.9597), row("b", 0.8221, 0.9497))
                        .evidence()
                        .test())
                .isEqualTo(Significance.NONE); // at the margin, but for rounding
        Verdict undecided = judge(claim, row("a", 0.90, 0.92, 0.91), row("b", 0.91, 0.90, 0.92));
        assertThat(undecided.answer()).isEqualTo(Verdict.Answer.NOT_DECIDED);
        assertThat(undecided.seeds()).isPresent();
        double[] never = new double[NEAR.length];
        Arrays.fill(never, Double.NaN);
        assertThat(judge(claim, row("a", never), near).answer()).isEqualTo(Verdict.Answer.NO);
    }

    @Test
    void unsteadinessIsTheMeanChangeInTheSecondHalf() {
        RowValues row = RowValues.of("a", Map.of(42L, run(false, 5, 9, 1, 0.3, 0.1, 0.2), 43L, run(true, 1, 2)));
        assertThat(row.of(Claim.UNSTEADINESS).get(42L)).isCloseTo((2.0 + 1.0) / 2, within(1e-12));
        assertThat(row.diverged()).containsExactly(43L);
        assertThat(RowValues.of("a", Map.of(42L, run(false, 5, 9))).of(Claim.UNSTEADINESS))
                .isEmpty();
    }

    /** The test loss is ten times the accuracy. */
    private static RunRecord run(boolean diverged, double... accuracies) {
        var evaluations = new ArrayList<RunRecord.Evaluation>();
        for (int i = 0; i < accuracies.length; i++) {
            evaluations.add(new RunRecord.Evaluation(
                    i, i, Map.of("test_accuracy", accuracies[i], "test_loss", 10 * accuracies[i])));
        }
        return new RunRecord("run", Map.of(), evaluations, Optional.of(Map.of("diverged", diverged, "stopped", false)));
    }

    private static List<Reproduction> figures() {
        return Reproduction.NAMES.stream()
                .flatMap(name -> Stream.of(Form.values())
                        .filter(form -> form != Form.MEDIUM
                                || List.of("wikitext2", "maml-cnn", "tau-maml", "maml-vit")
                                        .contains(name))
                        .map(form -> Reproduction.of(name, form)))
                .toList();
    }

    /** The lead of a seed is the distance to the best of the others with that seed. */
    @Test
    void aLeadMayGrow() {
        var before = new Claim.Better("", "test_accuracy", true, "a", List.of("b", "e"));
        var after = new Claim.Better("", "test_accuracy", true, "c", List.of("d"));
        var growth = new Claim.Growth("it grows", before, after);
        RowValues a = row("a", 0.50, 0.52, 0.51, 0.53);
        RowValues b = row("b", 0.40, 0.47, 0.45, 0.40);
        RowValues e = row("e", 0.45, 0.40, Double.NaN, 0.48);
        RowValues c = row("c", 0.60, 0.60, 0.61, 0.60);
        Verdict verdict = judge(growth, a, b, e, c, row("d", 0.40, 0.41, 0.40, 0.40));
        assertThat(verdict.answer()).isEqualTo(Verdict.Answer.YES);
        Comparison leads = verdict.evidence().comparisons().getFirst();
        assertThat(leads.mine()).isCloseTo(0.20, within(1e-12));
        assertThat(leads.its()).isCloseTo((0.05 + 0.05 + 0.06 + 0.05) / 4, within(1e-12));
        assertThat(judge(growth, a, b, e, c, row("d", 0.50, 0.56, 0.60, 0.54)).answer())
                .isEqualTo(Verdict.Answer.NOT_DECIDED);
        assertThat(judge(growth, a, b, e, c, row("d", 0.70, 0.71, 0.70, 0.70)).answer())
                .isEqualTo(Verdict.Answer.NO);
        assertThat(judge(growth, a, b, e, c).toString()).contains("d was not run");
        assertThat(judge(growth, row("a", 0.5, Double.NaN), b, e, c, row("d", 0.1, 0.1))
                        .toString())
                .contains("a diverged, and what did has no lead");
    }

    @Test
    void theQuickFormsHaveOneOfEachKind() {
        for (String name : List.of("wikitext2", "maml-cnn", "maml-vit")) {
            assertThat(Reproduction.of(name, Form.QUICK).rows())
                    .extracting(row -> row.changes().get("method"))
                    .contains("fedcomuon", "fedcomuon-vr", "fedmuon", "local-scgdm")
                    .containsAnyOf("fedavg", "fedmaml");
        }
    }

    @Test
    void everyRowOfTheFiguresCanBeConfigured() {
        for (Reproduction figure : figures()) {
            for (Reproduction.Row row : figure.rows()) {
                assertThat(figure.configuration(row, Map.of()).values()).isNotEmpty();
            }
            var labels = figure.rows().stream().map(Reproduction.Row::label).toList();
            for (Claim claim : figure.claims()) {
                assertThat(labels).containsAll(rowsOf(claim));
            }
        }
        assertThatThrownBy(() -> Reproduction.of("robust-mnist", Form.PAPER).with(List.of("fedavgg")))
                .hasMessageContaining("did you mean 'fedavg'?");
    }

    @Test
    void smallFiguresHaveNoMediumForm() {
        assertThatThrownBy(() -> Reproduction.of("tau-mnist", Form.MEDIUM))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("mnist-robust has no medium form");
    }

    /** Rows of methods that are not in the figure are like those of the others. */
    @Test
    void aFigureTakesOtherMethods() {
        Reproduction shares = Reproduction.of("maml-cnn", Form.PAPER).with(List.of("scaffold", "fedmuon"));
        assertThat(shares.rows())
                .extracting(Reproduction.Row::label)
                .containsExactly(
                        "fedmuon, chi = 0.3",
                        "fedmuon, chi = 0.5",
                        "fedmuon, chi = 0.7",
                        "scaffold, chi = 0.3",
                        "scaffold, chi = 0.5",
                        "scaffold, chi = 0.7");
        Reproduction taus = Reproduction.of("tau-mnist", Form.PAPER).with(List.of("fedavg"));
        assertThat(taus.rows().getLast())
                .isEqualTo(new Reproduction.Row("fedavg, tau = 20", Map.of("method", "fedavg", "tau", "20"), "fedavg"));
    }

    /** What a row varies comes before what was tuned, and the form before both. */
    @Test
    void tunedSettingsTakeThePlaceOfThePresets() {
        Reproduction figure = Reproduction.of("tau-mnist", Form.QUICK)
                .tuned(Map.of("fedcomuon", Map.of("eta", "0.5", "tau", "3", "iterations", "7")));
        Reproduction.Row row = figure.rows().getFirst();
        assertThat(figure.configuration(row, Map.of()).values())
                .containsEntry("eta", "0.5")
                .containsEntry("alpha", "0.2")
                .containsEntry("tau", "1")
                .containsEntry("iterations", "60");
        assertThat(figure.configuration(figure.rows().getLast(), Map.of()).values())
                .containsEntry("method", "fedcomuon-vr")
                .containsEntry("eta", "0.01");
        assertThat(figure.tunedText()).contains("fedcomuon ", "eta=0.5");
    }

    @Test
    void orthogonalizersAreComparedWithTheExactFactor() {
        Reproduction figure = Reproduction.ofOrthogonalizers("cifar-maml-cnn", Form.MEDIUM);
        assertThat(figure.rows()).hasSize(8);
        assertThat(figure.claims())
                .hasSize(6)
                .allSatisfy(claim -> assertThat(rowsOf(claim))
                        .contains(
                                claim.text().startsWith("fedcomuon-vr") ? "fedcomuon-vr, exact" : "fedcomuon, exact"));
        for (Reproduction.Row row : figure.rows()) {
            assertThat(figure.configuration(row, Map.of()).values().get("precision"))
                    .isEqualTo(row.label().endsWith("in bf16") ? "bf16" : "fp32");
        }
        assertThatThrownBy(() -> Reproduction.ofOrthogonalizers("portfolio", Form.PAPER))
                .hasMessageContaining("portfolio");
    }

    private static List<String> rowsOf(Claim claim) {
        return switch (claim) {
            case Claim.Better better -> with(better.winner(), better.others());
            case Claim.OnPar par -> with(par.row(), par.others());
            case Claim.Growth growth ->
                Stream.concat(rowsOf(growth.from()).stream(), rowsOf(growth.to()).stream())
                        .toList();
        };
    }

    private static List<String> with(String first, List<String> others) {
        return Stream.concat(Stream.of(first), others.stream()).toList();
    }
}
