package org.fedcomuon.report;

import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.toList;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.stream.Stream;
import org.fedcomuon.chart.Look;
import org.fedcomuon.chart.Markup;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.chart.Plot;
import org.fedcomuon.chart.Scale;
import org.fedcomuon.experiment.CompareReport;
import org.fedcomuon.experiment.CompareReport.Curve;
import org.fedcomuon.experiment.CompareReport.Entry;

/** A {@link CompareReport} as a page: an explanation, plots, and a table of all measurements. */
public final class ComparePage {
    /** Two plots fill the width of a laptop's screen, one that of a phone, where the text is still legible. */
    private static final int LARGE_WIDTH = 440;

    private static final int LARGE_HEIGHT = 330;
    private static final int SMALL_WIDTH = 340;
    private static final int SMALL_HEIGHT = 290;
    /** The number of a line that is not in a legend. */
    private static final int NO_SERIES = -1;

    private static final String ABOUT = """
            <section>
            <h2>What is compared</h2>
            <p>Orthogonalizing replaces a matrix <i>M</i> = <i>U</i> <i>Σ</i> <i>V</i><sup>T</sup> by
            <i>U</i> <i>V</i><sup>T</sup>: all singular values become 1. <b>exact</b> computes the decomposition.
            <b>newton-schulz</b> only multiplies matrices: each step applies an odd polynomial to all singular values,
            with coefficients that are named after their origin. <b>gram</b> takes the same steps on the smaller
            <i>M</i> <i>M</i><sup>T</sup>. What comes out is <i>O</i>, and may be judged by:</p>
            <dl>
            <dt>Orthogonality error ‖<i>O</i> <i>O</i><sup>T</sup> − <i>I</i>‖<sub>F</sub> / √<i>r</i></dt>
            <dd>How far the singular values of <i>O</i> are from 1, with <i>r</i> the shorter side (and
            <i>O</i><sup>T</sup><i>O</i> for a tall matrix). 0 is perfect, rounding aside; Muon's usual coefficients
            leave 0.3 at best; 1 means that most singular values are still almost 0.</dd>
            <dt>Alignment ⟨<i>M</i>, <i>O</i>⟩ / ‖<i>M</i>‖<sub>∗</sub></dt>
            <dd>How much of the steepest step <i>O</i> is. <i>U</i> <i>V</i><sup>T</sup> has 1, the most that a matrix
            without singular values above 1 can have. Below 1, directions of <i>M</i> are damped; above, amplified.</dd>
            <dt>Condition number</dt>
            <dd>The largest singular value of <i>M</i> over its smallest. The larger it is, the more steps it takes to
            bring the smallest up to 1.</dd>
            </dl>
            </section>
            """;

    private final CompareReport report;
    private final TreeMap<Case, List<Entry>> cases;
    /** In the order of the entries, which is also that of the legends. */
    private final Map<String, Look> looks = new LinkedHashMap<>();

    private final List<String> coefficients;

    private ComparePage(CompareReport report) {
        this.report = report;
        cases = report.entries().stream().collect(groupingBy(Case::of, TreeMap::new, toList()));
        coefficients = Stream.concat(
                        report.entries().stream().map(Entry::coefficients).filter(name -> !name.isEmpty()),
                        report.curves().stream().map(Curve::coefficients))
                .distinct()
                .toList();
        for (Entry entry : report.entries()) {
            looks.put(entry.label(), look(entry));
        }
    }

    /** Returns the page as one HTML document without external references. */
    public static String html(CompareReport report) {
        return Html.document(report.title(), new ComparePage(report).body());
    }

    private Look look(Entry entry) {
        return entry.coefficients().isEmpty()
                ? Look.EXACT
                : Look.of(
                        coefficients.indexOf(entry.coefficients()),
                        !entry.method().equals("newton-schulz"));
    }

    /** A shape of matrices; shapes are ordered by the number of multiplications. */
    private record Shape(int rows, int cols) implements Comparable<Shape> {
        private static final Comparator<Shape> ORDER = Comparator.comparingDouble(Shape::side)
                .thenComparingInt(Shape::rows)
                .thenComparingInt(Shape::cols);

        /** Returns the side of the square matrix that takes as many multiplications. */
        double side() {
            return Math.cbrt((double) rows * cols * Math.min(rows, cols));
        }

        String label() {
            return rows + "×" + cols;
        }

        @Override
        public int compareTo(Shape other) {
            return ORDER.compare(this, other);
        }
    }

    /** The shape and condition number of a group of entries. */
    private record Case(Shape shape, double condition) implements Comparable<Case> {
        private static final Comparator<Case> ORDER =
                Comparator.comparing(Case::shape).thenComparingDouble(Case::condition);

        static Case of(Entry entry) {
            return new Case(new Shape(entry.rows(), entry.cols()), entry.condition());
        }

