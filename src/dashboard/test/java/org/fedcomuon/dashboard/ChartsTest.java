package org.fedcomuon.dashboard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.StringReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Round;
import org.fedcomuon.federation.Start;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.xml.sax.InputSource;

/** What the server draws for the page. */
class ChartsTest {
    static {
        // the module itself needs no XML, so it does not read the JDK's parser unless told
        ChartsTest.class
                .getModule()
                .addReads(ModuleLayer.boot().findModule("java.xml").orElseThrow());
    }

    private static History history(int clients) {
        var history = new History("trial", Map.of(), 100);
        List<Integer> all = IntStream.range(0, clients).boxed().toList();
        history.start(new Start(
                "trial", "fedcomuon", 7, 0, 100, 1, 42, 0, all.size(), all.size(), 0, List.of("cpu:0"), List.of(all)));
        return history;
    }

    private static void round(History history, long number, Double... losses) {
        history.step(number + 1);
        history.round(new Round(
                number,
                number + 1,
                losses.length,
                0,
                0,
                0,
                0,
                1,
                1,
                1,
                1,
                1,
                IntStream.range(0, losses.length).boxed().toList(),
                List.of(losses),
                List.of(Map.of())));
    }

    private static void evaluate(History history, long step, Map<String, Double> metrics) {
        history.evaluation(new Evaluation(step, step, metrics, List.of(), 0, 0, 0, 0, 0, 0, 0));
    }

    private static Map<String, Element> figures(History history, Charts.Choices choices) throws Exception {
        Document document = DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(new InputSource(
                        new StringReader("<page>" + Charts.html(history.courses(), choices) + "</page>")));
        var figures = new LinkedHashMap<String, Element>();
        elements(document.getDocumentElement(), "figure").forEach(one -> figures.put(one.getAttribute("id"), one));
        return figures;
    }

    private static List<Element> elements(Element within, String name) {
        var found = new ArrayList<Element>();
        var nodes = within.getElementsByTagName(name);
        for (int i = 0; i < nodes.getLength(); i++) {
            found.add((Element) nodes.item(i));
        }
        return found;
    }

    private static List<String> texts(Element within, String name) {
        return elements(within, name).stream().map(Element::getTextContent).toList();
    }

    private static boolean isLogarithmic(Element figure) {
        return elements(figure, "button")
                .getFirst()
                .getAttribute("aria-pressed")
                .equals("true");
    }

    @Test
    void beforeAnythingHasHappenedThereIsAnEmptyChart() throws Exception {
        Map<String, Element> figures = figures(new History("", Map.of(), 0), Charts.Choices.NONE);
        assertThat(figures).containsOnlyKeys("chart-rounds");
        assertThat(texts(figures.get("chart-rounds"), "b")).containsExactly("–");
    }

    /** With several inner values there are no losses of rounds. */
    @Test
    void roundsWithoutLossesHaveNoChart() throws Exception {
        History history = history(2);
        round(history, 0, Double.NaN, Double.NaN);
        evaluate(history, 1, Map.of("test_auc", 0.5));
        assertThat(figures(history, Charts.Choices.NONE)).containsOnlyKeys("chart-AUC");
    }

    @Test
    void metricsOfAKindShareAChartWithTheirLastValues() throws Exception {
        History history = history(2);
        round(history, 0, 1.0, 3.0);
        var metrics = new LinkedHashMap<String, Double>();
        metrics.put("train_loss", 0.5);
        metrics.put("test_loss", Double.NaN);
        metrics.put("test_accuracy", 0.25);
        metrics.put("<odd>", -1.0);
        evaluate(history, 0, metrics);
        Map<String, Element> figures = figures(history, Charts.Choices.NONE);
        assertThat(figures.keySet())
                .containsExactly(
                        "chart-rounds",
                        "chart-loss",
                        "chart-accuracy",
                        "chart--odd-",
                        "chart-bars",
                        "chart-clients-over-time");
        assertThat(texts(figures.get("chart-rounds"), "b")).containsExactly("2.0000, clients 1.0000 to 3.0000");
        assertThat(texts(figures.get("chart-loss"), "li")).containsExactly("train 0.5000", "test NaN");
        assertThat(texts(figures.get("chart-accuracy"), "b")).containsExactly("25.0 %");
        assertThat(elements(figures.get("chart-accuracy"), "button")).isEmpty(); // a share has no logarithm
        assertThat(texts(figures.get("chart--odd-"), "h3")).containsExactly("<odd>, evaluated");
        assertThat(texts(figures.get("chart-clients-over-time"), "li")).containsExactly("0 1.0000", "1 3.0000");
    }

    @Test
    void aScaleIsLogarithmicForWideValuesUnlessSomebodyChooses() throws Exception {
        History history = history(1);
        evaluate(history, 0, Map.of("train_loss", 100.0, "test_perplexity", 3.0));
        evaluate(history, 1, Map.of("train_loss", 1.0, "test_perplexity", 2.0));
        Map<String, Element> usual = figures(history, Charts.Choices.NONE);
        assertThat(isLogarithmic(usual.get("chart-loss"))).isTrue();
        assertThat(isLogarithmic(usual.get("chart-perplexity"))).isFalse();
        Map<String, Element> chosen = figures(history, new Charts.Choices(Set.of("perplexity"), Set.of("loss"), false));
        assertThat(isLogarithmic(chosen.get("chart-loss"))).isFalse();
        assertThat(isLogarithmic(chosen.get("chart-perplexity"))).isTrue();
    }

    @Test
    void aBarForEachClientTheWorstApart() throws Exception {
        History history = history(3);
        round(history, 0, 1.0, 2.0, Double.NaN);
        round(history, 1, 0.5, Double.NaN, Double.NaN);
        Element bars = figures(history, Charts.Choices.NONE).get("chart-bars");
        assertThat(texts(bars, "rect")).containsExactly("client 0: 0.5000", "client 1: 2.0000, 1 round ago");
        assertThat(((Element) elements(bars, "rect").getLast().getParentNode()).getAttribute("class"))
                .isEqualTo("c2");
        List<Double> heights = elements(bars, "rect").stream()
                .map(bar -> Double.valueOf(bar.getAttribute("height")))
                .toList();
        assertThat(heights.getLast() / heights.getFirst()).isCloseTo(4, within(0.02)); // from 0 up, as the losses are
        Element sorted =
                figures(history, new Charts.Choices(Set.of(), Set.of(), true)).get("chart-bars");
        assertThat(elements(sorted, "rect").stream()
                        .sorted((a, b) -> Double.compare(
                                Double.parseDouble(a.getAttribute("x")), Double.parseDouble(b.getAttribute("x"))))
                        .map(Element::getTextContent))
                .containsExactly("client 1: 2.0000, 1 round ago", "client 0: 0.5000");
    }

    @Test
    void manyClientsShareBarsAndAreNoLines() throws Exception {
        History history = history(2500);
        round(history, 0, IntStream.range(0, 2500).mapToObj(i -> i + 1.0).toArray(Double[]::new));
        Map<String, Element> figures = figures(history, Charts.Choices.NONE);
        assertThat(figures).containsOnlyKeys("chart-rounds", "chart-bars");
        assertThat(elements(figures.get("chart-bars"), "rect")).hasSize(834);
        assertThat(texts(figures.get("chart-bars"), "rect")).contains("clients 2499–2501: 2500.0000");
        assertThat(texts(figures.get("chart-bars"), "figcaption").getFirst())
                .contains("each bar is the worst of 3 clients");
    }
}
