package org.fedcomuon.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import org.fedcomuon.experiment.Claim;
import org.fedcomuon.experiment.Reproduction;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;

/** The page of a reproduced figure: a row a method, an answer a claim. */
class ReproductionPageTest {
    private static final Claim CLAIM =
            new Claim("fedcomuon beats fedavg", "test_accuracy", true, "fedcomuon", List.of("fedavg"));

    private static Document page(List<Reproduction.Outcome> outcomes) {
        var figure = new Reproduction(
                "some-figure",
                "mnist-robust",
                Map.of(),
                List.of(new Reproduction.Row("fedcomuon", Map.of(), ""), new Reproduction.Row("fedavg", Map.of(), "")),
                List.of(CLAIM),
                List.of());
        return Pages.parse(ReproductionPage.html(figure, outcomes, List.of(CLAIM.judge(outcomes))));
    }

    @Test
    void hasARowForEachAndAnAnswerToEachClaim() {
        Document page = page(List.of(
                new Reproduction.Outcome(
                        "fedcomuon", List.of(Runs.run("fedcomuon", 42, 0.96), Runs.run("fedcomuon", 43, 0.96))),
                new Reproduction.Outcome("fedavg", List.of(Runs.run("fedavg", 42, 0.8), Runs.run("fedavg", 43, 0.8)))));
        assertThat(Pages.texts(page, "h1")).containsExactly("some-figure");
        assertThat(Pages.texts(page, "li")).anyMatch(text -> text.startsWith("fedcomuon beats fedavg: yes"));
        assertThat(Pages.elements(page, "td", "text"))
                .extracting(cell -> cell.getTextContent())
                .containsExactly("fedcomuon", "fedavg");
        assertThat(Pages.elements(page, "svg")).hasSizeGreaterThanOrEqualTo(4);
    }

    /** Fifteen curves over each other could not be told apart. */
    @Test
    void rowsOfAPanelAreDrawnTogether() {
        Document page = page(List.of(
                new Reproduction.Outcome("a, chi = 0.3", List.of(Runs.run("a", 42, 0.9)), "chi = 0.3"),
                new Reproduction.Outcome("b, chi = 0.3", List.of(Runs.run("b", 42, 0.8)), "chi = 0.3"),
                new Reproduction.Outcome("a, chi = 0.7", List.of(Runs.run("a", 42, 0.7)), "chi = 0.7")));
        assertThat(Pages.texts(page, "h2")).contains("Curves, chi = 0.3", "Curves, chi = 0.7");
        assertThat(Pages.elements(page, "td", "text"))
                .extracting(cell -> cell.getTextContent())
                .containsExactly("a, chi = 0.3", "b, chi = 0.3", "a, chi = 0.7");
        assertThat(new Reproduction.Outcome("fedcomuon, tau = 5", List.of(), "fedcomuon").labelInPanel())
                .isEqualTo("tau = 5");
    }

    @Test
    void aRowThatDivergedSaysSoInsteadOfAMean() {
        Document page = page(List.of(
                new Reproduction.Outcome("fedcomuon", List.of(Runs.of("a", true, "test_accuracy", 0.1, 0.9))),
                new Reproduction.Outcome(Pages.HOSTILE, List.of(Runs.run("fedavg", 42, 0.8)))));
        assertThat(Pages.texts(page, "td")).contains("diverged", Pages.HARMLESS);
        assertThat(Pages.texts(page, "li")).anyMatch(text -> text.contains("not known"));
    }
}
