package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * The aims of a suite, by the names of its rows. Names have the sizes, so that small ones, which only show that a suite
 * runs, have no aims.
 */
final class Aims {
    /** No aims. */
    static final Aims NONE = new Aims(List.of());

    private record Entry(Pattern rows, Aim aim) {}

    private final List<Entry> entries;

    private Aims(List<Entry> entries) {
        this.entries = List.copyOf(entries);
    }

    /**
     * Returns these aims and one more.
     *
     * @param rows a regular expression for the whole names of the rows
     */
    Aims with(String rows, Aim aim) {
        var more = new ArrayList<>(entries);
        more.add(new Entry(Pattern.compile(rows), aim));
        return new Aims(more);
    }

    /**
     * Judges a row by all aims that it has.
     *
     * @param figures of the row, by name
     * @throws IllegalStateException when the row has an aim for another figure
     */
    List<Judgement> judge(String row, Map<String, Figure> figures) {
        var all = new ArrayList<Judgement>();
        for (Entry entry : entries) {
            if (entry.rows().matcher(row).matches()) {
                Figure figure = figures.get(entry.aim().figure());
                if (figure == null) {
                    throw new IllegalStateException(
                            "%s has no %s".formatted(row, entry.aim().figure()));
                }
                all.add(entry.aim().judge(figure));
            }
        }
        return List.copyOf(all);
    }

    /** Returns the aims that none of these rows has: what they are about was not measured, or not at its full size. */
    List<String> without(List<BenchReport.Row> rows) {
        return entries.stream()
                .filter(entry -> rows.stream()
                        .noneMatch(row -> entry.rows().matcher(row.name()).matches()))
                .map(entry -> "%s: %s".formatted(entry.rows(), entry.aim()))
                .toList();
    }
}
