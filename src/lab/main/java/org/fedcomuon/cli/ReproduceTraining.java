package org.fedcomuon.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.LongStream;
import org.fedcomuon.experiment.Claim;
import org.fedcomuon.experiment.Reproduction;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.report.ReproductionPage;

/** Makes the figures that consist of training runs: trains the runs that do not exist yet, then compares all. */
final class ReproduceTraining {
    /** The first seed, as in the paper; the others follow it. */
    private static final long FIRST_SEED = 42;

    private static final List<String> METRICS = List.of(
            "test_accuracy",
            "test_perplexity",
            "test_auc",
            "worst_client_auc",
            "test_loss",
            "train_loss",
            "worst_client_accuracy",
            "worst_client_loss",
            "unsteadiness");

    private final Reproduction what;
    private final PrintWriter print;

    ReproduceTraining(Reproduction what, PrintWriter print) {
        this.what = what;
        this.print = print;
    }

    void run(Path directory, int seeds, Training.Options options) throws IOException, InterruptedException {
        List<Reproduction.Outcome> outcomes = what.run(
                directory,
                LongStream.range(FIRST_SEED, FIRST_SEED + seeds).boxed().toList(),
                options,
                line -> {
                    print.println(line);
                    print.flush();
                });
        List<Claim.Verdict> verdicts = what.verdicts(outcomes);
        Path json = directory.resolve(what.name() + ".json");
        Path table = directory.resolve(what.name() + ".md");
        Path page = directory.resolve(what.name() + ".html");
        String text = table(outcomes) + '\n' + claims(verdicts) + caution(seeds);
        WholeFile.write("--out", json, Json.pretty(describe(outcomes, verdicts)));
        WholeFile.write("--out", table, "# %s%n%n%s".formatted(what.name(), text));
        WholeFile.write("--out", page, ReproductionPage.html(what, outcomes, verdicts));
        print.printf("%n%s%n%s%n%s%n%s%n", text, json, table, page);
        print.flush();
    }

    /** Returns the metrics that any run has: a text has no accuracy, an image no perplexity. */
    private static List<String> metrics(List<Reproduction.Outcome> outcomes) {
        return METRICS.stream()
                .filter(metric -> outcomes.stream()
                        .flatMap(outcome -> outcome.runs().stream())
                        .anyMatch(run -> Claim.value(run, metric).stream().anyMatch(value -> !Double.isNaN(value))
                                || run.evaluations().stream()
                                        .anyMatch(evaluation ->
                                                evaluation.metrics().containsKey(metric))))
                .toList();
    }

    private static String table(List<Reproduction.Outcome> outcomes) {
        List<String> metrics = metrics(outcomes);
        var text = new StringBuilder("| | %s |\n".formatted(String.join(" | ", metrics)));
        text.append("|---|").append("---|".repeat(metrics.size())).append('\n');
        for (Reproduction.Outcome outcome : outcomes) {
            text.append("| ").append(outcome.label());
            for (String metric : metrics) {
                text.append(" | ").append(cell(outcome, metric));
            }
            text.append(" |").append('\n');
        }
        return text.toString();
    }

    private static String cell(Reproduction.Outcome outcome, String metric) {
        return outcome.overSeeds(metric)
                .map(seeds -> String.format(Locale.ROOT, "%.4f ± %.4f", seeds.mean(), seeds.spread()))
                .orElse(outcome.diverged() ? "diverged" : "–");
    }

    private static String caution(int seeds) {
        return seeds > 1
                ? ""
                : "One seed: the difference between seeds is unknown, so a small difference is inconclusive.%n"
                        .formatted();
    }

    private static String claims(List<Claim.Verdict> verdicts) {
        var text = new StringBuilder();
        verdicts.forEach(verdict -> text.append("- ").append(verdict).append('\n'));
        return text.toString();
    }

    private Map<String, Object> describe(List<Reproduction.Outcome> outcomes, List<Claim.Verdict> verdicts) {
        var rows = new ArrayList<Map<String, Object>>();
        for (Reproduction.Outcome outcome : outcomes) {
            var row = new LinkedHashMap<String, Object>();
            row.put("row", outcome.label());
            for (String metric : metrics(outcomes)) {
                row.put(metric, outcome.values(metric));
            }
            row.put(
                    "sha256",
                    outcome.runs().stream()
                            .map(run -> run.setting("sha256").orElse(""))
                            .toList());
            rows.add(row);
        }
        var answers = new ArrayList<Map<String, Object>>();
        for (Claim.Verdict verdict : verdicts) {
            var answer = new LinkedHashMap<String, Object>();
            answer.put("claim", verdict.claim());
            answer.put("answer", verdict.answer().name().toLowerCase(Locale.ROOT));
            answer.put("rival", verdict.rival());
            answer.put("mine", verdict.mine());
            answer.put("its", verdict.its());
            answer.put("spread", verdict.spread());
            answers.add(answer);
        }
        var all = new LinkedHashMap<String, Object>();
        all.put("figure", what.name());
        all.put("preset", what.preset());
        all.put("changes", what.changes());
        all.put("rows", rows);
        all.put("claims", answers);
        return all;
    }
}
