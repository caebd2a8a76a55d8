package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.StringJoiner;

/** All aims of a run of {@code bench}: how many are met, and what {@code --check} says about those that are not. */
final class AimCheck {
    /** An aim of a row, with the name of the suite before that of the row. */
    private record Entry(String row, Judgement judgement) {}

    private final List<Entry> entries = new ArrayList<>();
    private final List<String> missing = new ArrayList<>();

    /** Adds the aims of a report. */
    AimCheck add(BenchReport report) {
        report.rows().forEach(row -> add(report.suite() + ", " + row.name(), row.aims()));
        return this;
    }

    /** Adds the aims of a report that was measured now, and remembers which aims of its suite it has no rows for. */
    AimCheck add(BenchReport report, Aims all) {
        all.without(report.rows()).forEach(aim -> missing.add("not measured: %s, %s".formatted(report.suite(), aim)));
        return add(report);
    }

    /** Adds the aims of a row. */
    AimCheck add(String row, List<Judgement> judgements) {
        judgements.forEach(judgement -> entries.add(new Entry(row, judgement)));
        return this;
    }

    /** Returns how many aims there are and how many are met; empty without aims. */
    Optional<String> summary() {
        if (entries.isEmpty()) {
            return Optional.empty();
        }
        Map<Judgement.Verdict, Integer> counts = new EnumMap<>(Judgement.Verdict.class);
        entries.forEach(entry -> counts.merge(entry.judgement().verdict(), 1, Integer::sum));
        var parts = new StringJoiner(", ", "aims: ", "");
        counts.forEach((verdict, count) -> parts.add(count + " " + verdict));
        return Optional.of(parts.toString());
    }

    /** Returns a line for each aim that nothing was measured for, with a regular expression for the rows it is of. */
    List<String> missing() {
        return List.copyOf(missing);
    }

    /**
     * Returns a line for each aim that is missed beyond the noise. A check of nothing is not passed: without any aim,
     * the line says that.
     */
    List<String> failures() {
        if (entries.isEmpty()) {
            return List.of("--check: no row that was measured has an aim");
        }
        return entries.stream()
                .filter(entry -> entry.judgement().verdict() == Judgement.Verdict.NOT_MET)
                .map(entry -> String.format(
                        Locale.ROOT,
                        "not met: %s: %s %.4g, better quartile %.4g; the aim is %s",
                        entry.row(),
                        entry.judgement().aim().figure(),
                        entry.judgement().found(),
                        entry.judgement().better(),
                        entry.judgement().aim()))
                .toList();
    }
}
