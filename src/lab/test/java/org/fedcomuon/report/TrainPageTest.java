package org.fedcomuon.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.report.Pages.HARMLESS;
import static org.fedcomuon.report.Pages.HOSTILE;
import static org.fedcomuon.report.Pages.assertDrawsNothingButNumbers;
import static org.fedcomuon.report.Pages.assertRefersToNothingOutside;
import static org.fedcomuon.report.Pages.elements;
import static org.fedcomuon.report.Pages.lines;
import static org.fedcomuon.report.Pages.parse;
import static org.fedcomuon.report.Pages.texts;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.experiment.RunRecord;
import org.fedcomuon.experiment.RunRecord.Evaluation;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.w3c.dom.Element;

/** Reads the pages as XML: what they say, and where plots put it. */
class TrainPageTest {
    private static Document page(RunRecord... runs) {
        return parse(TrainPage.html(List.of(runs)));
    }

    private static RunRecord ended(RunRecord run, Object... summary) {
        return new RunRecord(run.name(), run.config(), run.evaluations(), Optional.of(Runs.summary(summary)));
    }

    private static RunRecord with(RunRecord run, String name, String key, String value) {
        var config = new LinkedHashMap<>(run.config());
        config.put(key, value);
        return new RunRecord(name, config, run.evaluations(), run.summary());
    }

    private static List<RunRecord> several() {
        return List.of(Runs.run("fedavg", 42, 0.8), Runs.run("fedcomuon-vr", 42, 0.95), Runs.run("fedmuon", 42, 0.9));
    }

    private static RunRecord hostile() {
        return new RunRecord(
                HOSTILE,
                Map.of(HOSTILE, HOSTILE, "method", HOSTILE, "preset", HOSTILE, "seed", HOSTILE),
                List.of(new Evaluation(0, 0, Map.of("test_accuracy", 0.5, HOSTILE, 1.0))),
                Optional.of(Map.<String, Object>of(HOSTILE + 1, List.of(HOSTILE, Map.of(HOSTILE, HOSTILE)))));
    }

    /** What runs, or those who name them, may come up with. */
    private static List<List<RunRecord>> degenerate() {
        RunRecord bare = new RunRecord("bare", Map.of(), List.of(), Optional.empty());
        return List.of(
                List.of(),
                List.of(bare),
                List.of(bare, bare, bare),
                List.of(hostile()),
                List.of(hostile(), hostile(), bare),
                List.of(Runs.of("nan", true, "test_accuracy", Double.NaN)),
                List.of(Runs.of("inf", false, "test_loss", Double.POSITIVE_INFINITY, -1, Double.MAX_VALUE)),
                List.of(Runs.of("a", true, "seconds", -1, Double.NaN), Runs.of("b", false, "seconds", 1e300)),
                List.of(Runs.of("a", false, "communicated_bytes", 0, 1e30)),
                List.of(Runs.of("a", false, "test_perplexity", Double.MIN_VALUE, Double.MAX_VALUE)),
                List.of(Runs.of("x".repeat(300), false, "test_loss", 1, 2), Runs.run("fedavg", 1, 1)),
                List.of(new RunRecord(
                        "huge",
                        Map.of(),
                        List.of(new Evaluation(Long.MAX_VALUE, 0, Map.of("test_loss", 1.0))),
                        Optional.of(Map.of()))),
                IntStream.range(0, 20)
                        .mapToObj(i -> Runs.run("method " + i / 2, i % 2, i / 20.0))
                        .toList());
    }

    private static List<List<String>> rows(Document document, String table) {
        Element body = elements(document, "div").stream()
                .filter(div -> div.getAttribute("aria-label").equals(table))
                .map(div -> (Element) div.getElementsByTagName("tbody").item(0))
                .findFirst()
                .orElseThrow();
        var rows = new ArrayList<List<String>>();
        for (int i = 0; i < body.getElementsByTagName("tr").getLength(); i++) {
            var cells = new ArrayList<String>();
            for (var cell = body.getElementsByTagName("tr").item(i).getFirstChild();
                    cell != null;
                    cell = cell.getNextSibling()) {
                cells.add(cell.getTextContent());
            }
            rows.add(cells);
        }
        return rows;
    }

