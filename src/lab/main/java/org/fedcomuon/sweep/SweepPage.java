package org.fedcomuon.sweep;

import static java.util.stream.Collectors.joining;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.chart.Markup;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.experiment.statistics.Holm;
import org.fedcomuon.experiment.statistics.PairedSample;
import org.fedcomuon.experiment.statistics.Summary;
import org.fedcomuon.report.Html;

/** A sweep as a page: the best settings of each method, all settings in order, maps, and every trial. */
final class SweepPage {
    private final SweepRecord sweep;

    private SweepPage(SweepRecord sweep) {
        this.sweep = sweep;
    }

    /** Returns the page as one HTML document; its only references are to files of the sweep. */
    static String html(SweepRecord sweep) {
        var page = new SweepPage(sweep);
        return Html.document(page.title(), page.body());
    }

    private String title() {
        return "Sweep of " + sweep.preset();
    }

    private String body() {
        return "<header>\n<h1>%s</h1>\n<p class=\"facts\">%s</p>\n</header>\n"
                        .formatted(Markup.escape(title()), Markup.escape(facts()))
                + warnings()
                + best()
                + rankings()
                + new HeatMaps(sweep, this::text).html()
                + trials();
    }

    private String facts() {
        return String.join(
                " · ",
                sweep.isComplete()
                        ? count(sweep.planned(), "trial")
                        : "%d of %s".formatted(sweep.trials().size(), count(sweep.planned(), "trial")),
                sweep.strategy(),
                count(sweep.methods().size(), "method"),
                sweep.seeds().size() == 1
                        ? "seed " + sweep.seeds().getFirst()
                        : "seeds %d to %d"
                                .formatted(
                                        sweep.seeds().getFirst(), sweep.seeds().getLast()),
                "by " + name());
    }

    private static String count(int number, String what) {
        return number + " " + what + (number == 1 ? "" : "s");
    }

    /** Returns the metric in words. */
    private String name() {
        return sweep.metric().name().replace('_', ' ');
    }

    private String text(double value) {
        String metric = sweep.metric().name();
        return metric.endsWith("accuracy") || metric.endsWith("auc")
                ? Numbers.percent(value, 2)
                : Numbers.nearOne(value);
    }

    private String warnings() {
        var html = new StringBuilder();
        if (!sweep.isComplete()) {
            html.append(
                    "<p class=\"warning\"><strong>The sweep is not complete.</strong> It is still running, or was stopped; the"
                            + " same command continues it.</p>\n");
        }
        long diverged = count(Trial.State.DIVERGED);
        long failed = count(Trial.State.FAILED);
        if (diverged + failed > 0) {
            html.append("<p class=\"warning\">%s. Settings without a value for every seed are not compared.</p>\n"
                    .formatted(
                            diverged == 0
                                    ? failed + " failed"
                                    : failed == 0
                                            ? diverged + " diverged"
                                            : "%d diverged, %d failed".formatted(diverged, failed)));
        }
        if (sweep.seeds().size() == 1) {
            html.append(
                    "<p>One seed: the difference between seeds is unknown, so that a small difference is inconclusive.</p>\n");
        }
        return html.toString();
    }

    private long count(Trial.State state) {
        return sweep.trials().stream().filter(trial -> trial.state() == state).count();
    }

