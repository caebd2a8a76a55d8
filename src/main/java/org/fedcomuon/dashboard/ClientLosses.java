package org.fedcomuon.dashboard;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The losses of single clients over time, coarsely, and the last of each. More clients than a page has room for share a
 * row, which shows the worst of them. Not thread-safe.
 */
final class ClientLosses {
    private static final int MOST_ROWS = 1000;
    /** Of all rows together, as many as a browser is sent in a tenth of a second. */
    private static final int MOST_CELLS = 24_000;

    private static final int LEAST_COLUMNS = 24;
    private static final int MOST_COLUMNS = 240;

    /** The means of some rounds by row; NaN for a row whose clients have drawn no sample. */
    static final class Column {
        private final long step;
        private final int rounds;
        private final float[] rows;

        private Column(long step, int rounds, float[] rows) {
            this.step = step;
            this.rounds = rounds;
            this.rows = rows;
        }

        static Column merge(Column a, Column b) {
            var rows = new float[a.rows.length];
            for (int i = 0; i < rows.length; i++) {
                rows[i] = Float.isNaN(a.rows[i])
                        ? b.rows[i]
                        : Float.isNaN(b.rows[i])
                                ? a.rows[i]
                                : (a.rows[i] * a.rounds + b.rows[i] * b.rounds) / (a.rounds + b.rounds);
            }
            return new Column(b.step, a.rounds + b.rounds, rows);
        }

        List<Object> json() {
            return List.of(step, rows);
        }
    }

    private final int clients;
    private final int group;
    private final float[] last;
    private final long[] drawn;
    private long round = -1;
    private final Thinned<Column> columns;

    ClientLosses(int clients) {
        this.clients = clients;
        group = Math.max(1, Math.ceilDiv(clients, MOST_ROWS));
        int rows = Math.ceilDiv(clients, group);
        last = new float[rows];
        Arrays.fill(last, Float.NaN);
        drawn = new long[rows];
        Arrays.fill(drawn, -1);
        columns = new Thinned<>(Math.clamp(MOST_CELLS / Math.max(1, rows), LEAST_COLUMNS, MOST_COLUMNS), Column::merge);
    }

    void add(long number, long step, List<Double> losses) {
        round = number;
        var rows = new float[last.length];
        Arrays.fill(rows, Float.NaN);
        for (int i = 0; i < Math.min(clients, losses.size()); i++) {
            float loss = losses.get(i).floatValue();
            int row = i / group;
            if (!Float.isNaN(loss) && !(rows[row] >= loss)) {
                rows[row] = loss;
            }
        }
        for (int row = 0; row < rows.length; row++) {
            if (!Float.isNaN(rows[row])) {
                last[row] = rows[row];
                drawn[row] = number;
            }
        }
        columns.add(new Column(step, 1, rows));
    }

    Thinned<Column> columns() {
        return columns;
    }

    /** What changes with every round. */
    Map<String, Object> json() {
        var json = new LinkedHashMap<String, Object>();
        json.put("clients", clients);
        json.put("group", group);
        json.put("last", last.clone());
        var ages = new ArrayList<Long>();
        for (long when : drawn) {
            ages.add(when < 0 ? -1 : round - when);
        }
        json.put("age", ages);
        return json;
    }
}