    @Test
    void drawsNothingButNumbers() {
        Stream.concat(Stream.of(several()), degenerate().stream())
                .forEach(runs -> assertDrawsNothingButNumbers(parse(TrainPage.html(runs))));
    }

    @Test
    void refersToNothingOutside() {
        assertRefersToNothingOutside(TrainPage.html(several()));
    }

    @Test
    void escapesWhatItIsGiven() {
        for (List<RunRecord> runs : degenerate().subList(3, 5)) {
            String html = TrainPage.html(runs);
            assertThat(html).doesNotContain("<script>alert", "\u0000");
        }
        assertThat(texts(page(hostile()), "dt")).contains(HARMLESS);
        assertThat(texts(page(hostile()), "dd")).contains(HARMLESS);
        assertThat(texts(page(hostile()), "h1")).containsExactly(HARMLESS);
        assertThat(texts(page(hostile()), "dd")).contains("%s, %s %s".formatted(HARMLESS, HARMLESS, HARMLESS));
        Document several = parse(TrainPage.html(degenerate().get(4)));
        assertThat(texts(several, "th")).contains(HARMLESS);
        assertThat(texts(several, "td")).contains(HARMLESS);
        assertThat(texts(several, "li")).contains(HARMLESS + " (1)", HARMLESS + " (2)");
    }

    @Test
    void oneRunSaysWhatCameOut() {
        Document document = page(Runs.run("fedcomuon", 42, 0.9));
        assertThat(texts(document, "h1")).containsExactly("run-fedcomuon-42");
        assertThat(texts(document, "p").getFirst())
                .isEqualTo("mnist-robust · fedcomuon · seed 42 · 500 steps · averaged every 5");
        assertThat(texts(document, "strong"))
                .containsExactly("Test accuracy 90.00 %, worst client’s train accuracy 81.00 % after 50 steps.");
        assertThat(elements(document, "ul", "legend")).isEmpty();
        assertThat(elements(document, "p", "warning")).isEmpty();
        assertThat(elements(document, "details")).isEmpty();
        assertThat(elements(document, "td", "best")).isEmpty();
        assertThat(texts(document, "dt")).contains("preset", "tau", "java").doesNotContain("directory", "diverged");
        assertThat(texts(document, "dd")).contains("mnist-robust", "25.0.3", "cpu:0, cpu:1");
        assertThat(rows(document, "Last values"))
                .containsExactly(List.of(
                        "run-fedcomuon-42",
                        "90.00 %",
                        "81.00 %",
                        "0.1625",
                        "0.2625",
                        "0.0625",
                        "1.0645",
                        "50",
                        "500",
                        "10 s",
                        "5 MB"));
    }

    @Test
    void everyMetricHasItsPlot() {
        Document document = page(Runs.run("fedcomuon", 42, 0.9));
        assertThat(elements(document, "svg", "plot")).hasSize(6 + 2);
        assertThat(elements(document, "tspan", "heading").stream().map(Element::getTextContent))
                .containsExactly(
                        "train objective",
                        "train loss",
                        "test loss",
                        "test accuracy",
                        "worst client’s train loss",
                        "worst client’s train accuracy",
                        "test accuracy",
                        "test accuracy");
        Document text = page(Runs.of("wiki", false, "test_perplexity", 100, 50));
        assertThat(elements(text, "tspan", "heading").stream().map(Element::getTextContent))
                .containsExactly("test perplexity");
        assertThat(texts(text, "strong")).containsExactly("Test perplexity 50.0000 after 1 steps.");
    }