    private String best() {
        var html = new StringBuilder("""
                <section>
                <h2>Best settings of each method</h2>
                <p>Chosen by %s. Validation examples are a share of each client’s training examples, on which no trial
                trains. Nothing here was chosen by the test set, whose figures are in the reports of the trials.</p>
                <div class="scroll" role="region" aria-label="Best settings" tabindex="0">
                <table class="runs">
                <thead><tr><th class="text" scope="col">method</th><th class="text" scope="col">settings</th>
                <th scope="col">mean</th><th scope="col">spread</th><th scope="col">95 %% interval</th>
                <th class="text" scope="col">for <code>train</code></th></tr></thead>
                <tbody>
                """.formatted(Markup.escape(name())));
        for (String method : sweep.methods()) {
            Optional<Standing> standing = sweep.bestStanding(method);
            html.append("<tr><th class=\"text\" scope=\"row\">")
                    .append(Markup.escape(method))
                    .append("</th>");
            if (standing.isPresent()) {
                html.append("<td class=\"text\">%s</td>%s<td class=\"text\">%s</td></tr>\n"
                        .formatted(
                                Markup.escape(standing.get().text()),
                                figures(standing.get()),
                                sweep.isComplete()
                                        ? "<a href=\"best-%1$s.yaml\">best-%1$s.yaml</a>".formatted(method)
                                        : "not yet"));
            } else {
                html.append("<td class=\"text\" colspan=\"5\">no settings have a value for every seed%s</td></tr>\n"
                        .formatted(sweep.isComplete() ? "" : " yet"));
            }
        }
        return html.append("</tbody>\n</table>\n</div>\n</section>\n").toString();
    }

    /** Returns the cells of mean, spread and interval. */
    private String figures(Standing standing) {
        if (standing.summary().isEmpty()) {
            return "<td>%s</td><td>–</td><td>–</td>".formatted(without(standing));
        }
        Summary summary = standing.summary().get();
        return "<td>%s</td><td>%s</td><td>%s</td>"
                .formatted(
                        text(summary.mean()),
                        summary.count() > 1 ? text(summary.deviation()) : "–",
                        summary.interval(SweepFiles.LEVEL)
                                .map(interval -> "%s to %s".formatted(text(interval.low()), text(interval.high())))
                                .orElse("–"));
    }

    /** Returns why a standing has no value. */
    static String without(Standing standing) {
        return standing.trials().stream().anyMatch(trial -> trial.state() == Trial.State.DIVERGED)
                ? "diverged"
                : standing.trials().stream().anyMatch(trial -> trial.state() == Trial.State.FAILED)
                        ? "failed"
                        : "not all seeds";
    }

    private String rankings() {
        Map<String, List<Standing>> rankings = sweep.rankings();
        var html = new StringBuilder("<section>\n<h2>Ranking</h2>\n<p>");
        if (rankings.size() > 1) {
            html.append(
                    "Methods that minimize different objectives have rankings of their own: the one that minimizes the loss"
                            + " itself has an advantage by a loss, which says nothing about the method. ");
        }
        html.append("""
                Spread is the standard deviation over seeds, and the interval is Student’s t. <i>p</i> is that of the paired t
                test against the first row, in both directions, after Holm’s correction for the number of rows: where it is not
                small, the seeds do not tell the two apart.</p>
                """);
        rankings.forEach((minimized, standings) -> html.append(ranking(minimized, standings)));
        return html.append("</section>\n").toString();
    }

    private String ranking(String minimized, List<Standing> standings) {
        var html = new StringBuilder();
        if (!minimized.isEmpty()) {
            html.append("<h3>Objective: %s</h3>\n".formatted(Markup.escape(minimized)));
        }
        html.append("""
                <div class="scroll" role="region" aria-label="Ranking" tabindex="0">
                <table class="runs">
                <thead><tr><th class="text" scope="col">method</th><th class="text" scope="col">settings</th>
                <th scope="col">mean</th><th scope="col">spread</th><th scope="col">95 % interval</th><th scope="col"><i>p</i></th>
                <th class="text" scope="col">trials by seed</th></tr></thead>
                <tbody>
                """);
        List<String> against = againstFirst(standings);
        for (int i = 0; i < standings.size(); i++) {
            Standing standing = standings.get(i);
            boolean isBest = i == 0 && standing.summary().isPresent() && standings.size() > 1;
            html.append(
                    "<tr><th class=\"text\" scope=\"row\">%s</th><td class=\"text%s\">%s</td>%s<td>%s</td><td class=\"text\">%s</td></tr>\n"
                            .formatted(
                                    Markup.escape(standing.method()),
                                    isBest ? " best" : "",
                                    Markup.escape(standing.text()),
                                    figures(standing),
                                    against.get(i),
                                    standing.trials().stream().map(this::value).collect(joining(" · "))));
        }
        return html.append("</tbody>\n</table>\n</div>\n").toString();
    }

