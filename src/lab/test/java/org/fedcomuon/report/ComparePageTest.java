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
import java.util.OptionalInt;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.chart.Scale;
import org.fedcomuon.experiment.CompareReport;
import org.fedcomuon.experiment.CompareReport.Curve;
import org.fedcomuon.experiment.CompareReport.Entry;
import org.fedcomuon.experiment.CompareReport.Subject;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.w3c.dom.Element;

/** Reads the pages as XML: what they say, and where plots put it. */
class ComparePageTest {
    private static final Curve CURVE = new Curve("jordan", List.of(1e-4, 1e-2, 1.0), List.of(0.05, 0.9, 0.7));

    private static Subject subject(int rows, int cols, double condition) {
        return new Subject("", rows, cols, condition, Math.min(rows, cols), List.of(1.0, 1 / condition));
    }

    private static Entry entry(
            int rows, int cols, double condition, String coefficients, double seconds, double error) {
        return entry(
                subject(rows, cols, condition),
                coefficients.isEmpty() ? "exact" : "newton-schulz",
                coefficients,
                seconds,
                List.of(error / 2, error));
    }

    private static Entry entry(
            Subject subject, String method, String coefficients, double seconds, List<Double> errors) {
        OptionalInt kept = coefficients.isEmpty() ? OptionalInt.of(subject.directions()) : OptionalInt.empty();
        return new Entry(subject, method, coefficients, 5, "some path", seconds, errors, 0.25, 0.9, 0.7, 1.1, kept);
    }

    private static CompareReport report(Entry... entries) {
        return new CompareReport("Title", "cpu:0", "OpenBLAS", false, List.of(0.01), List.of(entries), List.of(CURVE));
    }

    private static CompareReport ofRun(Entry... entries) {
        return new CompareReport("Title", "cpu:0", "OpenBLAS", true, List.of(0.01), List.of(entries), List.of());
    }

    private static CompareReport ordinary() {
        var entries = new ArrayList<Entry>();
        for (int side : new int[] {128, 512, 2048}) {
            for (double condition : new double[] {10, 1e3, 1e6}) {
                entries.add(entry(side, 2 * side, condition, "", 1e-10 * side * side * side, 1e-7));
                String until = "polar-express-until:0.01@" + 1 / condition;
                entries.add(entry(side, 2 * side, condition, until, 2e-11 * side * side * side, 1e-3));
                for (String set : List.of("jordan", "you", "polar-express", "cubic", "quintic", "f", "g", "h")) {
                    entries.add(entry(side, 2 * side, condition, set, 1e-11 * side * side * side, 0.1));
                    entries.add(entry(subject(side, 2 * side, condition), "gram", set, 0.1, List.of(0.1)));
                }
            }
        }
        return report(entries.toArray(Entry[]::new));
    }