        @Override
        public int compareTo(Case other) {
            return ORDER.compare(this, other);
        }
    }

    private String body() {
        String header = """
                <header>
                <h1>%s</h1>
                <p class="facts">%s · %s</p>
                </header>
                """.formatted(
                        Markup.escape(report.title()), Markup.escape(report.device()), Markup.escape(report.library()));
        String curves = report.curves().isEmpty() ? "" : curves();
        if (report.entries().isEmpty()) {
            return header + "<p><strong>Nothing was measured.</strong></p>\n" + ABOUT + curves;
        }
        return header + ABOUT + "<div class=\"pair\">\n" + time() + curves + "</div>\n" + errors() + table();
    }

    private String time() {
        Map<Shape, Double> conditions = new TreeMap<>(); // the smallest of each shape
        cases.keySet().forEach(one -> conditions.putIfAbsent(one.shape, one.condition));
        List<Plot.Line> lines = lines(
                conditions.entrySet().stream()
                        .map(one -> new Case(one.getKey(), one.getValue()))
                        .toList(),
                entry -> Case.of(entry).shape.side(),
                Entry::seconds,
                entry -> Case.of(entry).shape.label() + ": " + Numbers.time(entry.seconds()));
        List<Scale.Tick> shapes = conditions.keySet().stream()
                .map(shape -> new Scale.Tick(shape.side(), shape.label()))
                .toList();
        var plot = new Plot(
                "time",
                "",
                "Time against size",
                "Logarithmic axes, one line per method, one value per shape. The table below has the numbers.",
                LARGE_WIDTH,
                LARGE_HEIGHT,
                new Plot.Axis("shape, by work", Scale.logarithmic(Plot.values(lines, Plot.Point::x), shapes)),
                new Plot.Axis("time of a call", Scale.logarithmic(Plot.values(lines, Plot.Point::y), Numbers::time)),
                lines);
        String at = conditions.values().stream().distinct().count() == 1
                ? "Condition number " + Numbers.brief(cases.firstKey().condition)
                : "Each shape at its smallest condition number";
        var figure = new Figure(
                "Time",
                at + ". A shape is placed at the side of the square matrix that takes as many multiplications; lower is"
                        + " faster. Of several paths the fastest is drawn.",
                keys(),
                List.of(plot),
                "one");
        return figure.html();
    }

    private String errors() {
        List<Double> conditions = cases.keySet().stream().map(Case::condition).toList();
        List<Double> errors =
                report.entries().stream().map(Entry::orthogonalityError).toList();
        // the same axes for all shapes, so that they compare
        var x = new Plot.Axis("condition number", Scale.logarithmic(conditions, Numbers::brief));
        var y = new Plot.Axis("orthogonality error", Scale.logarithmic(errors, Numbers::brief));
        var plots = new ArrayList<Plot>();
        for (Shape shape : cases.keySet().stream().map(Case::shape).distinct().toList()) {
            plots.add(new Plot(
                    "error" + plots.size(),
                    shape.label(),
                    "Orthogonality error against condition number, " + shape.label(),
                    "Logarithmic axes, one line per method, one value per condition number. The table below has the numbers.",
                    SMALL_WIDTH,
                    SMALL_HEIGHT,
                    x,
                    y,
                    lines(
                            cases.keySet().stream()
                                    .filter(one -> one.shape.equals(shape))
                                    .toList(),
                            Entry::condition,
                            Entry::orthogonalityError,
                            entry -> "condition number " + Numbers.brief(entry.condition()) + ": error "
                                    + Numbers.brief(entry.orthogonalityError()))));
        }
        var figure = new Figure(
                "Orthogonality error",
                "One plot for each shape, all with the same axes; lower is better.",
                keys(),
                plots,
                "many");
        return figure.html();
    }

    private String curves() {
        var lines = new ArrayList<Plot.Line>();
        var keys = new ArrayList<Figure.Key>();
        List<Double> inputs = report.curves().stream()
                .flatMap(curve -> curve.input().stream())
                .toList();
        List<Double> outputs = Stream.concat(
                        report.curves().stream().flatMap(curve -> curve.output().stream()), Stream.of(1.0))
                .toList();
        List<Double> drawn = inputs.stream().filter(Scale::drawable).toList();
        if (!drawn.isEmpty()) {
            var from = new Plot.Point(Collections.min(drawn), 1, "");
            var to = new Plot.Point(Collections.max(drawn), 1, "");
            lines.add(new Plot.Line(NO_SERIES, Look.GUIDE, List.of(from, to)));
        }
        for (Curve curve : report.curves()) {
            Look look = Look.of(coefficients.indexOf(curve.coefficients()), false);
            var points = new ArrayList<Plot.Point>();
            for (int i = 0; i < curve.input().size(); i++) {
                double in = curve.input().get(i);
                double out = curve.output().get(i);
                String text = curve.coefficients() + ": " + Numbers.brief(in) + " becomes " + Numbers.brief(out);
                points.add(new Plot.Point(in, out, text));
            }
            lines.add(new Plot.Line(keys.size(), look, points));
            keys.add(new Figure.Key(keys.size(), curve.coefficients(), look));
        }
        var plot = new Plot(
                "curves",
                "",
                "Singular values after the iteration",
                "One line per set of coefficients: singular values after the iteration against those before it, on a logarithmic axis.",
                LARGE_WIDTH,
                LARGE_HEIGHT,
                new Plot.Axis("singular value before", Scale.logarithmic(inputs, Numbers::brief)),
                new Plot.Axis("singular value after", Scale.linear(outputs)),
                lines);
        var figure = new Figure(
                "Singular values",
                "What all steps together make of a singular value, by set of coefficients. The exact path gives 1"
                        + " everywhere; the further left a curve reaches it, the larger a condition number it copes"
                        + " with.",
                keys,
                List.of(plot),
                "one");
        return figure.html();
    }

