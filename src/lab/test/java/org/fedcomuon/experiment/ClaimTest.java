package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The paper's claims are answered by the figures, and by nothing smaller than the spread of the seeds. */
class ClaimTest {
    private static final Claim CLAIM = new Claim("a is best", "test_accuracy", true, "a", List.of("b", "c"));

    private static RunRecord run(boolean diverged, double... accuracies) {
        var evaluations = new ArrayList<RunRecord.Evaluation>();
        for (int i = 0; i < accuracies.length; i++) {
            evaluations.add(new RunRecord.Evaluation(
                    i, i, Map.of("test_accuracy", accuracies[i], "test_loss", 10 * accuracies[i])));
        }
        return new RunRecord("run", Map.of(), evaluations, Optional.of(Map.of("diverged", diverged, "stopped", false)));
    }

    private static Reproduction.Outcome outcome(String label, double... lastOfEachSeed) {
        var runs = new ArrayList<RunRecord>();
        for (double last : lastOfEachSeed) {
            runs.add(run(false, 0, last));
        }
        return new Reproduction.Outcome(label, runs);
    }

    private static Claim.Verdict judge(Reproduction.Outcome... outcomes) {
        return CLAIM.judge(List.of(outcomes));
    }

    @Test
    void aLeadBeyondTheSpreadIsAYes() {
        Claim.Verdict verdict = judge(outcome("a", 0.90, 0.92), outcome("b", 0.85, 0.86), outcome("c", 0.2, 0.2));
        assertThat(verdict.answer()).isEqualTo(Claim.Answer.YES);
        assertThat(verdict.rival()).isEqualTo("b");
        assertThat(verdict.mine()).isCloseTo(0.91, within(1e-12));
        assertThat(verdict.spread()).isCloseTo(0.01, within(1e-12));
        assertThat(verdict.toString()).contains("a is best: yes (0.9100 against 0.8550 of b; seeds differ by 0.0100)");
    }

    @Test
    void withinTheSpreadItIsATieEitherWay() {
        assertThat(judge(outcome("a", 0.90, 0.92), outcome("b", 0.90, 0.91), outcome("c", 0, 0))
                        .answer())
                .isEqualTo(Claim.Answer.TIE);
        assertThat(judge(outcome("a", 0.90, 0.91), outcome("b", 0.90, 0.92), outcome("c", 0, 0))
                        .answer())
                .isEqualTo(Claim.Answer.TIE);
    }

    @Test
    void aRowThatIsBehindIsAnsweredWithNo() {
        assertThat(judge(outcome("a", 0.80, 0.81), outcome("b", 0.2, 0.2), outcome("c", 0.90, 0.91))
                        .answer())
                .isEqualTo(Claim.Answer.NO);
    }

    @Test
    void lessCanBeBetter() {
        var claim = new Claim("a is lowest", "test_loss", false, "a", List.of("b"));
        assertThat(claim.judge(List.of(outcome("a", 0.1, 0.1), outcome("b", 0.2, 0.2)))
                        .answer())
                .isEqualTo(Claim.Answer.YES);
        assertThat(claim.judge(List.of(outcome("a", 0.3, 0.3), outcome("b", 0.2, 0.2)))
                        .answer())
                .isEqualTo(Claim.Answer.NO);
    }

    @Test
    void aRivalThatDivergedIsBeatenAndAWinnerThatDivergedHasNoFigures() {
        var diverged = new Reproduction.Outcome("b", List.of(run(true, 0, 0.99)));
        assertThat(judge(outcome("a", 0.9), diverged, outcome("c", 0.5)).answer())
                .isEqualTo(Claim.Answer.YES);
        var mine = new Reproduction.Outcome("a", List.of(run(true, 0, 0.99)));
        assertThat(judge(mine, outcome("b", 0.1), outcome("c", 0.1)).answer()).isEqualTo(Claim.Answer.UNKNOWN);
    }

    @Test
    void nothingIsSaidOfRowsThatWereNotRun() {
        assertThat(judge(outcome("a", 0.9), outcome("b", 0.1)).answer()).isEqualTo(Claim.Answer.UNKNOWN);
    }

    @Test
    void unsteadinessIsTheMeanChangeInTheSecondHalf() {
        RunRecord run = run(false, 5, 9, 1, 0.3, 0.1, 0.2);
        assertThat(Claim.value(run, "unsteadiness").orElseThrow()).isCloseTo((2.0 + 1.0) / 2, within(1e-12));
    }

    private static List<Reproduction> figures() {
        return Reproduction.NAMES.stream()
                .flatMap(name -> Stream.of(Reproduction.of(name, false), Reproduction.of(name, true)))
                .toList();
    }

    @Test
    void aLeadMayGrow() {
        var before = new Claim("", "test_accuracy", true, "a", List.of("b"));
        var after = new Claim("", "test_accuracy", true, "c", List.of("d"));
        var growth = new Claim.Growth("it grows", before, after);
        Reproduction.Outcome a = outcome("a", 0.50, 0.52);
        Reproduction.Outcome b = outcome("b", 0.45, 0.45);
        Reproduction.Outcome c = outcome("c", 0.60, 0.60);
        Claim.Verdict verdict = growth.judge(List.of(a, b, c, outcome("d", 0.40, 0.40)));
        assertThat(verdict.answer()).isEqualTo(Claim.Answer.YES);
        assertThat(verdict.mine()).isCloseTo(0.20, within(1e-12));
        assertThat(verdict.its()).isCloseTo(0.06, within(1e-12));
        assertThat(growth.judge(List.of(a, b, c, outcome("d", 0.545, 0.545))).answer())
                .isEqualTo(Claim.Answer.TIE);
        assertThat(growth.judge(List.of(a, b, c, outcome("d", 0.59, 0.59))).answer())
                .isEqualTo(Claim.Answer.NO);
        assertThat(growth.judge(List.of(a, b, c)).answer()).isEqualTo(Claim.Answer.UNKNOWN);
    }

    @Test
    void theQuickFormsHaveOneOfEachKind() {
        for (String name : List.of("wikitext2", "maml-cnn", "maml-vit")) {
            assertThat(Reproduction.of(name, true).rows())
                    .extracting(row -> row.changes().get("method"))
                    .contains("fedcomuon", "fedcomuon-vr", "fedmuon", "local-scgdm")
                    .containsAnyOf("fedavg", "fedmaml");
        }
    }

    @Test
    void everyRowOfTheFiguresCanBeConfigured() {
        for (Reproduction figure : figures()) {
            for (Reproduction.Row row : figure.rows()) {
                var all = new LinkedHashMap<>(row.changes());
                all.putAll(figure.changes());
                assertThat(Configuration.of(Preset.load(figure.preset()), all).values())
                        .isNotEmpty();
            }
            var labels = figure.rows().stream().map(Reproduction.Row::label).toList();
            for (Claim claim : figure.claims()) {
                assertThat(labels).contains(claim.winner()).containsAll(claim.others());
            }
        }
        assertThatThrownBy(() -> Reproduction.of("robust-mnist", false).with(List.of("fedavgg")))
                .hasMessageContaining("did you mean 'fedavg'?");
    }
}