    @Test
    void theFigureIsTheHeadlineStepByStep() {
        String svg = TrainPage.figure(several()).orElseThrow();
        Document figure = parse(svg);
        assertDrawsNothingButNumbers(figure);
        assertRefersToNothingOutside(svg.replace("xmlns=\"http://www.w3.org/2000/svg\"", ""));
        assertThat(texts(figure, "title")).contains("3 runs of mnist-robust", "test accuracy against step");
        assertThat(lines(figure, "main0")).hasSize(3);
        assertThat(lines(figure, "main1")).hasSize(3);
        assertThat(texts(figure, "text")).contains("fedavg", "fedcomuon-vr", "fedmuon");

        degenerate().forEach(runs -> TrainPage.figure(runs).ifPresent(any -> assertDrawsNothingButNumbers(parse(any))));
        assertThat(TrainPage.figure(List.of(hostile())).orElseThrow()).doesNotContain("<script");
    }

    @Test
    void severalAreRankedAndTheBestMarked() {
        Document document = parse(TrainPage.html(several()));
        assertThat(texts(document, "h1")).containsExactly("3 runs of mnist-robust");
        assertThat(texts(document, "strong").getFirst())
                .isEqualTo("Best test accuracy: 95.00 % (fedcomuon-vr).\n"
                        + "Best worst client’s train accuracy: 85.50 % (fedcomuon-vr).");
        assertThat(rows(document, "Last values"))
                .extracting(List::getFirst)
                .containsExactly("fedcomuon-vr", "fedmuon", "fedavg");
        assertThat(elements(document, "td", "best").stream().map(Element::getTextContent))
                .startsWith("95.00 %", "85.50 %", "0.1625")
                .doesNotContain("10 s", "50", "90.00 %");
        assertThat(lines(document, "progress3")).hasSize(3);
        assertThat(texts(document, "li")).startsWith("fedavg", "fedcomuon-vr", "fedmuon");
    }

    @Test
    void perplexityRanksTheOtherWayRound() {
        Document document = page(
                Runs.of("a", false, "test_perplexity", 50),
                Runs.of("none", false, "train_loss", 1),
                Runs.of("b", false, "test_perplexity", 40));
        assertThat(rows(document, "Last values"))
                .containsExactly(
                        List.of("b", "40.0000", "–", "0"),
                        List.of("a", "50.0000", "–", "0"),
                        List.of("none", "–", "1.0000", "0"));
        assertThat(texts(document, "strong").getFirst()).isEqualTo("Best test perplexity: 40.0000 (b).");
    }

    @Test
    void severalShowWhatDiffersAndFoldTheRest() {
        Document document = parse(TrainPage.html(several()));
        assertThat(rows(document, "Settings"))
                .containsExactly(
                        List.of("fedavg", "run-fedavg-42", "fedavg"),
                        List.of("fedcomuon-vr", "run-fedcomuon-vr-42", "fedcomuon-vr"),
                        List.of("fedmuon", "run-fedmuon-42", "fedmuon"));
        assertThat(texts(document, "summary"))
                .containsExactly("4 settings that all runs share", "4 facts that all runs share");
        assertThat(texts(document, "dd")).contains("mnist-robust", "500").doesNotContain("fedavg");

        RunRecord other = ended(Runs.run("fedavg", 43, 0.5), "sha256", "f".repeat(64), "java", "26");
        assertThat(rows(page(several().getFirst(), other), "Environment"))
                .containsExactly(
                        List.of("fedavg, seed 42", "0123456789ab…", "25.0.3"),
                        List.of("fedavg, seed 43", "ffffffffffff…", "26"));
    }

    @Test
    void aRunWithoutASummaryHidesNothingThatTheOthersShare() {
        RunRecord run = several().getFirst();
        RunRecord unfinished = new RunRecord("u", Runs.config("fedmuon", 42), run.evaluations(), Optional.empty());
        Document document = page(run, unfinished, several().get(1));
        assertThat(texts(document, "summary")).contains("4 facts that all runs with a summary share");
    }

