package org.fedcomuon.report;

import static java.util.stream.Collectors.joining;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.fedcomuon.chart.Markup;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.chart.Scale;

/** What a page says about single clients: how their metrics are distributed, and which classes they hold. */
final class ClientsSection {
    private static final int MOST_ROWS = 40;
    private static final int MOST_CLASSES = 30;

    /** The size of a strip in pixels, as the style of the page has it. */
    private static final double WIDTH = 320;

    private static final double HEIGHT = 18;

    private ClientsSection() {}

    /** Returns the section; nothing if no run has recorded its clients. */
    static String html(List<RunSeries> runs) {
        String distribution = distribution(runs);
        String split = runs.size() == 1 ? split(runs.getFirst()) : "";
        return distribution.isEmpty() && split.isEmpty()
                ? ""
                : "<section>\n<h2>Clients</h2>\n%s%s</section>\n".formatted(distribution, split);
    }

    private static String distribution(List<RunSeries> runs) {
        Set<String> keys = new LinkedHashSet<>();
        runs.forEach(series -> series.run().clients().forEach(row -> keys.addAll(row.keySet())));
        keys.remove("examples");
        var html = new StringBuilder();
        for (String key : keys) {
            html.append(strips(key, runs));
        }
        return html.isEmpty()
                ? ""
                : "<p>Each mark is a client, by its metric on its own training data at the last evaluation.</p>\n"
                        + html;
    }

    /** Returns a row of marks per run, on one scale, with quantiles. */
    private static String strips(String key, List<RunSeries> runs) {
        List<double[]> all = runs.stream().map(series -> values(key, series)).toList();
        double least = all.stream().flatMapToDouble(Arrays::stream).min().orElse(Double.NaN);
        double most = all.stream().flatMapToDouble(Arrays::stream).max().orElse(Double.NaN);
        if (Double.isNaN(least)) {
            return "";
        }
        var rows = new StringBuilder();
        for (int i = 0; i < runs.size(); i++) {
            double[] values = all.get(i);
            if (values.length > 0) {
                rows.append("<tr><th class=\"text\" scope=\"row\">%s</th><td class=\"strip\">%s</td>%s</tr>\n"
                        .formatted(
                                Markup.escape(runs.get(i).label()),
                                strip(values, least, most),
                                IntStream.rangeClosed(0, 4)
                                        .mapToObj(q -> "<td>%s</td>"
                                                .formatted(Markup.escape(text(key, quantile(values, q / 4.0)))))
                                        .collect(joining())));
            }
        }
        return """
                <div class="scroll" role="region" aria-label="%1$s of the clients" tabindex="0">
                <table class="runs">
                <thead>
                <tr><th class="text" scope="col">%1$s</th><th scope="col">%2$s to %3$s</th><th scope="col">least</th>\
                <th scope="col">25 %%</th><th scope="col">median</th><th scope="col">75 %%</th><th scope="col">most</th></tr>
                </thead>
                <tbody>
                %4$s</tbody>
                </table>
                </div>
                """.formatted(Markup.escape(key), Markup.escape(text(key, least)), Markup.escape(text(key, most)), rows);
    }

    private static double[] values(String key, RunSeries series) {
        return series.run().clients().stream()
                .mapToDouble(row -> row.getOrDefault(key, Double.NaN))
                .filter(Scale::drawable)
                .sorted()
                .toArray();
    }

    private static String strip(double[] values, double least, double most) {
        var marks = new StringBuilder();
        for (double value : values) {
            double x = most > least ? 4 + (WIDTH - 8) * (value - least) / (most - least) : WIDTH / 2;
            marks.append("<rect x=\"%s\" y=\"2\" width=\"3\" height=\"14\"/>".formatted(Numbers.fixed(x - 1.5, 1)));
        }
        return "<svg viewBox=\"0 0 %s %s\" aria-hidden=\"true\">%s</svg>"
                .formatted(Numbers.fixed(WIDTH, 0), Numbers.fixed(HEIGHT, 0), marks);
    }

    /** Returns a quantile of ascending values, between two of them by their distance. */
    private static double quantile(double[] ascending, double share) {
        double at = share * (ascending.length - 1);
        int below = (int) Math.floor(at);
        int above = Math.min(below + 1, ascending.length - 1);
        return ascending[below] + (at - below) * (ascending[above] - ascending[below]);
    }

    private static String text(String key, double value) {
        return key.endsWith("accuracy") || key.equals("auc") ? Numbers.percent(value, 2) : Numbers.nearOne(value);
    }

    /** Returns the numbers of examples of each client by class; darker cells hold more of the client's examples. */
    private static String split(RunSeries series) {
        List<List<Integer>> table = table(series);
        if (table.isEmpty() || table.getFirst().size() < 2) {
            return "";
        }
        int classes = table.getFirst().size();
        int shown = Math.min(classes, MOST_CLASSES);
        var html = new StringBuilder("""
                <p>Examples of each client by class%s.</p>
                <div class="scroll" role="region" aria-label="Split" tabindex="0">
                <table class="split">
                <thead>
                <tr><th scope="col">client</th>%s<th scope="col">all</th></tr>
                </thead>
                <tbody>
                """.formatted(
                        classes > shown ? " (the first %d of %d)".formatted(shown, classes) : "",
                        IntStream.range(0, shown)
                                .mapToObj("<th scope=\"col\">%d</th>"::formatted)
                                .collect(joining())));
        for (int k = 0; k < Math.min(table.size(), MOST_ROWS); k++) {
            List<Integer> row = table.get(k);
            int all = row.stream().mapToInt(Integer::intValue).sum();
            html.append("<tr><th scope=\"row\">%d</th>".formatted(k));
            for (int c = 0; c < shown; c++) {
                html.append("<td style=\"--share: %s\">%d</td>"
                        .formatted(Numbers.fixed(all == 0 ? 0 : (double) row.get(c) / all, 3), row.get(c)));
            }
            html.append("<td>%d</td></tr>\n".formatted(all));
        }
        html.append("</tbody>\n</table>\n</div>\n");
        if (table.size() > MOST_ROWS) {
            html.append("<p class=\"facts\">%d more clients are in summary.json.</p>\n"
                    .formatted(table.size() - MOST_ROWS));
        }
        return html.toString();
    }

    /** Returns the table of the summary, if it is one: the file is not trusted. */
    private static List<List<Integer>> table(RunSeries series) {
        var table = new ArrayList<List<Integer>>();
        if (series.run().summary().map(summary -> summary.get("split")).orElse(null) instanceof List<?> rows) {
            for (Object row : rows) {
                if (!(row instanceof List<?> counts) || !counts.stream().allMatch(Number.class::isInstance)) {
                    return List.of();
                }
                table.add(counts.stream()
                        .map(count -> ((Number) count).intValue())
                        .toList());
            }
        }
        boolean even = table.stream().map(List::size).distinct().count() == 1;
        return even ? table : List.of();
    }
}
