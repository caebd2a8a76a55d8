package org.fedcomuon.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.report.Pages.assertDrawsNothingButNumbers;
import static org.fedcomuon.report.Pages.elements;
import static org.fedcomuon.report.Pages.lines;
import static org.fedcomuon.report.Pages.parse;
import static org.fedcomuon.report.Pages.plot;
import static org.fedcomuon.report.Pages.texts;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.experiment.RunRecord;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.w3c.dom.Element;

class RunFiguresTest {
    private static final String LOSS = "test_loss";

    private static Document each(RunRecord... runs) {
        return parse(RunFigures.each("f", "h", "c", RunFigures.byStep(Metric.TEST_LOSS), RunSeries.of(List.of(runs)))
                .html());
    }

    private static Document means(Map<String, List<RunRecord>> groups) {
        Document document = parse(RunFigures.means("f", "h", "c", RunFigures.byStep(Metric.TEST_LOSS), groups)
                .html());
        assertDrawsNothingButNumbers(document);
        return document;
    }

    private static RunRecord losses(double... values) {
        return Runs.of("run", false, LOSS, values);
    }

    private static String labels(Document document) {
        Element plot = plot(document, "f0");
        var labels = new ArrayList<String>();
        for (int i = 0; i < plot.getElementsByTagName("text").getLength(); i++) {
            labels.add(plot.getElementsByTagName("text").item(i).getTextContent());
        }
        return String.join(" ", labels);
    }

    @Test
    void theMeanLiesInTheMiddleOfItsBand() {
        Document document = means(Map.of("fedavg", List.of(losses(4, 3), losses(0, 1))));
        // The frame goes from (54, 230) to (330, 28); the axes from 0 to 1 and from 0 to 4.
        assertThat(lines(document, "f0"))
                .containsExactly(
                        "M54.0 28.0L330.0 78.5L330.0 179.5L54.0 230.0", // the greatest there, the least back
                        "M54.0 129.0L330.0 129.0");
        assertThat(elements(document, "g", "c3 band")).hasSize(1); // fedavg's own colour
        assertThat(texts(document, "title"))
                .contains("fedavg, step 0: test loss 2.0000, mean of 2, band 0.0000 to 4.0000");
        assertThat(texts(document, "li")).containsExactly("fedavg");
    }

    // st.t.interval(.95, 7, loc=np.mean(x), scale=st.sem(x)) with x = [1, 2, 3, 4, 5, 6, 7, 8]: 2.4522 to 6.5478
    @Test
    void theBandOfManyRunsIsTheIntervalOfTheirMean() {
        var runs = new ArrayList<RunRecord>();
        for (int seed = 1; seed <= 8; seed++) {
            runs.add(losses(seed, 9));
        }
        assertThat(texts(means(Map.of("a", runs)), "title"))
                .contains(
                        "a, step 0: test loss 4.5000, mean of 8, band 2.4522 to 6.5478",
                        "a, step 1: test loss 9.0000, mean of 8, band 9.0000 to 9.0000");
    }

    @Test
    void oneSeedHasNoBand() {
        Document document = means(Map.of("a", List.of(losses(4, 3)), "none", List.of()));
        assertThat(lines(document, "f0")).containsExactlyInAnyOrder("M54.0 28.0L330.0 230.0", "");
        assertThat(texts(document, "title")).contains("a, step 0: test loss 4.0000");
    }

    @Test
    void aMeanNeedsAllItsRuns() {
        // the second has no third value and none at step 1
        Document document = means(Map.of("a", List.of(losses(4, 3, 2, 1), losses(4, Double.NaN, 2))));
        assertThat(lines(document, "f0").getLast()).matches("M[0-9. ]+M[0-9. ]+");
        assertThat(texts(document, "figcaption").getFirst()).contains("not finite");
    }

