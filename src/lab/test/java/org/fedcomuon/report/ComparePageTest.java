package org.fedcomuon.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;
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
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.chart.Scale;
import org.fedcomuon.experiment.CompareReport;
import org.fedcomuon.experiment.CompareReport.Curve;
import org.fedcomuon.experiment.CompareReport.Entry;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.w3c.dom.Element;

/** Reads the pages as XML: what they say, and where plots put it. */
class ComparePageTest {
    private static final Curve CURVE = new Curve("jordan", List.of(1e-4, 1e-2, 1.0), List.of(0.05, 0.9, 0.7));

    private static Entry entry(
            int rows, int cols, double condition, String coefficients, double seconds, double error) {
        String method = coefficients.isEmpty() ? "exact" : "newton-schulz";
        return new Entry(rows, cols, condition, method, coefficients, "some path", seconds, error, 0.9, 0.7, 1.1);
    }

    private static CompareReport report(Entry... entries) {
        return new CompareReport("Title", "cpu:0", "OpenBLAS", List.of(entries), List.of(CURVE));
    }

    private static CompareReport ordinary() {
        var entries = new ArrayList<Entry>();
        for (int side : new int[] {128, 512, 2048}) {
            for (double condition : new double[] {10, 1e3, 1e6}) {
                entries.add(entry(side, 2 * side, condition, "", 1e-10 * side * side * side, 1e-7));
                for (String set : List.of("jordan", "you", "polar-express", "cubic", "quintic", "f", "g", "h")) {
                    entries.add(entry(side, 2 * side, condition, set, 1e-11 * side * side * side, 0.1));
                    entries.add(new Entry(side, 2 * side, condition, "gram", set, "Gram form", 0.1, 0.1, 1, 1, 1));
                }
            }
        }
        return report(entries.toArray(Entry[]::new));
    }

    /** What measurements, or those who name them, may come up with. */
    private static List<CompareReport> degenerate() {
        return List.of(
                new CompareReport("", "", "", List.of(), List.of()),
                new CompareReport("", "", "", List.of(), List.of(CURVE)),
                new CompareReport(
                        "", "", "", List.of(), List.of(new Curve("none", List.of(), List.of()), CURVE, CURVE)),
                new CompareReport(
                        HOSTILE,
                        HOSTILE,
                        HOSTILE,
                        List.of(new Entry(1, 1, 1, HOSTILE, HOSTILE, HOSTILE, 1, 1, 1, 1, 1)),
                        List.of(new Curve(HOSTILE, List.of(0.0, Double.NaN, 1.0), List.of(-3.0, 1.0, 1e308)))),
                report(entry(1, 1, 1, "", 0, 0)),
                report(entry(1, 1, Double.POSITIVE_INFINITY, "", 1, Double.NaN)),
                report(
                        entry(8, 8, 10, "jordan", Double.MIN_VALUE, Double.MAX_VALUE),
                        entry(8, 8, 10, "jordan", Double.MAX_VALUE, Double.MIN_VALUE)),
                report(entry(Integer.MAX_VALUE, Integer.MAX_VALUE, 1e300, "x".repeat(10_000), 1e9, 1e-300)),
                report(IntStream.rangeClosed(1, 40)
                        .mapToObj(side -> entry(side, 40, 10, "set " + side, side, side))
                        .toArray(Entry[]::new)));
    }

    private static Document page(CompareReport report) {
        return parse(ComparePage.html(report));
    }

    @Test
    void drawsNothingButNumbers() {
        Stream.concat(Stream.of(ordinary()), degenerate().stream())
                .forEach(report -> assertDrawsNothingButNumbers(page(report)));
    }

    @Test
    void refersToNothingOutside() {
        assertRefersToNothingOutside(ComparePage.html(ordinary()));
    }