    @Test
    void aRunThatDidNotEndAsItShouldSaysSo() {
        RunRecord run = Runs.run("fedavg", 42, 0.9);
        RunRecord diverged = ended(run, "diverged", true);
        RunRecord unfinished = new RunRecord(run.name(), run.config(), run.evaluations(), Optional.empty());
        assertThat(texts(page(diverged), "p")).contains("This run diverged; its last evaluation is that of step 50.");
        assertThat(texts(page(ended(run, "stopped", true)), "p"))
                .contains("This run was stopped before its end; its last evaluation is that of step 50.");
        assertThat(texts(page(unfinished), "p"))
                .contains("This run has no summary: it is still running, or it crashed;"
                        + " its last evaluation is that of step 50.");

        Document why = page(ended(run, "diverged", true, "failure", "<client 3> left"));
        assertThat(texts(why, "p"))
                .contains("This run diverged (<client 3> left); its last evaluation is that of step 50.");
        assertThat(texts(why, "dt")).doesNotContain("failure");

        // however good its last values: they are not what came out
        Document document = page(diverged, Runs.run("fedmuon", 42, 0.5));
        assertThat(rows(document, "Last values"))
                .extracting(List::getFirst)
                .containsExactly("fedmuon", "fedavgdiverged");
        assertThat(texts(document, "p")).contains("fedavg diverged; its last evaluation is that of step 50.");
        assertThat(texts(document, "strong").getFirst()).contains("50.00 % (fedmuon)");
    }

    @Test
    void nothingEvaluated() {
        RunRecord run = new RunRecord("new", Runs.config("fedavg", 1), List.of(), Optional.empty());
        Document document = page(run);
        assertThat(texts(document, "strong").getFirst()).isEqualTo("Nothing was evaluated yet.");
        assertThat(texts(document, "p").getLast()).endsWith("it has no evaluation.");
        assertThat(elements(document, "svg")).isEmpty();
        assertThat(texts(document, "dd")).contains("fedavg");
        assertThat(texts(page(run, Runs.run("fedmuon", 1, 0.5)), "p"))
                .anyMatch(text -> text.startsWith("fedavg has no summary"));
    }

    @Test
    void oneEvaluationIsAPoint() {
        RunRecord run =
                new RunRecord("one", Runs.config("fedavg", 1), Runs.evaluations(1, 0.5), Optional.of(Runs.summary()));
        Document document = page(run);
        assertThat(lines(document, "progress0").getFirst()).matches("M[0-9. ]+");
        assertThat(elements(document, "path", "mark")).hasSize(8);
        assertThat(texts(document, "h2")).doesNotContain("Where the time went"); // of no time at all
    }

    @Test
    void timeIsSplit() {
        Document document = page(Runs.run("fedcomuon", 42, 0.9));
        Element shares = elements(document, "div", "shares").getFirst();
        assertThat(shares.getTextContent().replaceAll("\\s+", " ").strip())
                .isEqualTo(
                        "run-fedcomuon-42 10 s gradients 50.0 % orthogonalizing 25.0 % evaluations 12.5 % other 12.5 %");
        assertThat(elements(document, "rect").stream()
                        .filter(rect -> rect.hasAttribute("x"))
                        .map(rect -> rect.getAttribute("x") + "+" + rect.getAttribute("width")))
                .containsExactly("0.00+50.00", "50.00+25.00", "75.00+12.50", "87.50+12.50");
    }

    @Test
    void aRunWhosePhasesNobodyTimedHasNoBar() {
        Document document = page(Runs.of("plain", false, "seconds", 0, 3));
        assertThat(elements(document, "div", "shares")).isEmpty();
        assertThat(texts(document, "h2")).doesNotContain("Where the time went");
    }

    @Test
    void numbersOfTheSummaryHaveUnits() {
        Document document = page(ended(
                Runs.run("fedavg", 42, 0.9),
                "wall_seconds",
                44.295693062000005,
                "memory_estimate_bytes",
                33_237_120L,
                "round_trips",
                12));
        assertThat(texts(document, "dt")).contains("wall time", "memory estimate", "round trips", "java");
        assertThat(texts(document, "dd")).contains("44.3 s", "33.2 MB", "12");
    }

