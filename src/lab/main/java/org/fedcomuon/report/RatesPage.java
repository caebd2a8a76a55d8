package org.fedcomuon.report;

import static java.util.stream.Collectors.joining;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.fedcomuon.chart.Look;
import org.fedcomuon.chart.Markup;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.chart.Plot;
import org.fedcomuon.chart.Scale;
import org.fedcomuon.experiment.RatesReport;
import org.fedcomuon.experiment.RatesReport.Curve;
import org.fedcomuon.experiment.RatesReport.Run;

/** A {@link RatesReport} as a page: what was measured, the slopes compared with the theory, and all numbers. */
public final class RatesPage {
    private static final String TITLE = "Rates of convergence";
    /** Fits the width of a phone, where the text is still legible. */
    private static final int WIDTH = 440;

    private static final int HEIGHT = 330;

    private static final String ABOUT = """
            <p>Measured is the mean, over all steps of a run of <i>T</i> steps, of the gradient norm
            ‖∇<i>F</i>(<i>W</i>)‖<sub>F</sub> at the clients’ average <i>W</i>, with the parameters that the theory
            sets for this <i>T</i>, on a small synthetic problem whose gradient is known in closed form.</p>
            """;

    private static final String SLOPES = """
            <p>The slope is that of the least-squares line through log <i>T</i> and the logarithm of the mean over
            seeds. It agrees if it lies in the range, which has the theory’s exponent inside. The theorems are bounds
            from above: a slope steeper than its range breaks none of them, but is not their rate either.</p>
            """;

    private final List<Curve> curves;
    private final int clients;
    private final boolean quick;

    private RatesPage(RatesReport report, boolean quick) {
        curves = report.curves();
        clients = report.clients();
        this.quick = quick;
    }

    /** Returns the page as one HTML document without external references. */
    public static String html(RatesReport report) {
        return Html.document(TITLE, new RatesPage(report, false).body());
    }

    /** Returns the page of runs that are too short for a conclusion, with a remark that they are. */
    public static String quickHtml(RatesReport report) {
        return Html.document(TITLE, new RatesPage(report, true).body());
    }

    private String body() {
        String header = "<header>\n<h1>%s</h1>\n<p class=\"facts\">%s</p>\n</header>\n".formatted(TITLE, facts());
        if (lengths().isEmpty()) {
            return header + "<p><strong>Nothing was measured.</strong></p>\n" + ABOUT;
        }
        return header + ABOUT + conclusion() + plot() + slopes() + values();
    }

    private String facts() {
        var facts = new ArrayList<String>();
        facts.add(count(clients, "client"));
        List<Long> lengths = lengths();
        if (!lengths.isEmpty()) {
            facts.add("<i>T</i> from %s to %s".formatted(lengths.getFirst(), lengths.getLast()));
            facts.add(runs().map(run -> run.norms().size())
                    .distinct()
                    .sorted()
                    .map(seeds -> count(seeds, "seed"))
                    .collect(joining(" or ")));
        }
        return String.join(" · ", facts);
    }

    private String conclusion() {
        if (!quick) {
            return "<p><strong>%s</strong></p>\n".formatted(verdict());
        }
        return """
                <p><strong>A quick run: the range of <i>T</i> is too short for a conclusion.</strong>
                For what it is worth: %s</p>
                """.formatted(verdict());
    }

    private String verdict() {
        List<Curve> others = curves.stream().filter(curve -> !curve.agrees()).toList();
        if (others.isEmpty()) {
            return curves.size() == 1
                    ? "The slope agrees with the theory."
                    : "All %s slopes agree with the theory.".formatted(curves.size());
        }
        return "%s of %s %s not agree with the theory: %s."
                .formatted(
                        others.size(),
                        count(curves.size(), "slope"),
                        others.size() == 1 ? "does" : "do",
                        others.stream()
                                .map(RatesPage::label)
                                .map(Markup::escape)
                                .collect(joining("; ")));
    }

    private String plot() {
        var lines = new ArrayList<Plot.Line>();
        var keys = new ArrayList<Figure.Key>();
        int guides = curves.size();
        for (int i = 0; i < curves.size(); i++) {
            Curve curve = curves.get(i);
            Look look = look(curve);
            lines.add(new Plot.Line(guides, look.guide(), guide(curve)));
            lines.add(new Plot.Line(i, look.scattered(), seeds(curve)));
            lines.add(new Plot.Line(i, look, means(curve)));
            keys.add(new Figure.Key(i, label(curve), look));
        }
        keys.add(new Figure.Key(guides, "slope of the theory", Look.GUIDE));
        List<Scale.Tick> ticks = lengths().stream()
                .map(length -> new Scale.Tick(length, length.toString()))
                .toList();
        var plot = new Plot(
                "rates",
                "",
                "Mean gradient norm against T",
                "Logarithmic axes, one line per method and orthogonalizer, one value per length of run. The tables below have"
                        + " the numbers.",
                WIDTH,
                HEIGHT,
                new Plot.Axis("T, steps of a run", Scale.logarithmic(Plot.values(lines, Plot.Point::x), ticks)),
                new Plot.Axis(
                        "mean gradient norm", Scale.logarithmic(Plot.values(lines, Plot.Point::y), Numbers::brief)),
                lines);
        var figure = new Figure(
                "Gradient norm",
                "Large marks are means over seeds, small marks are single seeds. Both axes are logarithmic, so that a"
                        + " power of <i>T</i> is a straight line. A dotted line starts at the first mean of a method"
                        + " and has the slope of the theory.",
                keys,
                List.of(plot),
                "one");
        return figure.html();
    }