    /** Returns a line for each method that has entries in these cases. */
    private List<Plot.Line> lines(
            List<Case> which, ToDoubleFunction<Entry> x, ToDoubleFunction<Entry> y, Function<Entry, String> text) {
        var lines = new ArrayList<Plot.Line>();
        int series = 0;
        for (String label : looks.keySet()) {
            List<Plot.Point> points = which.stream()
                    .flatMap(one -> cases.get(one).stream()
                            .filter(entry -> entry.label().equals(label))
                            .min(Comparator.comparingDouble(Entry::seconds))
                            .stream())
                    .map(entry -> new Plot.Point(
                            x.applyAsDouble(entry), y.applyAsDouble(entry), label + ", " + text.apply(entry)))
                    .toList();
            if (!points.isEmpty()) {
                lines.add(new Plot.Line(series, looks.get(label), points));
            }
            series++;
        }
        return lines;
    }

    private List<Figure.Key> keys() {
        var keys = new ArrayList<Figure.Key>();
        looks.forEach((label, look) -> keys.add(new Figure.Key(keys.size(), label, look)));
        return keys;
    }

    private String table() {
        var html = new StringBuilder("""
                <section>
                <h2>All measurements</h2>
                <p>★ marks the shortest time and the smallest error of each shape and condition number.</p>
                <div class="scroll" role="region" aria-label="All measurements" tabindex="0">
                <table>
                <thead>
                <tr><th class="text" scope="col">method</th><th class="text" scope="col">path</th>
                <th scope="col">time</th><th scope="col">speedup over exact</th>
                <th scope="col">orthogonality error</th><th scope="col">alignment</th>
                <th scope="col">smallest singular value</th><th scope="col">largest singular value</th></tr>
                </thead>
                """);
        cases.forEach((one, entries) -> {
            html.append("<tbody>\n<tr class=\"group\"><th colspan=\"8\" scope=\"rowgroup\"><span>")
                    .append("%s, condition number %s".formatted(one.shape.label(), Numbers.brief(one.condition)))
                    .append("</span></th></tr>\n");
            entries.forEach(entry -> html.append(row(entry, entries)));
            html.append("</tbody>\n");
        });
        return html.append("</table>\n</div>\n</section>\n").toString();
    }

    private static String row(Entry entry, List<Entry> group) {
        double shortest = least(group, Entry::seconds);
        double shortestSeen =
                least(group.stream().filter(one -> one.seconds() > 0).toList(), Entry::seconds);
        double exact =
                least(group.stream().filter(one -> one.method().equals("exact")).toList(), Entry::seconds);
        // a single entry would be the best in every column
        boolean marks = group.size() > 1;
        return "<tr><th class=\"text\" scope=\"row\">%s</th><td class=\"text\">%s</td>%s%s%s%s%s%s</tr>\n"
                .formatted(
                        Markup.escape(entry.label()),
                        Markup.escape(entry.path()),
                        cell(Numbers.timeLike(entry.seconds(), shortestSeen), marks && entry.seconds() == shortest),
                        cell(Numbers.ratio(exact / entry.seconds()), false),
                        cell(
                                Numbers.scientific(entry.orthogonalityError()),
                                marks && entry.orthogonalityError() == least(group, Entry::orthogonalityError)),
                        cell(Numbers.nearOne(entry.alignment()), false),
                        cell(Numbers.nearOne(entry.smallestSingularValue()), false),
                        cell(Numbers.nearOne(entry.largestSingularValue()), false));
    }

    /** Returns the least value, or NaN if there is none. */
    private static double least(List<Entry> entries, ToDoubleFunction<Entry> of) {
        return entries.stream()
                .mapToDouble(of)
                .filter(value -> !Double.isNaN(value))
                .min()
                .orElse(Double.NaN);
    }

    private static String cell(String text, boolean best) {
        return (best ? "<td class=\"best\">" : "<td>") + text + "</td>";
    }
}
