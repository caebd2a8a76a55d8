package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The evaluations of a run as a table in CSV (RFC 4180). Its columns are in the order in which {@link RunRecorder}
 * lists the values of an evaluation.
 *
 * <p>Not thread-safe.
 */
final class MetricsTable {
    /**
     * There from the first row on, also where it has no value of them yet, so that no column moves; metrics are put
     * between.
     */
    private static final List<String> ALWAYS = List.of(
            "step",
            "round",
            "seconds",
            "step_seconds",
            "gradient_seconds",
            "orthogonalize_seconds",
            "exchange_seconds",
            "evaluate_seconds",
            "optimizer_share",
            "communicated_bytes");

    private static final String MISSING = "";
    private static final String LINE_END = "\r\n";

    /** What has to be in quotes, which are doubled within. */
    private static final Pattern SPECIAL = Pattern.compile("[\",\r\n]");

    private final List<String> columns = new ArrayList<>(ALWAYS);
    private final List<List<Object>> rows = new ArrayList<>();

    /** Adds a row. A column that is new comes after the one of the value before. */
    void add(Map<String, Object> values) {
        int place = 0;
        for (String name : values.keySet()) {
            int column = columns.indexOf(name);
            if (column < 0) {
                column = place;
                insert(column, name);
            }
            place = column + 1;
        }
        var row = new ArrayList<>();
        for (String name : columns) {
            row.add(Objects.requireNonNullElse(values.get(name), MISSING));
        }
        rows.add(row);
    }

    private void insert(int column, String name) {
        columns.add(column, name);
        rows.forEach(row -> row.add(column, MISSING));
    }

    /** Returns the table. */
    String csv() {
        var text = new StringBuilder(line(columns));
        rows.forEach(row -> text.append(line(row)));
        return text.toString();
    }

    private static String line(List<?> fields) {
        return fields.stream().map(MetricsTable::field).collect(Collectors.joining(",", "", LINE_END));
    }

    private static String field(Object value) {
        String text = value.toString();
        return SPECIAL.matcher(text).find() ? '"' + text.replace("\"", "\"\"") + '"' : text;
    }
}