    @Test
    void escapesWhatItIsGiven() {
        String html = ComparePage.html(degenerate().get(3));
        assertThat(html).doesNotContain("<script>alert", "\u0000");
        Document document = parse(html);
        assertThat(texts(document, "h1")).containsExactly(HARMLESS);
        assertThat(texts(document, "title").getFirst()).isEqualTo(HARMLESS);
        assertThat(texts(document, "th")).contains(HARMLESS + " " + HARMLESS);
        assertThat(texts(document, "td")).contains(HARMLESS);
        assertThat(texts(document, "li")).contains(HARMLESS + " " + HARMLESS, HARMLESS);
    }

    @Test
    void tableHasEveryEntry() {
        CompareReport report = ordinary();
        Document document = page(report);
        assertThat(elements(document, "th").stream()
                        .filter(head -> head.getAttribute("scope").equals("row"))
                        .map(Element::getTextContent))
                .containsExactlyElementsOf(
                        report.entries().stream().map(Entry::label).toList());
        assertThat(texts(document, "th")).contains("128×256, condition number 10", "2048×4096, condition number 10⁶");
    }

    @Test
    void eachPlotHasItsLines() {
        Document document = page(ordinary());
        assertThat(lines(document, "time")).hasSize(17);
        assertThat(lines(document, "curves")).hasSize(2); // the curve, and where 1 is
        assertThat(lines(document, "error0")).hasSize(17);
        assertThat(lines(document, "error2")).hasSize(17);
        assertThat(elements(document, "svg", "plot")).hasSize(5).allSatisfy(svg -> {
            assertThat(svg.getElementsByTagName("title").getLength()).isPositive();
            assertThat(svg.getElementsByTagName("desc").getLength()).isEqualTo(1);
        });
    }

    @Test
    void marksTheBestOfEachGroup() {
        Document document = page(report(
                entry(8, 8, 10, "", 2e-3, 1e-7),
                entry(8, 8, 10, "jordan", 1e-3, 0.3),
                entry(8, 8, 10, "you", 4e-3, Double.NaN),
                entry(8, 8, 100, "", 5, 0.2)));
        assertThat(elements(document, "td", "best").stream().map(Element::getTextContent))
                .containsExactly("1.00e-07", "1.00 ms");
        assertThat(texts(document, "td")).contains("2.00", "0.50"); // times as fast as the exact 2 ms
    }

    @Test
    void valuesLieWhereTheScaleSays() {
        Document document = page(report(
                entry(8, 8, 1, "jordan", 1, 1e-6),
                entry(8, 8, 1e2, "jordan", 1, 1e-4),
                entry(8, 8, 1e4, "jordan", 1, 1e-2)));
        // The frame goes from (54, 250) to (330, 28), and a margin of 4 % of the data lies on each side of these.
        assertThat(lines(document, "error0")).containsExactly("M64.2 241.8L192.0 139.0L319.8 36.2");
        var texts = plot(document, "error0").getElementsByTagName("text");
        assertThat(IntStream.range(0, texts.getLength())
                        .mapToObj(i -> (Element) texts.item(i))
                        .filter(text -> text.getAttribute("x").equals("192.0"))
                        .map(Element::getTextContent))
                .containsExactly("100");
    }

    @Test
    void zeroLiesAtTheStartOfALogarithmicAxisAndThePageSaysSo() {
        var positive = entry(8, 8, 10, "", 1, 1e-3);
        var zero = entry(8, 8, 1000, "", 1, 0);
        Document document = page(report(positive, zero));
        assertThat(lines(document, "error0").getFirst()).endsWith(" 250.0");
        assertThat(texts(document, "figcaption").getLast()).contains("has no zero");
        assertThat(texts(page(report(positive)), "figcaption")).noneMatch(text -> text.contains("has no zero"));
    }

    @Test
    void whatIsNotFiniteLeavesAGapAndThePageSaysSo() {
        Document document = page(report(
                entry(8, 8, 10, "", 1, 1e-3),
                entry(8, 8, 100, "", 1, Double.NaN),
                entry(8, 8, 1000, "", 1, Double.POSITIVE_INFINITY),
                entry(8, 8, 10_000, "", 1, 1e-3)));
        assertThat(lines(document, "error0").getFirst()).matches("M[0-9. ]+M[0-9. ]+");
        assertThat(texts(document, "figcaption").getLast()).contains("not finite");
        assertThat(texts(document, "td")).contains("NaN", "∞");
    }