    @Test
    void severalDevicesWorkLongerThanTheClockRuns() {
        RunRecord run = new RunRecord(
                "two",
                Map.of(),
                List.of(new Evaluation(
                        1, 1, Map.of("seconds", 1.0, "gradient_seconds", 1.5, "orthogonalize_seconds", 0.5))),
                Optional.of(Map.of()));
        Document document = page(run);
        assertThat(elements(document, "div", "shares").getFirst().getTextContent())
                .contains("1 s", "gradients 75.0 %", "orthogonalizing 25.0 %")
                .doesNotContain("other");
        assertThat(texts(document, "p")).anyMatch(text -> text.contains("the sum of their times"));
    }

    @Test
    void seedsOfAMethodShareItsColour() {
        List<RunSeries> series = RunSeries.of(List.of(
                Runs.run("fedavg", 42, 1),
                Runs.run("fedcomuon", 42, 1),
                with(Runs.run("fedavg", 43, 1), "b", "devices", "cpu:1")));
        assertThat(series)
                .extracting(RunSeries::label)
                .containsExactly("fedavg, seed 42", "fedcomuon, seed 42", "fedavg, seed 43");
        assertThat(series).extracting(one -> one.look().style()).containsExactly("c3", "c1", "c3 dashed");
        assertThat(series.get(2).look().mark()).isEqualTo(series.get(0).look().mark());
        assertThat(series.get(1).look().mark())
                .isNotEqualTo(series.get(0).look().mark());
    }

    @Test
    void runsOfOneMethodAreNamedByWhatDiffers() {
        RunRecord run = Runs.run("fedavg", 42, 1);
        List<RunSeries> series = RunSeries.of(List.of(run, with(run, "b", "tau", "1"), with(run, "c", "extra", "x")));
        assertThat(series)
                .extracting(RunSeries::label)
                .containsExactly(
                        "fedavg, tau 5, extra not set", "fedavg, tau 1, extra not set", "fedavg, tau 5, extra x");
        assertThat(series).extracting(one -> one.look().style()).containsExactly("c1", "c2", "c3");
    }

    @Test
    void runsThatDifferByNothingOrByTooMuchAreNamedByTheirDirectories() {
        RunRecord run = Runs.run("fedavg", 42, 1);
        assertThat(RunSeries.of(List.of(run, with(run, "b", "tau", "5"))))
                .extracting(RunSeries::label)
                .containsExactly("run-fedavg-42", "b");
        assertThat(RunSeries.of(List.of(run, run)))
                .extracting(RunSeries::label)
                .containsExactly("run-fedavg-42 (1)", "run-fedavg-42 (2)");
        RunRecord other = run;
        for (String key : List.of("a", "b", "c", "d")) {
            other = with(other, "other", key, "1");
        }
        assertThat(RunSeries.of(List.of(run, other)))
                .extracting(RunSeries::label)
                .containsExactly("run-fedavg-42", "other");
    }

    @Test
    void twentyRunsAreAllThere() {
        Document document = parse(TrainPage.html(degenerate().getLast()));
        assertThat(rows(document, "Last values")).hasSize(20);
        assertThat(lines(document, "progress0")).hasSize(20).doesNotContain("");
        assertThat(elements(document, "li").stream()
                        .filter(li -> li.getAttribute("data-series").equals("19")))
                .hasSize(2);
    }

    @Test
    void isTheSameInEveryLocale() {
        String expected = TrainPage.html(several());
        Locale before = Locale.getDefault();
        try {
            Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
            assertThat(TrainPage.html(several())).isEqualTo(expected);
        } finally {
            Locale.setDefault(before);
        }
    }

    @Test
    void numbersAsPeopleReadThem() {
        assertThat(Stream.of(0.0, 0.25, 99.4, 99.5, 150.0, 3599.6, 7384.0).map(Numbers::duration))
                .containsExactly("0 s", "250 ms", "99.4 s", "1 min 40 s", "2 min 30 s", "1 h 0 min", "2 h 3 min");
        assertThat(Stream.of(0.0, 999.0, 1000.0, 999_900.0, 3.5e9, 1e18).map(Numbers::bytes))
                .containsExactly("0 B", "999 B", "1 kB", "1 MB", "3.5 GB", "10⁶ TB");
    }
}
