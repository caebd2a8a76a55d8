package org.fedcomuon.report;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.fedcomuon.chart.Look;
import org.fedcomuon.chart.Markup;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.chart.Plot;
import org.fedcomuon.chart.Scale;
import org.fedcomuon.experiment.CompareReport;
import org.fedcomuon.experiment.CompareReport.Curve;
import org.fedcomuon.experiment.CompareReport.Entry;
import org.fedcomuon.experiment.CompareReport.Subject;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.report.CompareSeries.Shape;

/** A {@link CompareReport} as a page: an explanation, plots, and a table of all measurements. */
public final class ComparePage {
    /** Two plots fill the width of a laptop's screen, one that of a phone, where the text is still legible. */
    private static final int LARGE_WIDTH = 440;

    private static final int LARGE_HEIGHT = 330;
    private static final int SMALL_WIDTH = 340;
    private static final int SMALL_HEIGHT = 290;
    /** The number of a line that is not in a legend. */
    private static final int NO_SERIES = -1;

    /** A line of more directions than twice as many leaves some out. */
    private static final int MOST_DIRECTIONS = 100;

    private static final Look KEPT = Look.of(0, false);
    private static final Look DROPPED = Look.of(1, false);

    private static final String ABOUT = """
            <section>
            <h2>What is compared</h2>
            <p>Orthogonalizing replaces a matrix <i>M</i> = <i>U</i> <i>Σ</i> <i>V</i><sup>T</sup> by
            <i>U</i> <i>V</i><sup>T</sup>: all singular values become 1. <b>exact</b> computes it from the eigenvectors of
            <i>M</i> <i>M</i><sup>T</sup> in double precision, <b>exact-svd</b> by a decomposition in single precision.
            <b>newton-schulz</b> only multiplies matrices: each step applies an odd polynomial to all singular values,
            with coefficients that are named after their origin, or as many as bring singular values from a lower bound
            on so near to 1 as is wanted (<b>polar-express-until</b>). <b>gram</b> takes the same steps on the smaller
            <i>M</i> <i>M</i><sup>T</sup>. What comes out is <i>O</i>, and may be judged by:</p>
            <dl>
            <dt>Error max<sub><i>i</i></sub> ‖<i>u</i><sub><i>i</i></sub><sup>T</sup><i>O</i> −
            <i>v</i><sub><i>i</i></sub><sup>T</sup>‖</dt>
            <dd>How far <i>O</i> is from <i>U</i> <i>V</i><sup>T</sup> in its worst direction, with <i>U</i>,
            <i>Σ</i> and <i>V</i> of the very floats of <i>M</i>, computed in double precision. A direction counts if
            its singular value is above 10<sup>−7</sup> of the largest; rounding of floats hides the others.</dd>
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
    private final CompareSeries series;

    private ComparePage(CompareReport report) {
        this.report = report;
        series = new CompareSeries(report);
    }

    /** Returns the page as one HTML document without external references. */
    public static String html(CompareReport report) {
        return Html.document(report.title(), new ComparePage(report).body());
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
        var tables = new CompareTables(report, series);
        String errors = report.ofRun() ? spectra() + directions() : errors() + fixedSteps();
        return header + ABOUT + "<div class=\"pair\">\n" + time() + curves + "</div>\n" + errors + tables.equalErrors()
                + tables.all();
    }

    /** Whether a method is to converge on every matrix. */
    private static boolean isCompared(Entry entry) {
        return converges(entry) || isJordan(entry);
    }

    private static boolean converges(Entry entry) {
        return entry.isExact() || !entry.set().equals(entry.coefficients());
    }

    private static boolean isJordan(Entry entry) {
        return entry.coefficients().equals("jordan");
    }

    /** Relative times, because those of iterations with as many steps differ by less than any two shapes. */
    private String time() {
        Map<Shape, Subject> subjects = new TreeMap<>(); // that with the largest condition number of each shape
        series.subjects().stream()
                .sorted(Comparator.comparingDouble(Subject::condition).reversed())
                .forEach(one -> subjects.putIfAbsent(Shape.of(one), one));
        List<Plot.Line> lines =
                series.lines(List.copyOf(subjects.values()), ComparePage::isCompared, this::relativeTime);
        List<Scale.Tick> shapes = subjects.keySet().stream()
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
                new Plot.Axis(
                        "time, relative to five steps",
                        Scale.logarithmic(Plot.values(lines, Plot.Point::y), Numbers::brief)),
                lines);
        List<Double> conditions =
                subjects.values().stream().map(Subject::condition).distinct().toList();
        String at = conditions.size() == 1
                ? "Condition number " + Numbers.brief(conditions.getFirst())
                : "Each shape at its largest condition number";
        var figure = new Figure(
                "Time",
                at + ", relative to five jordan steps in the form that is faster; other sets take as long for as many"
                        + " steps. A shape is placed at the side of the square matrix that takes as many"
                        + " multiplications; lower is faster. Of several paths the fastest is drawn.",
                series.keys(ComparePage::isCompared),
                List.of(plot),
                "one");
        return figure.html();
    }

    private Stream<Plot.Point> relativeTime(Entry entry) {
        Shape shape = Shape.of(entry.subject());
        return report.fiveSteps(entry.subject()).stream()
                .map(five -> new Plot.Point(
                        shape.side(),
                        entry.seconds() / five.seconds(),
                        "%s, %s: %s".formatted(entry.label(), shape.label(), Numbers.time(entry.seconds()))));
    }

    /** The ways that converge, on a logarithmic axis: their errors differ by powers of ten. */
    private String errors() {
        List<Double> errors = report.entries().stream()
                .filter(ComparePage::converges)
                .map(Entry::error)
                .toList();
        return byCondition(
                "Error of the ways that converge",
                "The largest error of a direction. One plot for each shape, all with the same axes; lower is better.",
                ComparePage::converges,
                Entry::error,
                new Plot.Axis("error", Scale.logarithmic(errors, Numbers::brief)));
    }

    /** The others on a linear axis: on a logarithmic one they would all be at its upper end. */
    private String fixedSteps() {
        Predicate<Entry> shown = entry -> !converges(entry);
        List<Double> errors = report.entries().stream()
                .filter(shown)
                .map(Entry::orthogonalityError)
                .toList();
        return byCondition(
                "Orthogonality error of a fixed number of steps",
                "The mean over all directions, because the worst of them stays at almost 1 for large condition numbers."
                        + " One plot for each shape, all with the same axes; lower is better.",
                shown,
                Entry::orthogonalityError,
                new Plot.Axis("orthogonality error", Scale.linear(errors)));
    }

    private String byCondition(
            String heading, String caption, Predicate<Entry> shown, ToDoubleFunction<Entry> error, Plot.Axis y) {
        List<Double> conditions =
                series.subjects().stream().map(Subject::condition).toList();
        // the same axes for all shapes, so that they compare
        var x = new Plot.Axis("condition number", Scale.logarithmic(conditions, Numbers::brief));
        String id = y.scale().logarithmic() ? "error" : "fixed";
        var plots = new ArrayList<Plot>();
        for (Shape shape : series.subjects().stream().map(Shape::of).distinct().toList()) {
            plots.add(new Plot(
                    id + plots.size(),
                    shape.label(),
                    heading + ", " + shape.label(),
                    "One line per method, one value per condition number, on a logarithmic axis. The table below has"
                            + " the numbers.",
                    SMALL_WIDTH,
                    SMALL_HEIGHT,
                    x,
                    y,
                    series.lines(
                            series.subjects().stream()
                                    .filter(one -> Shape.of(one).equals(shape))
                                    .toList(),
                            shown,
                            entry -> Stream.of(new Plot.Point(
                                    entry.subject().condition(),
                                    error.applyAsDouble(entry),
                                    "%s, condition number %s: %s"
                                            .formatted(
                                                    entry.label(),
                                                    Numbers.brief(
                                                            entry.subject().condition()),
                                                    Numbers.brief(error.applyAsDouble(entry))))))));
        }
        return plots.stream().allMatch(plot -> plot.lines().isEmpty())
                ? ""
                : new Figure(heading, caption, series.keys(shown), plots, "many").html();
    }

    /** What the momentum of a run looks like, and how much of it the exact factor keeps. */
    private String spectra() {
        var plots = new ArrayList<Plot>();
        for (Subject subject : series.subjects()) {
            List<Double> relative = relative(subject);
            int kept = report.exact(subject)
                    .map(Entry::kept)
                    .orElse(OptionalInt.empty())
                    .orElse(subject.directions());
            var limit = List.of(
                    new Plot.Point(1, Exact.TOLERANCE, ""), new Plot.Point(relative.size(), Exact.TOLERANCE, ""));
            List<Plot.Line> lines = List.of(
                    new Plot.Line(NO_SERIES, Look.GUIDE, limit),
                    new Plot.Line(0, KEPT, singularValues(relative, 0, kept)),
                    new Plot.Line(1, DROPPED, singularValues(relative, kept, relative.size())));
            plots.add(new Plot(
                    "spectrum" + plots.size(),
                    name(subject),
                    "Singular values of " + name(subject),
                    "Singular values relative to the largest, on a logarithmic axis, from the largest to the smallest."
                            + " The exact factor keeps %s of %s directions.".formatted(kept, relative.size()),
                    SMALL_WIDTH,
                    SMALL_HEIGHT,
                    new Plot.Axis(
                            "direction: %s kept, %s dropped".formatted(kept, relative.size() - kept),
                            Scale.linear(List.of((double) relative.size()))),
                    new Plot.Axis(
                            "singular value", Scale.logarithmic(Plot.values(lines, Plot.Point::y), Numbers::brief)),
                    lines));
        }
        var figure = new Figure(
                "Singular values of the momentum",
                "Relative to the largest of each matrix. Below the dotted line, at 10⁻⁷, a direction cannot be told from"
                        + " the rounding of floats: the exact factor drops it, and an iteration turns rounding into a"
                        + " part of the step.",
                List.of(new Figure.Key(0, "kept by exact", KEPT), new Figure.Key(1, "dropped", DROPPED)),
                plots,
                "many");
        return figure.html();
    }

    private static List<Plot.Point> singularValues(List<Double> relative, int from, int to) {
        return IntStream.range(from, to)
                .mapToObj(i -> new Plot.Point(
                        i + 1, relative.get(i), "direction %s: %s".formatted(i + 1, Numbers.brief(relative.get(i)))))
                .toList();
    }

    private static List<Double> relative(Subject subject) {
        double largest = subject.singularValues().stream().reduce(0.0, Math::max);
        return subject.singularValues().stream().map(s -> s / largest).toList();
    }

    private static String name(Subject subject) {
        return "%s, %s".formatted(subject.name(), Shape.of(subject).label());
    }

    /** How far each way is off in each direction of the momentum of a run. */
    private String directions() {
        var plots = new ArrayList<Plot>();
        for (Subject subject : series.subjects()) {
            List<Double> relative = relative(subject);
            List<Plot.Line> lines = series.lines(List.of(subject), ComparePage::isCompared, entry -> {
                int every = Math.max(1, entry.errors().size() / MOST_DIRECTIONS);
                return IntStream.range(0, entry.errors().size())
                        .filter(i -> i % every == 0)
                        .mapToObj(i -> new Plot.Point(
                                relative.get(i),
                                entry.errors().get(i),
                                "%s, singular value %s: error %s"
                                        .formatted(
                                                entry.label(),
                                                Numbers.brief(relative.get(i)),
                                                Numbers.brief(entry.errors().get(i)))));
            });
            plots.add(new Plot(
                    "direction" + plots.size(),
                    name(subject),
                    "Error of each direction of " + name(subject),
                    "Logarithmic axes, one line per method: the error of a direction against its singular value.",
                    SMALL_WIDTH,
                    SMALL_HEIGHT,
                    new Plot.Axis(
                            "singular value", Scale.logarithmic(Plot.values(lines, Plot.Point::x), Numbers::brief)),
                    new Plot.Axis("error", Scale.logarithmic(Plot.values(lines, Plot.Point::y), Numbers::brief)),
                    lines));
        }
        var figure = new Figure(
                "Error of each direction",
                "Against its singular value, relative to the largest of the matrix; lower is better. Rounding in single"
                        + " precision turns a direction by more, the smaller its singular value is.",
                series.keys(ComparePage::isCompared),
                plots,
                "many");
        return figure.html();
    }

    /**
     * The error over all singular values from the lowest on: what a single singular value becomes goes up and down, and
     * the lines would cover each other.
     */
    private String curves() {
        var lines = new ArrayList<Plot.Line>();
        var keys = new ArrayList<Figure.Key>();
        for (Curve curve : report.curves()) {
            Look look = series.look(curve);
            var points = new ArrayList<Plot.Point>();
            for (int i = 0; i < curve.lowest().size(); i++) {
                double lowest = curve.lowest().get(i);
                double error = curve.errors().get(i);
                String text = "%s: from %s to 1, an error of %s"
                        .formatted(curve.coefficients(), Numbers.brief(lowest), Numbers.brief(error));
                points.add(new Plot.Point(lowest, error, text));
            }
            lines.add(new Plot.Line(keys.size(), look, points));
            keys.add(new Figure.Key(keys.size(), curve.coefficients(), look));
        }
        var plot = new Plot(
                "curves",
                "",
                "Error of all steps against the lowest singular value",
                "One line per set of coefficients: the largest distance from 1 of what singular values from the lowest"
                        + " to 1 become, against the lowest on a logarithmic axis.",
                LARGE_WIDTH,
                LARGE_HEIGHT,
                new Plot.Axis(
                        "lowest singular value", Scale.logarithmic(Plot.values(lines, Plot.Point::x), Numbers::brief)),
                new Plot.Axis("error", Scale.linear(Plot.values(lines, Plot.Point::y))),
                lines);
        var figure = new Figure(
                "Singular values",
                "How far from 1 all steps together leave the worst of the singular values from the lowest to 1, in exact"
                        + " arithmetic. The further left a line is low, the larger a condition number the set copes"
                        + " with.",
                keys,
                List.of(plot),
                "one");
        return figure.html();
    }
}