    @Test
    void saysWhenNothingWasMeasured() {
        Document document = page(degenerate().getFirst());
        assertThat(texts(document, "strong")).containsExactly("Nothing was measured.");
        assertThat(elements(document, "svg")).isEmpty();
        assertThat(elements(document, "table")).isEmpty();
        assertThat(lines(page(degenerate().get(1)), "curves")).hasSize(2);
    }

    @Test
    void ofSeveralPathsTheFastestIsDrawn() {
        Document document = page(report(
                entry(8, 8, 10, "jordan", 3, 0.1),
                entry(8, 8, 10, "jordan", 2, 0.2),
                entry(8, 8, 10, "jordan", 4, 0.3)));
        assertThat(texts(document, "title")).contains("newton-schulz jordan, 8×8: 2 s");
        assertThat(lines(document, "time")).hasSize(1);
    }

    @Test
    void isTheSameInEveryLocale() {
        String expected = ComparePage.html(ordinary());
        Locale before = Locale.getDefault();
        try {
            Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
            assertThat(ComparePage.html(ordinary())).isEqualTo(expected);
        } finally {
            Locale.setDefault(before);
        }
    }

    @Test
    void numbersAreReadable() {
        assertThat(Stream.of(0.0, 1.0, 0.012345, 1234.5, 1e4, -2.5e-7, 1e-300, Double.NaN)
                        .map(Numbers::brief))
                .containsExactly("0", "1", "0.0123", "1230", "10⁴", "-2.5·10⁻⁷", "10⁻³⁰⁰", "NaN");
        assertThat(Stream.of(0.0, 1e-9, 2.5e-5, 0.99949e-3, 0.99951e-3, 1e-3, 72.0)
                        .map(Numbers::time))
                .containsExactly("0 s", "1 ns", "25 µs", "999 µs", "1 ms", "1 ms", "72 s");
        assertThat(Numbers.timeLike(1.5, 2e-3)).isEqualTo("1500.00 ms");
    }

    @Test
    void scalesHaveRoundTicks() {
        Scale linear = Scale.linear(List.of(0.1, 1.13));
        assertThat(linear.ticks().stream().map(Scale.Tick::label))
                .containsExactly("0", "0.2", "0.4", "0.6", "0.8", "1", "1.2");
        assertThat(linear.place(0.6)).isCloseTo(0.5, within(1e-12));
        assertThat(Scale.logarithmic(List.of(3e-6), Numbers::time).ticks().stream()
                        .map(Scale.Tick::label))
                .containsExactly("1 µs", "2 µs", "5 µs");
        assertThat(Scale.logarithmic(List.of(1e-12, 1.0), Numbers::brief).ticks().stream()
                        .map(Scale.Tick::label))
                .containsExactly("10⁻¹²", "10⁻¹⁰", "10⁻⁸", "10⁻⁶", "10⁻⁴", "0.01", "1");
    }

    @Test
    void reportsRejectWhatCannotBe() {
        assertThatIllegalArgumentException().isThrownBy(() -> entry(0, 8, 10, "", 1, 1));
        assertThatIllegalArgumentException().isThrownBy(() -> entry(8, 8, Double.NaN, "", 1, 1));
        assertThatIllegalArgumentException().isThrownBy(() -> entry(8, 8, 10, "", Double.NaN, 1));
        assertThatIllegalArgumentException().isThrownBy(() -> entry(8, 8, 10, "", -1, 1));
        assertThatIllegalArgumentException().isThrownBy(() -> new Curve("", List.of(1.0), List.of()));
        var values = new ArrayList<>(List.of(1.0));
        var curve = new Curve("jordan", values, values);
        values.clear();
        assertThat(curve.input()).containsExactly(1.0);
    }
}
