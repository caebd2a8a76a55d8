package org.fedcomuon.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.fedcomuon.experiment.Claim;
import org.fedcomuon.experiment.Reproduction;
import org.fedcomuon.experiment.RowValues;
import org.fedcomuon.experiment.RunRecord;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;

/** The page of a reproduced figure: a row a method, an answer a claim. */
class ReproductionPageTest {
    private static final Claim CLAIM =
            new Claim.Better("fedcomuon beats fedavg", "test_accuracy", true, "fedcomuon", List.of("fedavg"));

    private static Document page(List<Reproduction.Outcome> outcomes) {
        var figure = new Reproduction(
                "some-figure",
                "mnist-robust",
                Map.of(),
                Map.of("fedavg", Map.of("eta", "0.1")),
                List.of(new Reproduction.Row("fedcomuon", Map.of(), ""), new Reproduction.Row("fedavg", Map.of(), "")),
                List.of(CLAIM));
        List<RowValues> values =
                outcomes.stream().map(Reproduction.Outcome::values).toList();
        return Pages.parse(ReproductionPage.html(figure, outcomes, figure.verdicts(values)));
    }

    /** Runs of seeds 42, 43, ... that end with these accuracies. */
    private static Reproduction.Outcome outcome(String method, double... accuracies) {
        var runs = new LinkedHashMap<Long, RunRecord>();
        for (double accuracy : accuracies) {
            int seed = 42 + runs.size();
            runs.put((long) seed, Runs.run(method, seed, accuracy));
        }
        return new Reproduction.Outcome(method, runs);
    }

    @Test
    void hasARowForEachAndAnAnswerToEachClaim() {
        Document page = page(List.of(
                outcome("fedcomuon", 0.96, 0.95, 0.96, 0.97, 0.95, 0.96),
                outcome("fedavg", 0.80, 0.81, 0.82, 0.80, 0.81, 0.81)));
        assertThat(Pages.texts(page, "h1")).containsExactly("some-figure");
        assertThat(Pages.texts(page, "p")).anyMatch(text -> text.endsWith("validation examples: fedavg eta=0.1"));
        assertThat(Pages.texts(page, "strong")).containsExactly("yes");
        assertThat(Pages.texts(page, "li"))
                .anyMatch(text -> text.startsWith("fedcomuon beats fedavg: yes") && text.contains("over 6 seeds"));
        assertThat(Pages.elements(page, "td", "text"))
                .extracting(cell -> cell.getTextContent())
                .containsExactly("fedcomuon", "fedavg");
        assertThat(Pages.texts(page, "td")).contains("6").anyMatch(cell -> cell.startsWith("80.83 % ± 0.75 %"));
        assertThat(Pages.elements(page, "svg")).hasSizeGreaterThanOrEqualTo(4);
    }

    /** Fifteen curves over each other could not be told apart. */
    @Test
    void rowsOfAPanelAreDrawnTogether() {
        Document page = page(List.of(
                new Reproduction.Outcome("a, chi = 0.3", Map.of(42L, Runs.run("a", 42, 0.9)), "chi = 0.3"),
                new Reproduction.Outcome("b, chi = 0.3", Map.of(42L, Runs.run("b", 42, 0.8)), "chi = 0.3"),
                new Reproduction.Outcome("a, chi = 0.7", Map.of(42L, Runs.run("a", 42, 0.7)), "chi = 0.7")));
        assertThat(Pages.texts(page, "h2")).contains("Curves, chi = 0.3", "Curves, chi = 0.7");
        assertThat(Pages.elements(page, "td", "text"))
                .extracting(cell -> cell.getTextContent())
                .containsExactly("a, chi = 0.3", "b, chi = 0.3", "a, chi = 0.7");
        assertThat(new Reproduction.Outcome("fedcomuon, tau = 5", Map.of(), "fedcomuon").labelInPanel())
                .isEqualTo("tau = 5");
    }

    @Test
    void aRowThatDivergedSaysSoInsteadOfAMean() {
        Document page = page(List.of(
                new Reproduction.Outcome("fedcomuon", Map.of(42L, Runs.of("a", true, "test_accuracy", 0.1, 0.9))),
                new Reproduction.Outcome(Pages.HOSTILE, Map.of(42L, Runs.run("fedavg", 42, 0.8)))));
        assertThat(Pages.texts(page, "td")).contains("diverged with 1", Pages.HARMLESS);
        assertThat(Pages.texts(page, "li"))
                .anyMatch(text -> text.contains("not decided") && text.contains("was not run"));
    }
}