    /** Returns the look of a curve: colour and mark depend on the method; of two orthogonalizers, one is dashed. */
    private Look look(Curve curve) {
        List<String> methods = curves.stream().map(Curve::method).distinct().toList();
        int how = curves.stream().map(Curve::orthogonalizer).distinct().toList().indexOf(curve.orthogonalizer());
        return Look.of(methods.indexOf(curve.method()) + how / 2 * methods.size(), how % 2 == 1);
    }

    private static List<Plot.Point> means(Curve curve) {
        return ordered(curve)
                .map(run -> new Plot.Point(
                        run.iterations(),
                        run.mean(),
                        "%s, T = %s: mean %s".formatted(label(curve), run.iterations(), Numbers.nearOne(run.mean()))))
                .toList();
    }

    private static List<Plot.Point> seeds(Curve curve) {
        var points = new ArrayList<Plot.Point>();
        ordered(curve).forEach(run -> {
            for (int seed = 0; seed < run.norms().size(); seed++) {
                double norm = run.norms().get(seed);
                String text = "%s, T = %s, seed %s: %s"
                        .formatted(label(curve), run.iterations(), seed, Numbers.nearOne(norm));
                points.add(new Plot.Point(run.iterations(), norm, text));
            }
        });
        return points;
    }

    /** Returns the line of the theory through the first mean; empty if there is none. */
    private static List<Plot.Point> guide(Curve curve) {
        List<Run> known = ordered(curve)
                .filter(run -> run.iterations() > 0 && run.mean() > 0 && Scale.drawable(run.mean()))
                .toList();
        if (known.isEmpty()) {
            return List.of();
        }
        Run first = known.getFirst();
        return Stream.of(first, known.getLast())
                .map(run -> {
                    double times = (double) run.iterations() / first.iterations();
                    return new Plot.Point(run.iterations(), first.mean() * Math.pow(times, curve.theory()), "");
                })
                .toList();
    }

    private String slopes() {
        var html = new StringBuilder("<section>\n<h2>Slopes</h2>\n" + SLOPES + """
                <div class="scroll" role="region" aria-label="Slopes" tabindex="0">
                <table class="compact">
                <thead>
                <tr><th class="text" scope="col">method</th><th class="text" scope="col">orthogonal<wbr/>izer</th>
                <th scope="col">slope</th><th scope="col">theory</th><th scope="col">range</th>
                <th class="text" scope="col">verdict</th></tr>
                </thead>
                <tbody>
                """);
        for (Curve curve : curves) {
            html.append("<tr><th class=\"text\" scope=\"row\">%s</th><td class=\"text\">%s</td>"
                    .formatted(Markup.escape(curve.method()), Markup.escape(curve.orthogonalizer())));
            html.append("<td>%s</td><td>%s</td><td>%s to %s</td>%s</tr>\n"
                    .formatted(
                            Numbers.fixed(curve.slope(), 3),
                            Numbers.fixed(curve.theory(), 3),
                            Numbers.fixed(curve.least(), 2),
                            Numbers.fixed(curve.greatest(), 2),
                            verdict(curve)));
        }
        return html.append("</tbody>\n</table>\n</div>\n</section>\n").toString();
    }

    private static String verdict(Curve curve) {
        if (Double.isNaN(curve.slope())) {
            return "<td class=\"text differs\">has no slope</td>";
        }
        return curve.agrees()
                ? "<td class=\"text agrees\">agrees</td>"
                : "<td class=\"text differs\">does not agree</td>";
    }

    private String values() {
        var html = new StringBuilder("""
                <section>
                <h2>Gradient norms</h2>
                <p>Means over seeds; below, where there are several, the least and the greatest.</p>
                <div class="scroll" role="region" aria-label="Gradient norms" tabindex="0">
                <table>
                <thead>
                <tr><th scope="col"><i>T</i></th>""");
        for (Curve curve : curves) {
            html.append("<th scope=\"col\">%s <small>%s</small></th>"
                    .formatted(Markup.escape(curve.method()), Markup.escape(curve.orthogonalizer())));
        }
        html.append("</tr>\n</thead>\n<tbody>\n");
        for (long length : lengths()) {
            html.append("<tr><th scope=\"row\">").append(length).append("</th>");
            for (Curve curve : curves) {
                html.append("<td>");
                curve.runs().stream().filter(run -> run.iterations() == length).forEach(run -> html.append(value(run)));
                html.append("</td>");
            }
            html.append("</tr>\n");
        }
        return html.append("</tbody>\n</table>\n</div>\n</section>\n").toString();
    }

    private static String value(Run run) {
        String mean = Numbers.nearOne(run.mean());
        if (run.norms().size() < 2) {
            return mean;
        }
        return mean
                + "<small>%s to %s</small>"
                        .formatted(
                                Numbers.nearOne(Collections.min(run.norms())),
                                Numbers.nearOne(Collections.max(run.norms())));
    }

    private static String label(Curve curve) {
        return curve.method() + ", " + curve.orthogonalizer();
    }

    /** Returns all values of T in ascending order. */
    private List<Long> lengths() {
        return runs().map(Run::iterations).distinct().sorted().toList();
    }

    private Stream<Run> runs() {
        return curves.stream().flatMap(curve -> curve.runs().stream());
    }

    private static Stream<Run> ordered(Curve curve) {
        return curve.runs().stream().sorted(Comparator.comparingLong(Run::iterations));
    }

    private static String count(int number, String what) {
        return number + " " + what + (number == 1 ? "" : "s");
    }
}
