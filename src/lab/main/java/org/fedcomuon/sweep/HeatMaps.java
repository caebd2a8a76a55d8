package org.fedcomuon.sweep;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.fedcomuon.chart.Markup;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.experiment.ValidationMetric;

/**
 * How the metric depends on two settings at a time: a table for each method and each pair of settings, or one for all
 * methods where a single setting is varied. Immutable.
 */
final class HeatMaps {
    /** Of settings that are drawn by chance nearly every value differs, and a table of them would be empty. */
    private static final int MOST_VALUES = 12;

    private static final int MOST_PAIRS = 6;

    private final SweepRecord sweep;
    private final Function<Double, String> text;

    /** @param text returns a value of the metric for readers */
    HeatMaps(SweepRecord sweep, Function<Double, String> text) {
        this.sweep = sweep;
        this.text = text;
    }

    /** Returns the section; empty if there is nothing to show. */
    String html() {
        var html = new StringBuilder();
        List<Standing> standings = sweep.standings();
        if (sweep.varied().size() == 1) {
            html.append(byMethod(standings, sweep.varied().getFirst()));
        } else {
            for (String method : sweep.methods()) {
                List<Standing> own = standings.stream()
                        .filter(standing -> standing.method().equals(method))
                        .toList();
                html.append(pairs(method, own));
            }
        }
        return html.isEmpty() ? "" : """
                <section>
                <h2>Maps</h2>
                <p>Means over seeds. The better, the stronger is the colour, from the worst to the best of the method; the
                best has a star. Where more settings are varied than a map shows, it has the best of the others.</p>
                <div class="maps">
                %s</div>
                </section>
                """.formatted(html);
    }

    private String byMethod(List<Standing> standings, String name) {
        List<String> columns = values(standings, name);
        List<String> rows = sweep.methods().stream()
                .filter(method -> standings.stream()
                        .anyMatch(each ->
                                each.method().equals(method) && each.settings().containsKey(name)))
                .toList();
        if (rows.isEmpty() || columns.size() < 2 || columns.size() > MOST_VALUES) {
            return "";
        }
        return map(
                name,
                "method",
                name,
                rows,
                columns,
                cells(
                        standings,
                        Standing::method,
                        standing -> standing.settings().get(name)));
    }

    private String pairs(String method, List<Standing> standings) {
        List<String> names = sweep.varied().stream()
                .filter(name -> {
                    int count = values(standings, name).size();
                    return count > 1 && count <= MOST_VALUES;
                })
                .toList();
        var html = new StringBuilder();
        int shown = 0;
        for (int i = 0; i < names.size(); i++) {
            for (int j = i + 1; j < names.size() && shown < MOST_PAIRS; j++, shown++) {
                String first = names.get(i);
                String second = names.get(j);
                html.append(map(
                        method,
                        first,
                        second,
                        values(standings, first),
                        values(standings, second),
                        cells(
                                standings,
                                standing -> standing.settings().get(first),
                                standing -> standing.settings().get(second))));
            }
        }
        return html.toString();
    }

    private record Place(String row, String column) {}

    /** Returns the best standing for each place, which comes first among those of its place. */
    private static Map<Place, Standing> cells(
            List<Standing> standings, Function<Standing, String> row, Function<Standing, String> column) {
        var cells = new LinkedHashMap<Place, Standing>();
        standings.forEach(
                standing -> cells.putIfAbsent(new Place(row.apply(standing), column.apply(standing)), standing));
        return cells;
    }

    /** Returns all values of a setting: ascending if they are numbers. */
    private static List<String> values(List<Standing> standings, String name) {
        var values = new ArrayList<String>();
        standings.forEach(standing -> Optional.ofNullable(standing.settings().get(name))
                .filter(value -> !values.contains(value))
                .ifPresent(values::add));
        try {
            values.sort(Comparator.comparingDouble(Double::parseDouble));
        } catch (NumberFormatException e) {
            values.sort(Comparator.naturalOrder());
        }
        return values;
    }

    private String map(
            String caption,
            String rowName,
            String columnName,
            List<String> rows,
            List<String> columns,
            Map<Place, Standing> cells) {
        var html = new StringBuilder(
                """
                <div class="scroll" role="region" aria-label="%1$s" tabindex="0">
                <table class="split">
                <caption>%1$s</caption>
                <thead><tr><th class="text" scope="col">%2$s \\ %3$s</th>""".formatted(Markup.escape(caption), Markup.escape(rowName), Markup.escape(columnName)));
        columns.forEach(column ->
                html.append("<th scope=\"col\">").append(Markup.escape(column)).append("</th>"));
        html.append("</tr></thead>\n<tbody>\n");
        for (String row : rows) {
            html.append("<tr><th class=\"text\" scope=\"row\">")
                    .append(Markup.escape(row))
                    .append("</th>");
            for (String column : columns) {
                html.append(cell(Optional.ofNullable(cells.get(new Place(row, column))), cells));
            }
            html.append("</tr>\n");
        }
        return html.append("</tbody>\n</table>\n</div>\n").toString();
    }

    private String cell(Optional<Standing> standing, Map<Place, Standing> cells) {
        if (standing.isEmpty()) {
            return "<td>–</td>";
        }
        if (standing.get().summary().isEmpty()) {
            return "<td>%s</td>".formatted(SweepPage.without(standing.get()));
        }
        double value = standing.get().summary().get().mean();
        ValidationMetric metric = sweep.metric();
        List<Double> comparable = cells.values().stream()
                .filter(other -> other.method().equals(standing.get().method()))
                .flatMap(other -> other.summary().stream())
                .map(summary -> summary.mean())
                .toList();
        double least =
                comparable.stream().mapToDouble(Double::doubleValue).min().orElse(value);
        double most = comparable.stream().mapToDouble(Double::doubleValue).max().orElse(value);
        double share = most > least ? (value - least) / (most - least) : 0;
        boolean isBest = comparable.stream().noneMatch(other -> metric.isBetter(other, value));
        return "<td style=\"--share:%s\">%s%s</td>"
                .formatted(
                        Numbers.fixed(metric.greaterIsBetter() ? share : 1 - share, 3),
                        isBest && comparable.size() > 1 ? "★ " : "",
                        Markup.escape(text.apply(value)));
    }
}
