package org.fedcomuon.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.report.Pages.HARMLESS;
import static org.fedcomuon.report.Pages.HOSTILE;
import static org.fedcomuon.report.Pages.assertDrawsNothingButNumbers;
import static org.fedcomuon.report.Pages.assertRefersToNothingOutside;
import static org.fedcomuon.report.Pages.elements;
import static org.fedcomuon.report.Pages.lines;
import static org.fedcomuon.report.Pages.parse;
import static org.fedcomuon.report.Pages.plot;
import static org.fedcomuon.report.Pages.texts;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.DoubleStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.fedcomuon.experiment.RatesReport;
import org.fedcomuon.experiment.RatesReport.Curve;
import org.fedcomuon.experiment.RatesReport.Run;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.w3c.dom.Element;

/** Reads the pages as XML: what they say, and where plots put it. */
class RatesPageTest {
    private static Run run(long iterations, double... norms) {
        return new Run(iterations, DoubleStream.of(norms).boxed().toList());
    }

    private static Curve curve(String method, String orthogonalizer, Run... runs) {
        return new Curve(method, orthogonalizer, -0.25, -0.3, -0.19, List.of(runs));
    }

    private static RatesReport report(Curve... curves) {
        return new RatesReport(8, List.of(curves));
    }

    /** Three seeds around a power of T. */
    private static Curve falling(String method, String orthogonalizer, double slope) {
        return curve(
                method,
                orthogonalizer,
                LongStream.rangeClosed(8, 14)
                        .mapToObj(power -> {
                            double norm = Math.pow(2, slope * power);
                            return run(1L << power, 0.5 * norm, norm, 1.5 * norm);
                        })
                        .toArray(Run[]::new));
    }

    private static RatesReport ordinary() {
        return report(
                falling("fedcomuon", "exact", -0.25),
                falling("fedcomuon-vr", "exact", -0.28),
                falling("fedcomuon", "newton-schulz", -0.2),
                falling("fedcomuon-vr", "newton-schulz", -0.1));
    }

    /** What measurements, or those who name them, may come up with. */
    private static List<RatesReport> degenerate() {
        return List.of(
                new RatesReport(0, List.of()),
                report(curve("", "")),
                report(curve("", "", run(256))),
                report(curve("", "", run(256, 1)), curve("", "", run(512, 1, 2))),
                report(curve(HOSTILE, HOSTILE, run(256, 1), run(512, 0.9))),
                report(curve("", "", run(0, 0), run(0, 0))),
                report(curve("", "", run(256, Double.NaN), run(512, Double.POSITIVE_INFINITY, 1), run(1024, -1))),
                report(curve("", "", run(1, Double.MIN_VALUE), run(Long.MAX_VALUE, Double.MAX_VALUE))),
                report(new Curve("", "", 1e9, Double.NaN, Double.NaN, List.of(run(1, 1), run(2, 1)))),
                report(Stream.iterate(0, i -> i + 1)
                        .limit(40)
                        .map(i -> falling("method " + i / 5, "way " + i % 5, -i))
                        .toArray(Curve[]::new)));
    }

    private static Document page(RatesReport report) {
        return parse(RatesPage.html(report));
    }

    private static List<String> rowOf(Document document, String table, int row) {
        Element body = elements(document, "div").stream()
                .filter(div -> div.getAttribute("aria-label").equals(table))
                .map(div -> (Element) div.getElementsByTagName("tbody").item(0))
                .findFirst()
                .orElseThrow();
        var cells = new ArrayList<String>();
        for (var cell = body.getElementsByTagName("tr").item(row).getFirstChild();
                cell != null;
                cell = cell.getNextSibling()) {
            cells.add(cell.getTextContent());
        }
        return cells;
    }

    @Test
    void drawsNothingButNumbers() {
        Stream.concat(Stream.of(ordinary()), degenerate().stream())
                .forEach(report -> assertDrawsNothingButNumbers(page(report)));
    }

    @Test
    void refersToNothingOutside() {
        assertRefersToNothingOutside(RatesPage.html(ordinary()));
    }

    @Test
    void escapesWhatItIsGiven() {
        String html = RatesPage.html(degenerate().get(4));
        assertThat(html).doesNotContain("<script>alert", "\u0000");
        Document document = parse(html);
        assertThat(texts(document, "th")).contains(HARMLESS, HARMLESS + " " + HARMLESS);
        assertThat(texts(document, "td")).contains(HARMLESS);
        assertThat(texts(document, "li")).contains(HARMLESS + ", " + HARMLESS);
    }

    @Test
    void everyCurveHasItsLineItsGuideAndAllItsSeeds() {
        Document document = page(ordinary());
        assertThat(lines(document, "rates")).hasSize(2 * 4);
        assertThat(texts(document, "li"))
                .containsExactly(
                        "fedcomuon, exact",
                        "fedcomuon-vr, exact",
                        "fedcomuon, newton-schulz",
                        "fedcomuon-vr, newton-schulz",
                        "slope of the theory");
        assertThat(elements(document, "g", "c1 scattered")).singleElement().satisfies(seeds -> {
            assertThat(seeds.getElementsByTagName("path").getLength()).isEqualTo(7 * 3); // marks, and no line
            assertThat(seeds.getAttribute("data-series")).isEqualTo("0");
        });
        // the same colour for the same method, dashed for the other orthogonalizer
        assertThat(elements(document, "g", "c1 dashed")).hasSize(2); // the line, and in the legend
        assertThat(elements(document, "g", "c2 dashed")).hasSize(2);
        assertThat(texts(document, "title")).contains("fedcomuon, exact, T = 256, seed 2: 0.3750");
    }

