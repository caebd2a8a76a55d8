package org.fedcomuon.report;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.fedcomuon.chart.Markup;
import org.fedcomuon.experiment.Comparison;
import org.fedcomuon.experiment.Reproduction;
import org.fedcomuon.experiment.RowValues;
import org.fedcomuon.experiment.RunRecord;
import org.fedcomuon.experiment.Verdict;
import org.fedcomuon.experiment.statistics.Interval;
import org.fedcomuon.experiment.statistics.Summary;

/** The reproduction of a figure of the paper as a page: curves, a table, and a verdict on each claim. */
public final class ReproductionPage {
    private static final List<Metric> COLUMNS = List.of(
            Metric.TEST_ACCURACY,
            Metric.TEST_PERPLEXITY,
            Metric.TEST_AUC,
            Metric.WORST_AUC,
            Metric.TEST_LOSS,
            Metric.TRAIN_LOSS,
            Metric.WORST_ACCURACY,
            Metric.WORST_LOSS,
            Metric.GRADIENTS,
            Metric.SECONDS,
            Metric.BYTES);

    private ReproductionPage() {}

    /** Returns the page as one HTML document without external references. */
    public static String html(Reproduction what, List<Reproduction.Outcome> outcomes, List<Verdict> verdicts) {
        var curves = new StringBuilder();
        List<String> panels =
                outcomes.stream().map(Reproduction.Outcome::panel).distinct().toList();
        for (int i = 0; i < panels.size(); i++) {
            curves.append(curves("curves-" + i, panels.get(i), outcomes));
        }
        long seeds = outcomes.stream()
                .flatMap(outcome -> outcome.runs().keySet().stream())
                .distinct()
                .count();
        return Html.document(
                what.name(),
                "<header>\n<h1>%s</h1>\n<p class=\"facts\">%s · %d rows · %d seeds%s</p>\n</header>\n"
                                .formatted(
                                        Markup.escape(what.name()),
                                        Markup.escape(what.preset()),
                                        outcomes.size(),
                                        seeds,
                                        what.tuned().isEmpty()
                                                ? ""
                                                : " · settings found on validation examples: "
                                                        + Markup.escape(what.tunedText()))
                        + claims(verdicts)
                        + curves
                        + table(outcomes));
    }

    private static String curves(String id, String panel, List<Reproduction.Outcome> outcomes) {
        Map<String, List<RunRecord>> groups = new LinkedHashMap<>();
        outcomes.stream()
                .filter(outcome -> outcome.panel().equals(panel))
                .forEach(outcome -> groups.put(
                        outcome.labelInPanel(), List.copyOf(outcome.runs().values())));
        return RunFigures.means(
                        id,
                        panel.isEmpty() ? "Curves" : "Curves, " + panel,
                        "The mean over seeds, in a band: the 95 % interval for the mean, or from the least value to the greatest where that is narrower, as with few seeds. The table below has the last values.",
                        RunFigures.byStep(
                                Metric.TRAIN_LOSS,
                                Metric.TEST_LOSS,
                                Metric.TEST_ACCURACY,
                                Metric.TEST_PERPLEXITY,
                                Metric.TEST_AUC,
                                Metric.WORST_AUC,
                                Metric.WORST_ACCURACY,
                                Metric.WORST_LOSS),
                        groups)
                .html();
    }

    private static String claims(List<Verdict> verdicts) {
        if (verdicts.isEmpty()) {
            return "";
        }
        var html = new StringBuilder("<section>\n<h2>Claims</h2>\n<ul>\n");
        for (Verdict verdict : verdicts) {
            html.append("<li>")
                    .append(Markup.escape(verdict.claim()))
                    .append(": <strong class=\"%s\">%s</strong><br/><small>%s</small></li>\n"
                            .formatted(look(verdict.answer()), verdict.answer(), Markup.escape(verdict.reason())));
        }
        return html.append("</ul>\n<p>%s</p>\n</section>\n".formatted(Markup.escape(Verdict.HOW)))
                .toString();
    }

    private static String look(Verdict.Answer answer) {
        return switch (answer) {
            case YES -> "agrees";
            case NO -> "differs";
            case NOT_DECIDED -> "";
        };
    }

    private static String table(List<Reproduction.Outcome> outcomes) {
        var html = new StringBuilder(
                "<section>\n<h2>Last values</h2>\n<p>Mean ± standard deviation over the seeds, and the 95 % interval for the mean.</p>\n");
        html.append(
                "<div class=\"scroll\" role=\"region\" aria-label=\"Last values\" tabindex=\"0\">\n<table>\n<thead><tr><th class=\"text\">row</th>");
        List<Metric> columns = COLUMNS.stream()
                .filter(metric -> outcomes.stream()
                        .flatMap(outcome -> outcome.runs().values().stream())
                        .anyMatch(metric::isIn))
                .toList();
        html.append("<th>seeds</th>");
        columns.forEach(metric ->
                html.append("<th>").append(Markup.escape(metric.name())).append("</th>"));
        html.append("</tr></thead>\n<tbody>\n");
        for (Reproduction.Outcome outcome : outcomes) {
            html.append("<tr><td class=\"text\">")
                    .append(Markup.escape(outcome.label()))
                    .append("</td><td>%d</td>".formatted(outcome.runs().size()));
            RowValues values = outcome.values();
            for (Metric metric : columns) {
                html.append("<td>").append(cell(metric, values)).append("</td>");
            }
            html.append("</tr>\n");
        }
        return html.append("</tbody>\n</table>\n</div>\n</section>\n").toString();
    }

    private static String cell(Metric metric, RowValues row) {
        return row.summary(metric.key())
                .map(summary -> Markup.escape(mean(metric, summary)) + interval(metric, summary))
                .orElse(
                        row.diverged().isEmpty()
                                ? "–"
                                : "diverged with %d".formatted(row.diverged().size()));
    }

    /** Returns the interval of a metric that rows are compared by; costs are not. */
    private static String interval(Metric metric, Summary summary) {
        return metric.better() == Metric.Better.NEITHER
                ? ""
                : summary.interval(Comparison.CONFIDENCE)
                        .map(interval -> "<small>%s</small>".formatted(Markup.escape(ends(metric, interval))))
                        .orElse("");
    }

    private static String mean(Metric metric, Summary summary) {
        String mean = metric.text(summary.mean());
        return summary.count() == 1 || summary.deviation() == 0
                ? mean
                : "%s ± %s".formatted(mean, metric.text(summary.deviation()));
    }

    private static String ends(Metric metric, Interval interval) {
        return "%s to %s".formatted(metric.text(interval.low()), metric.text(interval.high()));
    }
}