    @Test
    void legendsHideBandAndMeanTogether() {
        var groups = new LinkedHashMap<String, List<RunRecord>>();
        groups.put("fedcomuon", List.of(losses(1, 2), losses(2, 3)));
        groups.put("fedcomuon-vr", List.of(losses(2, 2), losses(2, 3)));
        Document document = means(groups);
        assertThat(elements(document, "g").stream()
                        .filter(g -> g.hasAttribute("data-series"))
                        .map(g -> g.getAttribute("class") + " " + g.getAttribute("data-series")))
                .containsExactly("c1 band 0", "c2 band 1", "c1 0", "c2 1");
    }

    @Test
    void whatDivergedDoesNotFlattenTheRest() {
        RunRecord wild = Runs.of("wild", true, LOSS, 2, 5, 7, 1e30, 3);
        Document document = each(losses(2, 1, 0.5, 0.4, 0.3), wild);
        assertThat(lines(document, "f0").getLast()).matches("M[0-9. ]+L[0-9. ]+"); // 7 is more than 3 times 2
        assertThat(texts(document, "figcaption").getFirst()).contains("A run that diverged is drawn");
        assertThat(labels(each(wild))).contains("10³⁰").doesNotContain("A run that diverged is drawn");

        Document mean = means(Map.of("tame", List.of(losses(2, 1, 0.5)), "wild", List.of(wild, losses(2, 2, 2, 2, 2))));
        assertThat(lines(mean, "f0")).anySatisfy(line -> assertThat(line).matches("M[0-9. ]+L[0-9. ]+"));
        assertThat(texts(mean, "figcaption").getFirst()).contains("A run that diverged is drawn");
    }

    @Test
    void aWideRangeIsLogarithmicAndANarrowOneIsNot() {
        assertThat(labels(each(losses(3, 0.05)))).contains("logarithmic");
        assertThat(labels(each(losses(3, 0.5)))).doesNotContain("logarithmic").contains("0.5 1.0 1.5 2.0 2.5 3.0");
        assertThat(labels(each(losses(3, 0)))).doesNotContain("logarithmic");
        assertThat(labels(each(losses(93.2, 97.7)))).contains("93 94 95 96 97 98");
        assertThat(labels(each(losses(97.6, 97.7)))).contains(" 0 ");
    }

    @Test
    void whatWasNotTakenIsPassedOverAndWhatIsNoNumberLeavesAGap() {
        RunRecord run = new RunRecord(
                "run",
                Map.of(),
                List.of(
                        new RunRecord.Evaluation(0, 0, Map.of(LOSS, 1.0)),
                        new RunRecord.Evaluation(1, 0, Map.of("other", 1.0)),
                        new RunRecord.Evaluation(2, 0, Map.of(LOSS, 2.0))),
                Optional.empty());
        assertThat(lines(each(run), "f0").getFirst()).matches("M[0-9. ]+L[0-9. ]+");
        assertThat(lines(each(losses(1, Double.NaN, 2)), "f0").getFirst()).matches("M[0-9. ]+M[0-9. ]+");
    }

    @Test
    void theMoreLinesTheFewerMarks() {
        double[] values = new double[48];
        Arrays.setAll(values, i -> 1 + i);
        RunRecord[] many = new RunRecord[16];
        Arrays.setAll(many, i -> Runs.of("run " + i, false, LOSS, values));
        assertThat(elements(each(losses(values)), "path", "mark")).hasSize(8);
        assertThat(plot(each(many), "f0").getElementsByTagName("title").getLength())
                .isEqualTo(1 + 16 * 2);
    }

    @Test
    void axesHaveUnits() {
        var panels = List.of(
                new RunFigures.Panel(Metric.TEST_ACCURACY, Metric.SECONDS),
                new RunFigures.Panel(Metric.TEST_ACCURACY, Metric.BYTES));
        Document document =
                parse(RunFigures.each("f", "h", "c", panels, RunSeries.of(List.of(Runs.run("fedavg", 1, 0.5))))
                        .html());
        assertThat(labels(document)).contains("test accuracy%", "time, s", " 10 20 30 40 50 ".strip());
        assertThat(texts(document, "text")).contains("sent, MB");
        assertThat(texts(document, "title")).contains("run-fedavg-1, 5 MB: test accuracy 50.00 %");
    }
}