    @Test
    void theGuideFallsAsTheTheorySaysFromTheFirstMean() {
        Document exactly = page(report(falling("fedcomuon", "exact", -0.25)));
        String[] guide = ends(lines(exactly, "rates").getFirst());
        assertThat(ends(lines(exactly, "rates").getLast())).isEqualTo(guide);

        Document flat = page(report(curve("fedcomuon", "exact", run(10_000, 1), run(1, 1), run(100, 1))));
        // The frame goes from (54, 290) to (430, 28). The guide falls by the decade that the axis has, margins aside.
        assertThat(lines(flat, "rates")).containsExactly("M67.9 37.7L416.1 280.3", "M67.9 37.7L242.0 37.7L416.1 37.7");
    }

    private static String[] ends(String path) {
        return new String[] {
            path.substring(0, path.indexOf('L')), path.substring(path.lastIndexOf('L') + 1),
        };
    }

    @Test
    void tablesHaveEverySlopeAndValue() {
        Document document = page(ordinary());
        assertThat(rowOf(document, "Slopes", 0))
                .containsExactly("fedcomuon", "exact", "-0.250", "-0.250", "-0.30 to -0.19", "agrees");
        assertThat(rowOf(document, "Slopes", 3))
                .containsExactly(
                        "fedcomuon-vr", "newton-schulz", "-0.100", "-0.250", "-0.30 to -0.19", "does not agree");
        assertThat(rowOf(document, "Gradient norms", 0))
                .startsWith("256", "0.25000.1250 to 0.3750")
                .hasSize(5);
        assertThat(rowOf(document, "Gradient norms", 6).getFirst()).isEqualTo("16384");
        assertThat(texts(document, "p").getFirst()).isEqualTo("8 clients · T from 256 to 16384 · 3 seeds");
    }

    @Test
    void aLengthThatACurveLacksIsEmpty() {
        Document document = page(degenerate().get(3));
        assertThat(rowOf(document, "Gradient norms", 0)).containsExactly("256", "1.0000", "");
        assertThat(rowOf(document, "Gradient norms", 1)).containsExactly("512", "", "1.50001.0000 to 2.0000");
        assertThat(texts(document, "p").getFirst()).endsWith("1 seed or 2 seeds");
    }

    @Test
    void saysWhichSlopesDoNotAgree() {
        assertThat(texts(page(ordinary()), "strong"))
                .containsExactly("1 of 4 slopes does not agree with the theory: fedcomuon-vr, newton-schulz.");
        Curve agreeing = falling("a", "exact", -0.25);
        Curve steep = falling("b", "exact", -0.5);
        assertThat(texts(page(report(steep, agreeing, steep)), "strong"))
                .containsExactly("2 of 3 slopes do not agree with the theory: b, exact; b, exact.");
        assertThat(texts(page(report(agreeing, agreeing)), "strong"))
                .containsExactly("All 2 slopes agree with the theory.");
        assertThat(texts(page(report(agreeing)), "strong")).containsExactly("The slope agrees with the theory.");
    }

    @Test
    void aQuickRunDecidesNothingAndThePageSaysSo() {
        Document document = parse(RatesPage.quickHtml(ordinary()));
        assertThat(texts(document, "strong"))
                .containsExactly("A quick run: the range of T is too short for a conclusion.");
        assertThat(texts(document, "p")).anyMatch(text -> text.contains("1 of 4 slopes does not agree"));
    }

    @Test
    void oneLengthHasNoSlope() {
        Document document = page(report(curve("fedcomuon", "exact", run(256, 1))));
        assertThat(rowOf(document, "Slopes", 0)).contains("NaN", "has no slope");
        assertThat(texts(document, "strong").getFirst()).contains("1 of 1 slope does not agree");
    }

    @Test
    void whatIsNotFiniteLeavesAGapAndThePageSaysSo() {
        Document document = page(report(curve(
                "fedcomuon", "exact", run(1, 1), run(2, Double.NaN), run(4, Double.POSITIVE_INFINITY), run(8, 1))));
        assertThat(lines(document, "rates").getLast()).matches("M[0-9. ]+M[0-9. ]+");
        assertThat(texts(document, "figcaption").getFirst()).contains("not finite");
        assertThat(texts(document, "td")).contains("NaN", "∞");
    }

    @Test
    void saysWhenNothingWasMeasured() {
        for (RatesReport report : degenerate().subList(0, 2)) {
            Document document = page(report);
            assertThat(texts(document, "strong")).containsExactly("Nothing was measured.");
            assertThat(elements(document, "svg")).isEmpty();
            assertThat(elements(document, "table")).isEmpty();
        }
    }

    @Test
    void everyLengthIsNamedOnTheAxis() {
        var texts = plot(page(ordinary()), "rates").getElementsByTagName("text");
        var names = new ArrayList<String>();
        for (int i = 0; i < texts.getLength(); i++) {
            names.add(texts.item(i).getTextContent());
        }
        assertThat(names).contains("256", "512", "1024", "2048", "4096", "8192", "16384");
    }

    @Test
    void isTheSameInEveryLocale() {
        String expected = RatesPage.html(ordinary());
        Locale before = Locale.getDefault();
        try {
            Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
            assertThat(RatesPage.html(ordinary())).isEqualTo(expected);
        } finally {
            Locale.setDefault(before);
        }
    }
}
