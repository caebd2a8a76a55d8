package org.fedcomuon.bench;

import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.joining;
import static java.util.stream.Collectors.toList;

import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.DoubleSummaryStatistics;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.function.Predicate;

/**
 * The most important ratios of one or several runs as a Markdown table, so that no figure is copied by hand. Of several
 * settings of a peer the best one is shown, and of several runs the range from the least to the greatest ratio and the
 * worst verdict about an aim.
 */
public final class BenchTable {
    private static final String END = "<!-- bench: end -->";

    /**
     * The rows of a suite that are shown.
     *
     * @param what the meaning of the ratio
     * @param whole whether the contender is shown too; otherwise the chosen contenders of a subject are settings of one
     *     peer, and the least ratio is shown
     */
    private record Headlines(String suite, String what, boolean whole, Predicate<BenchReport.Row> choice) {
        /** Returns the suite that the command takes, which may be in several parts. */
        String command() {
            return suite.equals("cohorts") ? "scale" : suite;
        }
    }

    private static final List<Headlines> HEADLINES = List.of(
            new Headlines(
                    "round",
                    "time of the libtorch loop at its best number of threads, relative to ours (> 1: ours is faster)",
                    false,
                    row -> row.contender().startsWith("libtorch loop")),
            new Headlines(
                    "round",
                    "our own time, of which the optimizer has a share",
                    false,
                    row -> row.contender().startsWith(RoundBench.OURS)
                            && !row.aims().isEmpty()),
            new Headlines(
                    "orthogonalize",
                    "time of libtorch at its best number of threads, relative to ours (> 1: ours is faster)",
                    false,
                    row -> row.contender().startsWith("libtorch")
                            && !row.contender().contains("bf16")),
            new Headlines(
                    "orthogonalize",
                    "time of a loop over BLAS at its best, relative to ours (> 1: ours is faster)",
                    false,
                    row -> row.contender().contains(OrthogonalizeBench.LOOP)),
            new Headlines(
                    "orthogonalize",
                    "our share of the speed of BLAS's sgemm, the peak of the machine",
                    false,
                    row -> row.contender().contains(OrthogonalizeBench.PEAK)),
            new Headlines(
                    "orthogonalize",
                    "our speed in bf16, relative to fp32",
                    false,
                    row -> row.contender().startsWith(OrthogonalizeBench.NARROW)),
            new Headlines(
                    "compose",
                    "bytes per second, relative to the STREAM triad",
                    true,
                    row -> !row.contender().startsWith("triad")
                            && !row.subject().startsWith("1e+06")),
            new Headlines(
                    "scale",
                    "speed of a client step, relative to K = 10, to d = 1, to one device",
                    false,
                    row -> row.subject().matches(".*(K = 1000|d = 64|devices = 4)")),
            new Headlines(
                    "cohorts",
                    "speed of a round with a hundred of K clients, relative to K = 1000",
                    false,
                    row -> !row.subject().equals("K = 1000")),
            new Headlines(
                    "exact-vs-ns",
                    "time of the exact factor, relative to five steps with the jordan coefficients",
                    false,
                    row -> row.subject().endsWith(", exact")),
            new Headlines(
                    "exact-vs-ns",
                    "time of the form that auto does not pick, relative to the one that it picks",
                    false,
                    row -> row.subject().endsWith(", " + ExactVsNsBench.OTHER)),
            new Headlines(
                    "cluster",
                    "time of a round that computes nothing, relative to one process",
                    true,
                    row -> !row.contender().equals("one process")),
            new Headlines(
                    "ffi",
                    "time of a call, relative to ours (> 1: ours is faster)",
                    true,
                    row -> row.contender().matches("JNI|JNI, with addresses|JCuda.*")));

    private BenchTable() {}

    /** The reports of a run and its date. */
    public record Run(LocalDate date, List<BenchReport> reports) {
        public Run {
            reports = List.copyOf(reports);
        }
    }

    /** Returns the runs with the reports of one suite only. */
    public static List<Run> only(String suite, List<Run> runs) {
        return runs.stream()
                .map(run -> new Run(
                        run.date(),
                        run.reports().stream()
                                .filter(report -> report.suite().equals(suite))
                                .toList()))
                .filter(run -> !run.reports().isEmpty())
                .toList();
    }