    /** Returns the p-value of each row against the first one, as text. */
    private List<String> againstFirst(List<Standing> standings) {
        var compared = new ArrayList<Integer>();
        var values = new ArrayList<Double>();
        for (int i = 1; i < standings.size(); i++) {
            if (standings.get(i).summary().isPresent() && sweep.seeds().size() > 1) {
                compared.add(i);
                values.add(PairedSample.of(bySeed(standings.getFirst()), bySeed(standings.get(i)))
                        .tTest()
                        .twoSided());
            }
        }
        List<Double> adjusted = Holm.adjust(values);
        var texts = new ArrayList<>(standings.stream().map(_ -> "–").toList());
        for (int i = 0; i < compared.size(); i++) {
            double p = adjusted.get(i);
            texts.set(compared.get(i), p < 0.001 ? "&lt; 0.001" : Numbers.fixed(p, 3));
        }
        return texts;
    }

    private Map<Long, Double> bySeed(Standing standing) {
        var values = new LinkedHashMap<Long, Double>();
        standing.trials()
                .forEach(trial ->
                        trial.metric(sweep.metric().name()).ifPresent(value -> values.put(trial.seed(), value)));
        return values;
    }

    /** Returns the value of a trial as a link to its report. */
    private String value(Trial trial) {
        var value = trial.metric(sweep.metric().name());
        return link(trial, value.isPresent() ? text(value.getAsDouble()) : SweepFiles.state(trial));
    }

    /** Names of directories have only characters that a link may have. A trial that has failed has no report. */
    private static String link(Trial trial, String text) {
        return trial.state() == Trial.State.FAILED
                ? Markup.escape(text)
                : "<a href=\"trials/%s/report.html\">%s</a>"
                        .formatted(Markup.escape(trial.name()), Markup.escape(text));
    }

    private String trials() {
        boolean rungs = sweep.trials().stream().anyMatch(trial -> !trial.ranked());
        var html = new StringBuilder("<section>\n<h2>Trials</h2>\n");
        if (rungs) {
            html.append(
                    "<p>Those with fewer steps are of earlier rungs: the better half of them has gone on, from the beginning and"
                            + " with more steps.</p>\n");
        }
        html.append("""
                <div class="scroll" role="region" aria-label="Trials" tabindex="0">
                <table class="runs">
                <thead><tr><th class="text" scope="col">trial</th><th scope="col">steps</th><th scope="col">%s</th>
                <th scope="col">time</th><th class="text" scope="col">end</th></tr></thead>
                <tbody>
                """.formatted(Markup.escape(name())));
        for (Trial trial : sweep.trials()) {
            var value = trial.metric(sweep.metric().name());
            String end = trial.reason().isEmpty() && trial.state() == Trial.State.DONE
                    ? "done"
                    : SweepFiles.state(trial) + (trial.reason().isEmpty() ? "" : ": " + trial.reason());
            html.append(
                    "<tr><th class=\"text\" scope=\"row\">%s</th><td>%s</td><td>%s</td><td>%s</td><td class=\"text%s\">%s</td></tr>\n"
                            .formatted(
                                    link(trial, trial.label()),
                                    trial.iterations(),
                                    value.isPresent() ? text(value.getAsDouble()) : "–",
                                    trial.state() == Trial.State.FAILED ? "–" : Numbers.duration(trial.seconds()),
                                    trial.state() == Trial.State.DONE ? "" : " differs",
                                    Markup.escape(end)));
        }
        return html.append("</tbody>\n</table>\n</div>\n</section>\n").toString();
    }
}
