package org.fedcomuon.bench;

import static java.util.stream.Collectors.joining;

import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.StringJoiner;
import java.util.function.Function;

/** A report as {@code bench} prints it. */
final class ReportText {
    private static final String AIM = "aim"; // the head of its column

    private ReportText() {}

    static void print(PrintWriter out, BenchReport report) {
        out.printf("%s on %s%n%s%n", report.suite(), report.device(), report.explanation());
        boolean moving = report.rows().stream().anyMatch(row -> row.bytes() > 0);
        boolean calls = report.rows().stream().allMatch(row -> row.seconds() < 1e-4);
        int aim = width(report, AIM.length(), ReportText::aims);
        int verdict = width(report, 0, ReportText::verdicts);
        String moves = moving ? "   GB moved     GB/s" : "";
        out.printf(
                "%8s  %s %10s %8s%s%n",
                "ratio", pad(AIM, aim) + "  " + pad("", verdict), calls ? "ns" : "ms", "spread", moves);
        for (BenchReport.Row row : report.rows()) {
            String moved = moving ? " %10.3f %8.1f".formatted(row.bytes() * 1e-9, row.gigabytesPerSecond()) : "";
            out.printf(
                    "%8.2f  %s  %s %10.3f %7.1f%%%s  %s%n",
                    row.ratio(),
                    pad(aims(row), aim),
                    pad(verdicts(row), verdict),
                    row.seconds() * (calls ? 1e9 : 1e3),
                    row.spread() * 100,
                    moved,
                    row.name() + parts(row));
        }
        report.notes().forEach(out::println);
        new AimCheck().add(report).summary().ifPresent(out::println);
        out.println();
        out.flush();
    }

    private static String aims(BenchReport.Row row) {
        return joined(row.aims(), judgement -> judgement.aim().toString());
    }

    private static String verdicts(BenchReport.Row row) {
        return joined(row.aims(), Judgement::text);
    }

    private static String joined(List<Judgement> aims, Function<Judgement, String> text) {
        return aims.stream().map(text).collect(joining("; "));
    }

    private static int width(BenchReport report, int least, Function<BenchReport.Row, String> cell) {
        return report.rows().stream().mapToInt(row -> cell.apply(row).length()).reduce(least, Math::max);
    }

    private static String pad(String text, int width) {
        return text + " ".repeat(width - text.length());
    }

    private static String parts(BenchReport.Row row) {
        if (row.parts().isEmpty()) {
            return "";
        }
        var shares = new StringJoiner(", ", " (", ")");
        row.parts().forEach((name, share) -> shares.add(String.format(Locale.ROOT, "%s %.0f%%", name, 100 * share)));
        return shares.toString();
    }
}
