package org.fedcomuon.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.report.Pages.HARMLESS;
import static org.fedcomuon.report.Pages.HOSTILE;
import static org.fedcomuon.report.Pages.assertRefersToNothingOutside;
import static org.fedcomuon.report.Pages.elements;
import static org.fedcomuon.report.Pages.parse;
import static org.fedcomuon.report.Pages.texts;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import org.fedcomuon.experiment.RunRecord;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.w3c.dom.Element;

/** What pages say about single clients. */
class ClientsSectionTest {
    private static final String HEADING = "Clients";

    private static Map<String, Double> client(double loss, double accuracy) {
        var row = new LinkedHashMap<String, Double>();
        row.put("loss", loss);
        row.put("accuracy", accuracy);
        row.put("examples", 40.0);
        return row;
    }

    private static RunRecord run(String method, List<Map<String, Double>> clients, Object split) {
        RunRecord run = Runs.run(method, 1, 0.9);
        return new RunRecord(
                run.name(), run.config(), run.evaluations(), Optional.of(Runs.summary("split", split)), clients);
    }

    private static List<Map<String, Double>> five() {
        return List.of(client(1, 0.5), client(5, 0.9), client(2, 0.6), client(4, 0.8), client(3, 0.7));
    }

    private static Document page(RunRecord... runs) {
        return parse(TrainPage.html(List.of(runs)));
    }

    private static List<Element> tables(Document page, String className) {
        return elements(page, "table", className);
    }

    private static Element distribution(Document page, String metric) {
        return elements(page, "div", "scroll").stream()
                .filter(div -> div.getAttribute("aria-label").equals(metric + " of the clients"))
                .findFirst()
                .orElseThrow();
    }

    private static List<String> cells(Element of, String tag) {
        var found = of.getElementsByTagName(tag);
        return IntStream.range(0, found.getLength())
                .mapToObj(i -> found.item(i).getTextContent())
                .toList();
    }

    @Test
    void metricsAreMarksAndQuantiles() {
        Document page = page(run("fedavg", five(), List.of()));
        assertThat(texts(page, "h2")).contains(HEADING);
        Element loss = distribution(page, "loss");
        assertThat(cells(loss, "th")).contains("loss", "1.0000 to 5.0000", "least", "25 %", "median", "75 %", "most");
        assertThat(cells(loss, "td")).containsExactly("", "1.0000", "2.0000", "3.0000", "4.0000", "5.0000");
        assertThat(cells(distribution(page, "accuracy"), "td"))
                .containsExactly("", "50.00 %", "60.00 %", "70.00 %", "80.00 %", "90.00 %");
        var marks = loss.getElementsByTagName("rect");
        List<Double> places = IntStream.range(0, marks.getLength())
                .mapToObj(i -> Double.valueOf(((Element) marks.item(i)).getAttribute("x")))
                .toList();
        assertThat(places).hasSize(5).isSorted();
        assertThat(places.get(2)).isEqualTo((places.getFirst() + places.getLast()) / 2);
        assertThat(elements(page, "div", "scroll"))
                .noneMatch(div -> div.getAttribute("aria-label").startsWith("examples"));
    }

    /** Runs share a scale, so that they can be compared. */
    @Test
    void severalRunsHaveARowEach() {
        RunRecord better = run("fedcomuon", List.of(client(0.5, 0.9), client(1, 0.95)), List.of(List.of(1, 2)));
        Document page = page(run("fedavg", five(), List.of(List.of(1, 2))), better);
        Element loss = distribution(page, "loss");
        assertThat(loss.getElementsByTagName("svg").getLength()).isEqualTo(2);
        assertThat(cells(loss, "th")).contains("0.5000 to 5.0000");
        assertThat(tables(page, "split")).isEmpty(); // which is that of one run
    }

    @Test
    void theSplitIsATableOfClientsAndClasses() {
        Document page = page(run("fedavg", five(), List.of(List.of(30, 10, 0), List.of(0, 0, 5))));
        Element table = tables(page, "split").getFirst();
        assertThat(cells(table, "th")).containsExactly("client", "0", "1", "2", "all", "0", "1");
        assertThat(cells(table, "td")).containsExactly("30", "10", "0", "40", "0", "0", "5", "5");
        var found = table.getElementsByTagName("td");
        assertThat(((Element) found.item(0)).getAttribute("style")).isEqualTo("--share: 0.750");
        assertThat(((Element) found.item(6)).getAttribute("style")).isEqualTo("--share: 1.000");
    }

    @Test
    void longTablesAreCut() {
        List<List<Integer>> split = Collections.nCopies(100, Collections.nCopies(50, 2));
        String html = TrainPage.html(List.of(run("fedavg", five(), split)));
        Document page = parse(html);
        assertThat(html).contains("(the first 30 of 50)", "60 more clients are in summary.json");
        Element table = tables(page, "split").getFirst();
        assertThat(table.getElementsByTagName("tr").getLength()).isEqualTo(1 + 40);
        assertThat(cells(table, "td").subList(28, 31)).containsExactly("2", "2", "100"); // all, not only those shown
    }

    @Test
    void hostileNamesAreText() {
        var row = new LinkedHashMap<String, Double>();
        row.put(HOSTILE, 1.0);
        row.put("\"><img onerror=alert(1)>", 2.0);
        RunRecord run = new RunRecord(
                HOSTILE,
                Map.of("method", HOSTILE),
                List.of(),
                Optional.of(Map.of("split", List.of(List.of(HOSTILE, 1), List.of(1, 2)))),
                List.of(row, row));
        String html = TrainPage.html(List.of(run));
        Document page = parse(html);
        assertThat(html).doesNotContain("<script>alert", "<img");
        assertThat(distribution(page, HARMLESS)).isNotNull();
        assertThat(cells(distribution(page, HARMLESS), "th")).contains(HARMLESS);
        assertThat(tables(page, "split")).isEmpty(); // a text is no count
        assertRefersToNothingOutside(html);
    }

    /** Whatever files say, the page is one. */
    @Test
    void oddFiguresAreNoMarks() {
        List<Object> splits = List.of(
                List.of(),
                "text",
                List.of(List.of(1, 2), List.of(1)),
                List.of("row"),
                List.of(List.of()),
                List.of(List.of(0, 0), List.of(-5, 5)),
                List.of(List.of(Long.MAX_VALUE, 1e300)));
        for (Object split : splits) {
            var clients = new ArrayList<Map<String, Double>>();
            clients.add(client(Double.NaN, Double.POSITIVE_INFINITY));
            clients.add(client(7, 0.5));
            clients.add(Map.of());
            String html = TrainPage.html(List.of(run("fedavg", clients, split)));
            Document page = parse(html);
            assertThat(distribution(page, "loss").getElementsByTagName("rect").getLength())
                    .isEqualTo(1);
            assertThat(html).doesNotContain("NaN", "Infinity");
        }
        RunRecord none = run("fedavg", List.of(client(Double.NaN, Double.NaN)), List.of());
        assertThat(elements(page(none), "td", "strip")).isEmpty();
        assertThat(texts(page(run("fedavg", List.of(), List.of())), "h2")).doesNotContain(HEADING);
    }
}
