package org.fedcomuon.dashboard;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The losses of single clients: the last one of each, and a coarse history. Where there are more clients than rows on a
 * page, several share a row, which shows the worst of them. Not thread-safe.
 */
final class ClientLosses {
    private static final int MOST_ROWS = 1000;
    /** Limit for all rows together: as many as can be sent to a browser in a tenth of a second. */
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

        long step() {
            return step;
        }

        float row(int number) {
            return rows[number];
        }

        List<Object> json() {
            return List.of(step, rows);
        }
    }

    /**
     * The last loss of each row.
     *
     * @param group how many clients share a row
     * @param losses NaN for a row whose clients have drawn no sample yet
     * @param ages rounds since it was drawn, -1 for never
     */
    record Last(int group, List<Float> losses, List<Long> ages) {
        String name(int row) {
            return group == 1 ? "client " + row : "clients %d–%d".formatted(row * group, (row + 1) * group - 1);
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

    /** @param numbers of the clients that have these losses */
    void add(long number, long step, List<Integer> numbers, List<Double> losses) {
        round = number;
        var rows = new float[last.length];
        Arrays.fill(rows, Float.NaN);
        for (int i = 0; i < losses.size(); i++) {
            float loss = losses.get(i).floatValue();
            int row = numbers.get(i) / group;
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

    Last last() {
        var losses = new ArrayList<Float>();
        var ages = new ArrayList<Long>();
        for (int row = 0; row < last.length; row++) {
            losses.add(last[row]);
            ages.add(drawn[row] < 0 ? -1 : round - drawn[row]);
        }
        return new Last(group, losses, ages);
    }

    /** The last losses as JSON. */
    Map<String, Object> json() {
        var json = new LinkedHashMap<String, Object>();
        Last now = last();
        json.put("clients", clients);
        json.put("group", group);
        json.put("last", now.losses);
        json.put("age", now.ages);
        return json;
    }
}