    /** What measurements, or those who name them, may come up with. */
    private static List<CompareReport> degenerate() {
        return List.of(
                bare(),
                bare(CURVE),
                bare(new Curve("none", List.of(), List.of()), CURVE, CURVE),
                new CompareReport(
                        HOSTILE,
                        HOSTILE,
                        HOSTILE,
                        false,
                        List.of(0.5),
                        List.of(new Entry(
                                new Subject(HOSTILE, 1, 1, 1, 1, List.of(1.0)),
                                HOSTILE,
                                HOSTILE,
                                1,
                                HOSTILE,
                                1,
                                List.of(0.25),
                                1,
                                1,
                                1,
                                1,
                                OptionalInt.empty())),
                        List.of(new Curve(HOSTILE, List.of(0.0, Double.NaN, 1.0), List.of(-3.0, 1.0, 1e308)))),
                ofRun(entry(new Subject(HOSTILE, 2, 2, 10, 2, List.of(1.0, 0.1)), "exact", "", 1, List.of(0.1, 0.2))),
                ofRun(entry(
                        new Subject("zero", 2, 3, Double.POSITIVE_INFINITY, 0, List.of(0.0, 0.0)),
                        "exact",
                        "",
                        1,
                        List.of())),
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

    private static CompareReport bare(Curve... curves) {
        return new CompareReport("", "", "", false, List.of(), List.of(), List.of(curves));
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
    void escapesTheNamesOfBlocks() {
        String html = ComparePage.html(degenerate().get(4));
        assertThat(html).doesNotContain("<script>alert", "\u0000");
        assertThat(labels(parse(html), "spectrum0")).contains(HARMLESS + ", 2×2singular value");
        assertThat(labels(parse(html), "direction0")).contains(HARMLESS + ", 2×2error");
    }

    @Test
    void tableHasEveryEntry() {
        CompareReport report = ordinary();
        Document document = page(report);
        assertThat(elements(document, "th", "text").stream()
                        .filter(head -> head.getAttribute("scope").equals("row"))
                        .map(Element::getTextContent))
                .containsExactlyElementsOf(report.entries().stream()
                        .map(entry -> entry.isExact() ? entry.method() : entry.method() + " " + entry.coefficients())
                        .toList());
        assertThat(texts(document, "th"))
                .contains(
                        "128×256, condition number 10, 128 of 128 directions above rounding",
                        "2048×4096, condition number 10⁶, 2048 of 2048 directions above rounding");
    }

    @Test
    void eachPlotHasItsLines() {
        Document document = page(ordinary());
        assertThat(lines(document, "time")).hasSize(4); // exact, until, and jordan in both forms
        assertThat(lines(document, "curves")).hasSize(1);
        assertThat(lines(document, "error0")).hasSize(2);
        assertThat(lines(document, "error2")).hasSize(2);
        assertThat(lines(document, "fixed0")).hasSize(16);
        assertThat(lines(document, "fixed2")).hasSize(16);
        assertThat(elements(document, "svg", "plot")).hasSize(8).allSatisfy(svg -> {
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
        Document document =
                page(report(entry(8, 8, 1, "", 1, 1e-6), entry(8, 8, 1e2, "", 1, 1e-4), entry(8, 8, 1e4, "", 1, 1e-2)));
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
        assertThat(lines(page(degenerate().get(1)), "curves")).hasSize(1);
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

    /** The fastest that reaches the error, whatever the others leave; and what five steps leave in less time. */
    @Test
    void timeToEqualErrorIsThatOfTheFastestWhichReachesIt() {
        Document document = page(report(
                entry(8, 8, 10, "", 3e-3, 1e-7),
                entry(8, 8, 10, "jordan", 1e-3, 0.3),
                entry(8, 8, 10, "polar-express-until:0.01@0.1", 2e-3, 5e-3),
                entry(8, 8, 10, "polar-express-until:1e-5@0.1", 4e-3, 2e-6),
                entry(9, 9, 10, "", 3e-3, 1e-7),
                entry(9, 9, 10, "polar-express-until:0.01@0.1", 1e-3, 0.02)));
        List<List<String>> rows = elements(document, "tr").stream()
                .map(Pages::cells)
                .filter(cells -> cells.getFirst().equals("0.01"))
                .toList();
        assertThat(rows)
                .containsExactly(
                        List.of(
                                "0.01",
                                "newton-schulz polar-express-until:0.01@0.1",
                                "5",
                                "2 ms",
                                "5.00e-03",
                                "3 ms",
                                "1.00e-07",
                                "1 ms",
                                "3.00e-01"),
                        List.of("0.01", "none", "", "", "", "3 ms", "1.00e-07", "", ""));
    }

    /** Errors of 0.1 to 1 have most of their axis, and powers of ten theirs. */
    @Test
    void whatConvergesAndWhatDoesNotHaveAxesOfTheirOwn() {
        Document document = page(ordinary());
        assertThat(labels(document, "fixed0")).contains("0", "0.05", "0.1", "0.15", "0.2", "0.25");
        assertThat(labels(document, "error0")).contains("10⁻⁷", "10⁻³");
        assertThat(labels(document, "curves")).contains("10⁻⁴", "1");
    }

    private static List<String> labels(Document document, String plot) {
        var texts = plot(document, plot).getElementsByTagName("text");
        return IntStream.range(0, texts.getLength())
                .mapToObj(i -> texts.item(i).getTextContent())
                .toList();
    }

    @Test
    void aRunShowsItsSingularValuesAndWhatIsDropped() {
        var subject = new Subject("dense of client 3", 4, 6, 1e20, 2, List.of(2.0, 1e-5, 1e-12, 2e-20));
        Document document = page(ofRun(
                new Entry(subject, "exact", "", 0, "path", 1, List.of(1e-8, 1e-7), 0.7, 1, 0, 1, OptionalInt.of(2)),
                entry(subject, "newton-schulz", "jordan", 1, List.of(0.3, 0.9)),
                entry(subject, "newton-schulz", "you", 1, List.of(0.2, 0.8))));
        assertThat(labels(document, "spectrum0"))
                .contains("dense of client 3, 4×6singular value", "direction: 2 kept, 2 dropped");
        assertThat(lines(document, "spectrum0")).hasSize(3); // the limit, kept and dropped
        assertThat(texts(document, "title")).contains("direction 4: 10⁻²⁰", "direction 1: 1");
        assertThat(lines(document, "direction0")).hasSize(2); // exact and jordan
        assertThat(texts(document, "title")).contains("newton-schulz jordan, singular value 5·10⁻⁶: error 0.9");
        assertThat(texts(document, "th"))
                .contains("dense of client 3, 4×6, condition number 10²⁰, 2 of 4 directions above rounding");
        assertThat(elements(document, "tr").stream()
                        .map(Pages::cells)
                        .filter(cells -> cells.getFirst().equals("exact"))
                        .findFirst()
                        .orElseThrow()
                        .subList(5, 8))
                .containsExactly("1.00e-07", "2", "2");
    }

    @Test
    void isTheSameInEveryLocale() {
        CompareReport run = degenerate().get(4);
        String expected = ComparePage.html(ordinary()) + ComparePage.html(run);
        Locale before = Locale.getDefault();
        try {
            Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
            assertThat(ComparePage.html(ordinary()) + ComparePage.html(run)).isEqualTo(expected);
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
        assertThat(curve.lowest()).containsExactly(1.0);
    }
}
