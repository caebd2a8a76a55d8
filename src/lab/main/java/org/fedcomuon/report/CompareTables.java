package org.fedcomuon.report;

import java.util.List;
import java.util.Optional;
import java.util.function.ToDoubleFunction;
import org.fedcomuon.chart.Markup;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.experiment.CompareReport;
import org.fedcomuon.experiment.CompareReport.Entry;
import org.fedcomuon.experiment.CompareReport.Subject;

/** The tables of a comparison: time to equal error, and all measurements. */
final class CompareTables {
    private static final String NOTHING = "<td></td>";

    private final CompareReport report;
    private final CompareSeries series;

    CompareTables(CompareReport report, CompareSeries series) {
        this.report = report;
        this.series = series;
    }

    /** Returns what a matrix is called. */
    static String title(Subject subject) {
        return "%s%s, condition number %s, %s of %s directions above rounding"
                .formatted(
                        subject.name().isEmpty() ? "" : subject.name() + ", ",
                        CompareSeries.Shape.of(subject).label(),
                        Numbers.brief(subject.condition()),
                        subject.directions(),
                        Math.min(subject.rows(), subject.cols()));
    }

    /** Five steps that do not converge, beside iterations that reach an error, beside the exact factor. */
    String equalErrors() {
        var html = new StringBuilder("""
                <section>
                <h2>Time to equal error</h2>
                <p>For each error that is wanted, the fastest iteration whose measured error is at most this, with the
                lower bound of singular values that suits the matrix. ★ marks it where it is faster than the exact
                factor. Beside it, what five of the usual steps take, and the error that they leave.</p>
                <div class="scroll" role="region" aria-label="Time to equal error" tabindex="0">
                <table>
                <thead>
                <tr><th scope="col">wanted error</th><th class="text" scope="col">fastest iteration that reaches it</th>
                <th scope="col">steps</th><th scope="col">time</th><th scope="col">error</th>
                <th scope="col">time of exact</th><th scope="col">error of exact</th>
                <th scope="col">time of five jordan steps</th><th scope="col">error of five jordan steps</th></tr>
                </thead>
                """);
        for (Subject subject : series.subjects()) {
            html.append("<tbody>\n").append(group(subject, 9));
            report.wanted().forEach(wanted -> html.append(row(subject, wanted)));
            html.append("</tbody>\n");
        }
        return html.append("</table>\n</div>\n</section>\n").toString();
    }

    private String row(Subject subject, double wanted) {
        Optional<Entry> fastest = report.fastest(subject, wanted);
        Optional<Entry> exact = report.exact(subject);
        String found = fastest.map(entry -> "<td class=\"text\">%s</td><td>%s</td>%s%s"
                        .formatted(
                                Markup.escape(entry.method() + " " + entry.coefficients()),
                                entry.steps(),
                                cell(
                                        Numbers.time(entry.seconds()),
                                        exact.isPresent()
                                                && entry.seconds() < exact.get().seconds()),
                                cell(Numbers.scientific(entry.error()), false)))
                .orElse("<td class=\"text\">none</td>" + NOTHING.repeat(3));
        return "<tr><th scope=\"row\">%s</th>%s%s%s</tr>\n"
                .formatted(Numbers.brief(wanted), found, timeAndError(exact), timeAndError(report.fiveSteps(subject)));
    }

    private static String timeAndError(Optional<Entry> entry) {
        return entry.map(one -> cell(Numbers.time(one.seconds()), false) + cell(Numbers.scientific(one.error()), false))
                .orElse(NOTHING.repeat(2));
    }

    /** Everything that was measured. */
    String all() {
        var html = new StringBuilder("""
                <section>
                <h2>All measurements</h2>
                <p>★ marks the shortest time and the smallest error of each matrix. An exact way says how many directions
                it kept and how many it dropped, of the shorter side; an iteration keeps all.</p>
                <div class="scroll" role="region" aria-label="All measurements" tabindex="0">
                <table>
                <thead>
                <tr><th class="text" scope="col">method</th><th class="text" scope="col">path</th>
                <th scope="col">steps</th><th scope="col">time</th><th scope="col">speedup over exact</th>
                <th scope="col">error</th><th scope="col">kept</th><th scope="col">dropped</th>
                <th scope="col">orthogonality error</th><th scope="col">alignment</th>
                <th scope="col">smallest singular value</th><th scope="col">largest singular value</th></tr>
                </thead>
                """);
        for (Subject subject : series.subjects()) {
            List<Entry> entries = series.of(subject);
            html.append("<tbody>\n").append(group(subject, 12));
            entries.forEach(entry -> html.append(row(entry, entries)));
            html.append("</tbody>\n");
        }
        return html.append("</table>\n</div>\n</section>\n").toString();
    }

    private static String group(Subject subject, int columns) {
        return "<tr class=\"group\"><th colspan=\"%s\" scope=\"rowgroup\"><span>%s</span></th></tr>\n"
                .formatted(columns, Markup.escape(title(subject)));
    }

    private static String row(Entry entry, List<Entry> group) {
        double shortest = least(group, Entry::seconds);
        double shortestSeen =
                least(group.stream().filter(one -> one.seconds() > 0).toList(), Entry::seconds);
        double exact = least(
                group.stream()
                        .filter(one -> one.method().equals(CompareReport.EXACT))
                        .toList(),
                Entry::seconds);
        // a single entry would be the best in every column
        boolean marks = group.size() > 1;
        int side = Math.min(entry.subject().rows(), entry.subject().cols());
        String label = entry.isExact() ? entry.method() : entry.method() + " " + entry.coefficients();
        return "<tr><th class=\"text\" scope=\"row\">%s</th><td class=\"text\">%s</td><td>%s</td>%s%s%s%s%s%s%s%s%s</tr>\n"
                .formatted(
                        Markup.escape(label),
                        Markup.escape(entry.path()),
                        entry.steps() == 0 ? "" : entry.steps(),
                        cell(Numbers.timeLike(entry.seconds(), shortestSeen), marks && entry.seconds() == shortest),
                        cell(Numbers.ratio(exact / entry.seconds()), false),
                        cell(Numbers.scientific(entry.error()), marks && entry.error() == least(group, Entry::error)),
                        cell(entry.kept().isPresent() ? "" + entry.kept().getAsInt() : "", false),
                        cell(
                                entry.kept().isPresent()
                                        ? "" + (side - entry.kept().getAsInt())
                                        : "",
                                false),
                        cell(Numbers.scientific(entry.orthogonalityError()), false),
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
