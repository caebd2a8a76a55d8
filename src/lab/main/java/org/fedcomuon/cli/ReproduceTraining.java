package org.fedcomuon.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.LongStream;
import org.fedcomuon.experiment.Reproduction;
import org.fedcomuon.experiment.RowValues;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.experiment.Verdict;
import org.fedcomuon.experiment.statistics.Summary;
import org.fedcomuon.report.ReproductionPage;

/** Makes the figures that consist of training runs: trains the runs that do not exist yet, then compares all. */
final class ReproduceTraining {
    /** The first seed, as in the paper; the others follow it. */
    private static final long FIRST_SEED = 42;

    private final Reproduction what;
    private final PrintWriter print;

    ReproduceTraining(Reproduction what, PrintWriter print) {
        this.what = what;
        this.print = print;
    }

    void run(Path directory, int seeds, Training.Options options, int parallel)
            throws IOException, InterruptedException {
        List<Reproduction.Outcome> outcomes = what.run(
                directory,
                LongStream.range(FIRST_SEED, FIRST_SEED + seeds).boxed().toList(),
                options,
                parallel,
                line -> {
                    print.println(line);
                    print.flush();
                });
        ReproductionFile values = ReproductionFile.of(what, outcomes);
        List<Verdict> verdicts = what.verdicts(values.values());
        write(directory, values, verdicts);
        Path page = directory.resolve(what.name() + ".html");
        WholeFile.write("--out", page, ReproductionPage.html(what, outcomes, verdicts));
        print.println(page);
        print.flush();
    }

    /**
     * Judges the claims by values that a file has, without training; curves are in the runs alone, so there is no page.
     */
    void judge(Path file, Path directory) {
        ReproductionFile values = ReproductionFile.read(file, what);
        write(directory, values, what.verdicts(values.values()));
    }

    private void write(Path directory, ReproductionFile values, List<Verdict> verdicts) {
        Path json = directory.resolve(what.name() + ".json");
        Path table = directory.resolve(what.name() + ".md");
        String text = table(values) + '\n' + claims(verdicts);
        WholeFile.write("--out", json, values.json(verdicts));
        WholeFile.write("--out", table, "# %s%n%n%s".formatted(what.name(), text));
        print.printf("%n%s%n%s%n%s%n", text, json, table);
        print.flush();
    }

    private static String table(ReproductionFile values) {
        List<String> metrics = values.metrics();
        var text = new StringBuilder(
                "Mean ± standard deviation over n seeds.\n\n| | n | %s |\n".formatted(String.join(" | ", metrics)));
        text.append("|---|---:|").append("---|".repeat(metrics.size())).append('\n');
        for (ReproductionFile.Row row : values.rows()) {
            text.append("| %s | %d".formatted(row.values().label(), row.seeds().size()));
            for (String metric : metrics) {
                text.append(" | ").append(cell(row.values(), metric));
            }
            text.append(" |").append('\n');
        }
        String tuned = values.what().tunedText();
        if (!tuned.isEmpty()) {
            text.append("\nSettings found on validation examples: ")
                    .append(tuned)
                    .append(".\n");
        }
        return text.toString();
    }

    private static String cell(RowValues row, String metric) {
        return row.summary(metric)
                .map(ReproduceTraining::words)
                .orElse(
                        row.diverged().isEmpty()
                                ? "–"
                                : "diverged with %d".formatted(row.diverged().size()));
    }

    private static String words(Summary summary) {
        return summary.count() == 1
                ? String.format(Locale.ROOT, "%.4f", summary.mean())
                : String.format(Locale.ROOT, "%.4f ± %.4f", summary.mean(), summary.deviation());
    }

    private static String claims(List<Verdict> verdicts) {
        if (verdicts.isEmpty()) {
            return "";
        }
        var text = new StringBuilder();
        verdicts.forEach(verdict -> text.append("- ").append(verdict).append('\n'));
        return text.append('\n').append(Verdict.HOW).append('\n').toString();
    }
}
