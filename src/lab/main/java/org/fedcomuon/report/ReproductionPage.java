package org.fedcomuon.report;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.fedcomuon.chart.Markup;
import org.fedcomuon.experiment.Claim;
import org.fedcomuon.experiment.Reproduction;
import org.fedcomuon.experiment.RunRecord;

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
    public static String html(Reproduction what, List<Reproduction.Outcome> outcomes, List<Claim.Verdict> verdicts) {
        var curves = new StringBuilder();
        List<String> panels =
                outcomes.stream().map(Reproduction.Outcome::panel).distinct().toList();
        for (int i = 0; i < panels.size(); i++) {
            curves.append(curves("curves-" + i, panels.get(i), outcomes));
        }
        int seeds = outcomes.isEmpty() ? 0 : outcomes.getFirst().runs().size();
        return Html.document(
                what.name(),
                "<header>\n<h1>%s</h1>\n<p class=\"facts\">%s · %d rows · %d seeds</p>\n</header>\n"
                                .formatted(
                                        Markup.escape(what.name()),
                                        Markup.escape(what.preset()),
                                        outcomes.size(),
                                        seeds)
                        + claims(verdicts)
                        + curves
                        + table(outcomes));
    }

    private static String curves(String id, String panel, List<Reproduction.Outcome> outcomes) {
        Map<String, List<RunRecord>> groups = new LinkedHashMap<>();
        outcomes.stream()
                .filter(outcome -> outcome.panel().equals(panel))
                .forEach(outcome -> groups.put(outcome.labelInPanel(), outcome.runs()));
        return RunFigures.means(
                        id,
                        panel.isEmpty() ? "Curves" : "Curves, " + panel,
                        "The mean over seeds, in a band from the least to the greatest. The tables below have the last values.",
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

    private static String claims(List<Claim.Verdict> verdicts) {
        if (verdicts.isEmpty()) {
            return "";
        }
        var html = new StringBuilder("<section>\n<h2>What the paper claims</h2>\n<ul>\n");
        verdicts.forEach(verdict ->
                html.append("<li>").append(Markup.escape(verdict.toString())).append("</li>\n"));
        return html.append("</ul>\n<p>A difference smaller than that between seeds is a tie.</p>\n</section>\n")
                .toString();
    }

    private static String table(List<Reproduction.Outcome> outcomes) {
        var html = new StringBuilder("<section>\n<h2>Last values, mean over seeds</h2>\n");
        html.append(
                "<div class=\"scroll\" role=\"region\" aria-label=\"Last values\" tabindex=\"0\">\n<table>\n<thead><tr><th class=\"text\">row</th>");
        List<Metric> columns = COLUMNS.stream()
                .filter(metric -> outcomes.stream()
                        .flatMap(outcome -> outcome.runs().stream())
                        .anyMatch(metric::isIn))
                .toList();
        columns.forEach(metric ->
                html.append("<th>").append(Markup.escape(metric.name())).append("</th>"));
        html.append("</tr></thead>\n<tbody>\n");
        for (Reproduction.Outcome outcome : outcomes) {
            html.append("<tr><td class=\"text\">")
                    .append(Markup.escape(outcome.label()))
                    .append("</td>");
            for (Metric metric : columns) {
                html.append("<td>").append(Markup.escape(cell(metric, outcome))).append("</td>");
            }
            html.append("</tr>\n");
        }
        return html.append("</tbody>\n</table>\n</div>\n</section>\n").toString();
    }

    private static String cell(Metric metric, Reproduction.Outcome outcome) {
        return outcome.overSeeds(metric.key())
                .map(seeds -> metric.text(seeds.mean()))
                .orElse(outcome.diverged() ? "diverged" : "–");
    }
}