    /** Returns the table, with the machines and the dates of the measurement. */
    public static String of(List<Run> runs) {
        var days = new TreeSet<LocalDate>();
        var machines = new TreeSet<String>();
        runs.forEach(run -> {
            days.add(run.date());
            run.reports().stream()
                    .map(BenchReport::device)
                    .filter(device -> device.contains("(")) // the others only name the device
                    .forEach(machines::add);
        });
        var text = new StringBuilder("Measured on %s, %s; from the least to the greatest of %s.%n%n"
                .formatted(
                        String.join(", ", machines),
                        days.size() == 1 ? days.first().toString() : days.first() + " to " + days.last(),
                        runs.size() == 1 ? "one run" : runs.size() + " runs"));
        text.append("| | ratio | aim | | command |\n|---|---|---|---|---|\n");
        for (Headlines headlines : HEADLINES) {
            Map<String, List<BenchReport.Row>> shown = new LinkedHashMap<>();
            for (Run run : runs) {
                least(run, headlines)
                        .forEach((name, row) -> shown.computeIfAbsent(name, _ -> new ArrayList<>())
                                .add(row));
            }
            if (!shown.isEmpty()) {
                text.append(
                        "| **%s** | | | | `./fedcomuon bench %s` |%n".formatted(headlines.what(), headlines.command()));
            }
            shown.forEach((name, rows) -> text.append("| %s | %s |%s|%s| |%n"
                    .formatted(
                            name,
                            range(rows.stream()
                                    .mapToDouble(BenchReport.Row::ratio)
                                    .summaryStatistics()),
                            cell(aims(rows)),
                            cell(verdicts(rows)))));
        }
        return text.toString();
    }

    /** Returns the chosen rows of a run, by their names in the table: of several, the one with the least ratio. */
    private static Map<String, BenchReport.Row> least(Run run, Headlines headlines) {
        Map<String, BenchReport.Row> least = new LinkedHashMap<>();
        for (BenchReport report : run.reports()) {
            if (report.suite().equals(headlines.suite())) {
                for (BenchReport.Row row : report.rows()) {
                    if (headlines.choice().test(row)) {
                        least.merge(
                                headlines.whole() ? row.name() : row.subject(),
                                row,
                                (one, other) -> other.ratio() < one.ratio() ? other : one);
                    }
                }
            }
        }
        return least;
    }

    private static String cell(String text) {
        return text.isEmpty() ? " " : " " + text + " ";
    }

    /** Returns the aims of the same row in several runs. */
    private static String aims(List<BenchReport.Row> rows) {
        return judgements(rows).keySet().stream().map(Aim::toString).collect(joining("; "));
    }

    /** Returns the worst verdict of all runs about each aim, and in how many of them it was reached. */
    private static String verdicts(List<BenchReport.Row> rows) {
        return judgements(rows).values().stream()
                .map(all -> {
                    Judgement worst = all.stream()
                            .max(Comparator.comparing(Judgement::verdict))
                            .orElseThrow();
                    long times = all.stream()
                            .filter(each -> each.verdict() == worst.verdict())
                            .count();
                    return times == all.size()
                            ? worst.text()
                            : "%s in %d of %d".formatted(worst.text(), times, all.size());
                })
                .collect(joining("; "));
    }

    private static Map<Aim, List<Judgement>> judgements(List<BenchReport.Row> rows) {
        return rows.stream()
                .flatMap(row -> row.aims().stream())
                .collect(groupingBy(Judgement::aim, LinkedHashMap::new, toList()));
    }

    private static String range(DoubleSummaryStatistics ratio) {
        String least = String.format(Locale.ROOT, "%.2f", ratio.getMin());
        String greatest = String.format(Locale.ROOT, "%.2f", ratio.getMax());
        return least.equals(greatest) ? least : least + " to " + greatest;
    }

    /**
     * Replaces the part of a text between two marker lines with a table.
     *
     * @param suite the suite of the table, if there is only one: it may have its own marker lines in the text
     * @throws IllegalArgumentException when the text has no such lines
     */
    public static String into(String text, String table, Optional<String> suite) {
        String name = suite.map(each -> " " + each).orElse("");
        String first = "<!-- bench%s: made by ./fedcomuon bench%s --table -->".formatted(name, name);
        int begin = text.indexOf(first);
        int end = text.indexOf(END, Math.max(begin, 0));
        if (begin < 0 || end < 0) {
            throw new IllegalArgumentException("there is no line %s before a line %s".formatted(first, END));
        }
        return text.substring(0, begin + first.length()) + '\n' + table + text.substring(end);
    }
}
