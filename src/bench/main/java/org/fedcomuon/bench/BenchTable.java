package org.fedcomuon.bench;

import java.time.LocalDate;
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
 * settings of a peer the best one is shown, and of several runs the range from the least to the greatest ratio.
 */
public final class BenchTable {
    private static final String END = "<!-- bench: end -->";

    /** The name of a row, divided at its first colon. */
    private record Parts(String subject, String contender) {
        static Parts of(BenchReport.Row row) {
            int colon = row.name().indexOf(": ");
            return colon < 0
                    ? new Parts(row.name(), "")
                    : new Parts(row.name().substring(0, colon), row.name().substring(colon + 2));
        }
    }

    /**
     * The rows of a suite that are shown.
     *
     * @param what the meaning of the ratio
     * @param whole whether the contender is shown too; otherwise the chosen contenders of a subject are settings of one
     *     peer, and the least ratio is shown
     */
    private record Headlines(String suite, String what, boolean whole, Predicate<Parts> choice) {}

    private static final List<Headlines> HEADLINES = List.of(
            new Headlines(
                    "round",
                    "time of the libtorch loop at its best number of threads, relative to ours (> 1: ours is faster)",
                    false,
                    parts -> parts.contender().startsWith("libtorch loop")),
            new Headlines(
                    "orthogonalize",
                    "time of libtorch at its best number of threads, relative to ours (> 1: ours is faster)",
                    false,
                    parts -> parts.contender().startsWith("libtorch")
                            && !parts.contender().contains("bf16")),
            new Headlines(
                    "orthogonalize",
                    "our speed in bf16, relative to fp32",
                    false,
                    parts -> parts.contender().startsWith(OrthogonalizeBench.NARROW)),
            new Headlines(
                    "compose",
                    "bytes per second, relative to the STREAM triad",
                    true,
                    parts -> !parts.contender().startsWith("triad")
                            && !parts.subject().startsWith("1e+06")),
            new Headlines(
                    "scale",
                    "speed of a client step, relative to K = 10, to d = 1, to one device",
                    false,
                    parts -> parts.subject().matches(".*(K = 1000|d = 64|devices = 4)")),
            new Headlines(
                    "exact-vs-ns",
                    "time of the exact factor, relative to five steps with the jordan coefficients",
                    false,
                    parts -> parts.subject().endsWith(", exact")),
            new Headlines(
                    "cluster",
                    "time of a round that computes nothing, relative to one process",
                    true,
                    parts -> !parts.contender().equals("one process")),
            new Headlines(
                    "ffi",
                    "time of a call, relative to ours (> 1: ours is faster)",
                    true,
                    parts -> parts.contender().matches("JNI|JNI, with addresses|JCuda.*")));

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
        text.append("| | ratio | command |\n|---|---|---|\n");
        for (Headlines headlines : HEADLINES) {
            Map<String, DoubleSummaryStatistics> ratios = new LinkedHashMap<>();
            for (Run run : runs) {
                ratios(run, headlines)
                        .forEach((name, ratio) -> ratios.computeIfAbsent(name, _ -> new DoubleSummaryStatistics())
                                .accept(ratio));
            }
            if (!ratios.isEmpty()) {
                text.append("| **%s** | | `./fedcomuon bench %s` |%n".formatted(headlines.what(), headlines.suite()));
            }
            ratios.forEach((name, ratio) -> text.append("| %s | %s | |%n".formatted(name, range(ratio))));
        }
        return text.toString();
    }

    private static Map<String, Double> ratios(Run run, Headlines headlines) {
        Map<String, Double> ratios = new LinkedHashMap<>();
        for (BenchReport report : run.reports()) {
            if (report.suite().equals(headlines.suite())) {
                for (BenchReport.Row row : report.rows()) {
                    Parts parts = Parts.of(row);
                    if (headlines.choice().test(parts)) {
                        ratios.merge(headlines.whole() ? row.name() : parts.subject(), row.ratio(), Math::min);
                    }
                }
            }
        }
        return ratios;
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
