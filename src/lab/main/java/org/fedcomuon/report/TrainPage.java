package org.fedcomuon.report;

import static java.util.stream.Collectors.joining;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Stream;
import org.fedcomuon.chart.Markup;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.chart.Scale;
import org.fedcomuon.experiment.RunRecord;
import org.fedcomuon.experiment.RunRecord.State;

/** Training runs as a page: results, curves, cost, and settings. */
public final class TrainPage {
    /** The first of these metrics that a run has determines the best run. */
    private static final List<Metric> SCORES = List.of(
            Metric.TEST_ACCURACY,
            Metric.TEST_PERPLEXITY,
            Metric.TEST_AUC,
            Metric.TEST_LOSS,
            Metric.DISTANCE,
            Metric.TEST_OBJECTIVE,
            Metric.TRAIN_LOSS,
            Metric.TRAIN_OBJECTIVE);

    private static final List<Metric> FINAL_VALUES = List.of(
            Metric.TEST_ACCURACY,
            Metric.WORST_ACCURACY,
            Metric.TEST_PERPLEXITY,
            Metric.TEST_AUC,
            Metric.WORST_AUC,
            Metric.TEST_LOSS,
            Metric.WORST_LOSS,
            Metric.TRAIN_LOSS,
            Metric.DISTANCE,
            Metric.EXCESS,
            Metric.TEST_OBJECTIVE,
            Metric.WORST_OBJECTIVE,
            Metric.TRAIN_OBJECTIVE,
            Metric.VALIDATION_ACCURACY,
            Metric.VALIDATION_PERPLEXITY,
            Metric.VALIDATION_AUC,
            Metric.VALIDATION_LOSS,
            Metric.VALIDATION_OBJECTIVE,
            Metric.WORST_VALIDATION_ACCURACY,
            Metric.WORST_VALIDATION_AUC,
            Metric.WORST_VALIDATION_LOSS,
            Metric.STEP,
            Metric.GRADIENTS,
            Metric.SECONDS,
            Metric.OPTIMIZER,
            Metric.BYTES);

    /** The summary's key for the reason of a divergence. */
    private static final String FAILURE = "failure";

    private static final String NOTHING = "–";
    private static final int LONG_VALUE = 30;
    private static final int MOST_NAMED = 2;
    private static final int SHORT_HASH = 12;

    /** A part of a run's time. */
    private record Phase(String name, String key, String style) {}

    private static final List<Phase> PHASES = List.of(
            new Phase("gradients", "gradient_seconds", "c1"),
            new Phase("orthogonalizing", "orthogonalize_seconds", "c2"),
            new Phase("exchange", "exchange_seconds", "c3"),
            new Phase("evaluations", "evaluate_seconds", "c4"));

    private static final String OTHER = "other";

    private final List<RunSeries> runs;
    /** Empty if no run has a score. */
    private final Optional<Metric> score;

    private TrainPage(List<RunRecord> records) {
        runs = RunSeries.of(records);
        score = SCORES.stream()
                .filter(metric -> records.stream().anyMatch(metric::isIn))
                .findFirst();
    }

    /** Returns the page as one HTML document without external references. */
    public static String html(List<RunRecord> runs) {
        var page = new TrainPage(runs);
        return Html.document(page.title(), page.body());
    }

    /** Returns the headline's values step by step, as an SVG document. Empty if nothing was evaluated. */
    public static Optional<String> figure(List<RunRecord> runs) {
        var page = new TrainPage(runs);
        Figure figure = RunFigures.each(
                "main", "", "", RunFigures.byStep(page.headlineMetrics().toArray(Metric[]::new)), page.runs);
        return figure.plots().isEmpty() ? Optional.empty() : Optional.of(figure.svg(page.title()));
    }

    private String title() {
        if (runs.size() == 1) {
            return runs.getFirst().run().name();
        }
        List<String> presets = settings("preset");
        return runs.size() + " runs" + (presets.size() == 1 ? " of " + presets.getFirst() : "");
    }

    private String body() {
        var html = new StringBuilder();
        html.append("<header>\n<h1>%s</h1>\n<p class=\"facts\">%s</p>\n</header>\n"
                .formatted(Markup.escape(title()), Markup.escape(facts())));
        html.append(headline());
        runs.forEach(series -> html.append(warning(series)));
        if (runs.stream().anyMatch(series -> !series.run().evaluations().isEmpty())) {
            html.append(progress()).append(cost()).append(time());
        }
        return html.append(values())
                .append(ClientsSection.html(runs))
                .append(maps("Settings", "settings", TrainPage::settings))
                .append(maps("Environment", "facts", TrainPage::environment))
                .toString();
    }

    /** Returns the settings that are the same for all runs. */
    private String facts() {
        var facts = new ArrayList<String>();
        if (runs.size() == 1) {
            only("preset", "%s").ifPresent(facts::add);
        }
        only("method", "%s").ifPresent(facts::add);
        only("seed", "seed %s").ifPresent(facts::add);
        only("clients", "%s clients").ifPresent(facts::add);
        only("iterations", "%s steps").ifPresent(facts::add);
        only("tau", "averaged every %s").ifPresent(facts::add);
        only("stopped_early", "ended early: %s").ifPresent(facts::add);
        return String.join(" · ", facts);
    }

    private Optional<String> only(String key, String format) {
        List<String> values = settings(key);
        return values.size() == 1 ? Optional.of(format.formatted(values.getFirst())) : Optional.empty();
    }

    private List<String> settings(String key) {
        return runs.stream()
                .flatMap(series -> series.run().setting(key).stream())
                .distinct()
                .toList();
    }

    private String headline() {
        if (score.isEmpty()) {
            return "<p><strong>Nothing was evaluated%s.</strong></p>\n"
                    .formatted(
                            runs.stream().anyMatch(series -> series.run().state() == State.UNFINISHED) ? " yet" : "");
        }
        List<Metric> shown = headlineMetrics();
        if (runs.size() > 1) {
            return "<p><strong>%s</strong></p>\n"
                    .formatted(
                            shown.stream().map(this::best).map(Markup::escape).collect(joining("<br/>\n")));
        }
        RunRecord run = runs.getFirst().run();
        String values = shown.stream()
                .map(metric -> metric.name() + " " + text(metric, run))
                .collect(joining(", "));
        String step = text(Metric.STEP, run);
        return "<p><strong>%s after %s steps.</strong></p>\n"
                .formatted(Markup.escape(capitalized(values)), Markup.escape(step));
    }

    /** Returns the metrics of the headline: the score, and that of the worst client. */
    private List<Metric> headlineMetrics() {
        return Stream.concat(
                        score.stream(),
                        Stream.of(Metric.WORST_ACCURACY, Metric.WORST_AUC, Metric.WORST_LOSS, Metric.WORST_OBJECTIVE))
                .filter(metric -> runs.stream().anyMatch(series -> metric.isIn(series.run())))
                .limit(2)
                .toList();
    }

    private String best(Metric metric) {
        OptionalDouble best = bestValue(metric);
        if (best.isEmpty()) {
            return "No run that counts has a finite %s.".formatted(metric.name());
        }
        List<String> who = runs.stream()
                .filter(series -> counts(series) && equal(metric.last(series.run()), best))
                .map(RunSeries::label)
                .toList();
        return "Best %s: %s (%s)."
                .formatted(
                        metric.name(),
                        metric.text(best.getAsDouble()),
                        who.size() > MOST_NAMED ? who.size() + " runs" : String.join("; ", who));
    }

    /** Returns a warning about a run; empty if it finished. */
    private String warning(RunSeries series) {
        RunRecord run = series.run();
        String who = runs.size() == 1 ? "This run" : series.label();
        String last = run.last()
                .map(evaluation -> "its last evaluation is that of step %s".formatted(evaluation.step()))
                .orElse("it has no evaluation");
        String why = run.summary()
                .map(summary -> summary.get(FAILURE))
                .map(failure -> " (%s)".formatted(plain(failure)))
                .orElse("");
        String what = switch (run.state()) {
            case FINISHED -> "";
            case STOPPED -> "was stopped before its end";
            case DIVERGED -> "diverged";
            case UNFINISHED -> "has no summary: it is still running, or it crashed";
        };
        return what.isEmpty()
                ? ""
                : "<p class=\"warning\"><strong>%s %s</strong>%s; %s.</p>\n"
                        .formatted(Markup.escape(who), what, Markup.escape(why), last);
    }

    private String progress() {
        return RunFigures.each(
                        "progress",
                        "Step by step",
                        "All values are those of the average model, also between two rounds. The loss is the mean over"
                                + " clients; the objective is what is minimized. The worst client is the one for which"
                                + " the value is worst at that step, on the client’s own training data. The tables below have the"
                                + " last values.",
                        RunFigures.byStep(
                                Metric.TRAIN_OBJECTIVE,
                                Metric.TRAIN_LOSS,
                                Metric.TEST_LOSS,
                                Metric.VALIDATION_LOSS,
                                Metric.TEST_ACCURACY,
                                Metric.VALIDATION_ACCURACY,
                                Metric.TEST_PERPLEXITY,
                                Metric.VALIDATION_PERPLEXITY,
                                Metric.TEST_AUC,
                                Metric.VALIDATION_AUC,
                                Metric.TEST_OBJECTIVE,
                                Metric.VALIDATION_OBJECTIVE,
                                Metric.DISTANCE,
                                Metric.EXCESS,
                                Metric.WORST_LOSS,
                                Metric.WORST_ACCURACY,
                                Metric.WORST_AUC,
                                Metric.WORST_OBJECTIVE,
                                Metric.WORST_VALIDATION_LOSS,
                                Metric.WORST_VALIDATION_ACCURACY,
                                Metric.WORST_VALIDATION_AUC),
                        runs)
                .html();
    }

    private String cost() {
        if (score.isEmpty()) {
            return "";
        }
        Figure figure = RunFigures.each(
                "cost",
                "What it cost",
                "The same metric against time, including evaluations, and against the bytes sent by all clients and"
                        + " the server.",
                List.of(
                        new RunFigures.Panel(score.get(), Metric.SECONDS),
                        new RunFigures.Panel(score.get(), Metric.BYTES)),
                runs);
        return figure.plots().isEmpty() ? "" : figure.html();
    }

    private String time() {
        // Without measured phases the bar would only show 100 % of other work.
        List<RunSeries> timed = runs.stream()
                .filter(series -> seconds(series.run(), Metric.SECONDS.key()) > 0 && phases(series.run()) > 0)
                .toList();
        if (timed.isEmpty()) {
            return "";
        }
        var html = new StringBuilder("<section>\n<h2>Where the time went</h2>\n<div class=\"many\">\n");
        timed.forEach(series -> html.append(bar(series)));
        html.append(
                "</div>\n<p class=\"facts\">Other is the time that is not measured separately: trackers and momentum, checkpoints, and waiting"
                        + " for other devices.</p>\n");
        if (timed.stream().anyMatch(series -> phases(series.run()) > seconds(series.run(), Metric.SECONDS.key()))) {
            html.append(
                    "<p>Where several devices work at the same time, the shares are those of the sum of their times.</p>\n");
        }
        return html.append("</section>\n").toString();
    }

    private static String bar(RunSeries series) {
        double wall = seconds(series.run(), Metric.SECONDS.key());
        double total = Math.max(wall, phases(series.run()));
        var shares = new LinkedHashMap<Phase, Double>();
        PHASES.forEach(phase -> shares.put(phase, seconds(series.run(), phase.key) / total));
        shares.put(new Phase(OTHER, "", "rest"), (total - phases(series.run())) / total);
        var bar = new StringBuilder();
        var names = new StringBuilder();
        double from = 0;
        for (Map.Entry<Phase, Double> share : shares.entrySet()) {
            if (share.getValue() == 0) {
                continue;
            }
            double width = 100 * share.getValue();
            bar.append("<rect class=\"%s\" x=\"%s\" y=\"0\" width=\"%s\" height=\"10\"/>"
                    .formatted(share.getKey().style, Numbers.fixed(from, 2), Numbers.fixed(width, 2)));
            names.append("<li>%s%s %s</li>\n"
                    .formatted(swatch(share.getKey()), share.getKey().name, Numbers.percent(share.getValue(), 1)));
            from += width;
        }
        return """
                <div class="shares">
                <p><span>%s</span> <span>%s</span></p>
                <svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">%s</svg>
                <ul>
                %s</ul>
                </div>
                """.formatted(Markup.escape(series.label()), Markup.escape(Numbers.duration(wall)), bar, names);
    }

    private static String swatch(Phase phase) {
        return "<svg viewBox=\"0 0 10 10\" width=\"10\" height=\"10\" aria-hidden=\"true\">"
                + "<rect class=\"swatch %s\" width=\"10\" height=\"10\"/></svg> ".formatted(phase.style);
    }

    private static double phases(RunRecord run) {
        return PHASES.stream().mapToDouble(phase -> seconds(run, phase.key)).sum();
    }

    /** Returns the seconds of a phase, or 0 where it was not measured. */
    private static double seconds(RunRecord run, String key) {
        double seconds = run.last(key).orElse(0);
        return Scale.drawable(seconds) ? Math.max(0, seconds) : 0;
    }

    private String values() {
        List<Metric> metrics = FINAL_VALUES.stream()
                .filter(metric -> runs.stream()
                        .anyMatch(series -> metric.last(series.run()).isPresent()))
                .toList();
        if (metrics.isEmpty()) {
            return "";
        }
        var html = new StringBuilder("<section>\n<h2>Last values</h2>\n");
        if (runs.size() > 1) {
            html.append("<p>★ marks the best of its column, among runs that did not diverge.</p>\n");
        }
        html.append(tableStart("Last values", metrics.stream().map(Metric::name).toList()));
        for (RunSeries series : ranked()) {
            html.append(rowStart(series));
            for (Metric metric : metrics) {
                boolean best = runs.size() > 1 && counts(series) && equal(metric.last(series.run()), bestValue(metric));
                html.append(best ? "<td class=\"best\">" : "<td>")
                        .append(Markup.escape(text(metric, series.run())))
                        .append("</td>");
            }
            html.append("</tr>\n");
        }
        return html.append("</tbody>\n</table>\n</div>\n</section>\n").toString();
    }

    /** Returns the best run first, diverged runs last. */
    private List<RunSeries> ranked() {
        if (score.isEmpty()) {
            return runs;
        }
        Metric metric = score.get();
        Comparator<RunSeries> byValue = Comparator.comparingDouble(series -> {
            double value = metric.last(series.run()).orElse(Double.NaN);
            return metric.better() == Metric.Better.GREATER ? -value : value; // NaN is greater than all
        });
        return runs.stream()
                .sorted(Comparator.comparing((RunSeries series) -> !counts(series))
                        .thenComparing(byValue))
                .toList();
    }

    private static boolean counts(RunSeries series) {
        return series.run().state() != State.DIVERGED;
    }

    private OptionalDouble bestValue(Metric metric) {
        var values = runs.stream()
                .filter(TrainPage::counts)
                .map(series -> metric.last(series.run()))
                .flatMapToDouble(OptionalDouble::stream)
                .filter(Double::isFinite);
        return switch (metric.better()) {
            case GREATER -> values.max();
            case LESS -> values.min();
            case NEITHER -> OptionalDouble.empty();
        };
    }

    private static boolean equal(OptionalDouble value, OptionalDouble best) {
        return best.isPresent() && value.equals(best);
    }

    private static String text(Metric metric, RunRecord run) {
        OptionalDouble value = metric.last(run);
        return value.isPresent() ? metric.text(value.getAsDouble()) : NOTHING;
    }

    /** Returns settings or facts of all runs: those that differ as a table, the others below it. */
    private String maps(String heading, String what, Function<RunSeries, Map<String, String>> of) {
        List<Map<String, String>> maps = runs.stream().map(of).toList();
        Set<String> keys = new LinkedHashSet<>();
        maps.forEach(map -> keys.addAll(map.keySet()));
        if (keys.isEmpty()) {
            return "";
        }
        var html = new StringBuilder("<section>\n<h2>%s</h2>\n".formatted(heading));
        // a run without entries has not written them yet
        List<Map<String, String>> entries =
                maps.stream().filter(map -> !map.isEmpty()).toList();
        List<String> differing = keys.stream()
                .filter(key ->
                        entries.stream().map(map -> map.get(key)).distinct().count() > 1)
                .toList();
        if (!differing.isEmpty()) {
            html.append(tableStart(heading, differing));
            for (int i = 0; i < runs.size(); i++) {
                html.append(rowStart(runs.get(i)));
                for (String key : differing) {
                    html.append(cell(Objects.requireNonNullElse(maps.get(i).get(key), NOTHING)));
                }
                html.append("</tr>\n");
            }
            html.append("</tbody>\n</table>\n</div>\n");
        }
        var common = new LinkedHashMap<>(entries.getFirst());
        common.keySet().removeAll(differing);
        if (runs.size() == 1) {
            html.append(list(common));
        } else if (!common.isEmpty()) {
            html.append("<details>\n<summary>%s %s that all %s share</summary>\n%s</details>\n"
                    .formatted(
                            common.size(),
                            what,
                            entries.size() == runs.size() ? "runs" : "runs with a summary",
                            list(common)));
        }
        return html.append("</section>\n").toString();
    }

    /** Returns a list with short entries first, several per line; each long entry has its own line. */
    private static String list(Map<String, String> map) {
        var entries = new StringBuilder();
        var wide = new StringBuilder();
        map.forEach((key, value) -> {
            boolean fits = key.length() + value.length() <= LONG_VALUE;
            (fits ? entries : wide)
                    .append("<div%s><dt>%s</dt><dd>%s</dd></div>\n"
                            .formatted(fits ? "" : " class=\"wide\"", Markup.escape(key), Markup.escape(value)));
        });
        return "<dl class=\"settings\">\n%s%s</dl>\n".formatted(entries, wide);
    }

    /** Returns a cell. A hash is abbreviated, because its beginning is enough to compare it. */
    private static String cell(String value) {
        return value.matches("[0-9a-f]{40,}")
                ? "<td title=\"%s\">%s…</td>".formatted(value, value.substring(0, SHORT_HASH))
                : "<td class=\"%s\">%s</td>".formatted(value.length() > LONG_VALUE ? "text" : "", Markup.escape(value));
    }

    private static Map<String, String> settings(RunSeries series) {
        var settings = new LinkedHashMap<String, String>();
        if (!series.label().equals(series.run().name())) {
            settings.put("directory", series.run().name());
        }
        settings.putAll(series.run().config());
        return settings;
    }

    /** Returns the entries of the summary other than settings, metrics, and the text of {@link #warning}. */
    private static Map<String, String> environment(RunSeries series) {
        RunRecord run = series.run();
        var environment = new LinkedHashMap<String, String>();
        run.summary().orElse(Map.of()).forEach((key, value) -> {
            String text = formatted(key, value);
            boolean metric = key.equals("step")
                    || key.equals("round")
                    || run.last().map(last -> last.metrics().containsKey(key)).orElse(false);
            boolean shown = key.equals("diverged")
                    || key.equals("split")
                    || key.equals("stopped")
                    || key.equals(FAILURE)
                    || text.equals(run.config().get(key));
            if (!metric && !shown) {
                environment.put(name(key), text);
            }
        });
        return environment;
    }

    /** Returns the name without the unit, which {@link #formatted} puts beside the number. */
    private static String name(String key) {
        return key.replaceFirst("_seconds$", "_time")
                .replaceFirst("_bytes$", "")
                .replace('_', ' ');
    }

    private static String formatted(String key, Object value) {
        return switch (value) {
            case Number seconds when key.endsWith("_seconds") -> Numbers.duration(seconds.doubleValue());
            case Number bytes when key.endsWith("_bytes") -> Numbers.bytes(bytes.doubleValue());
            case Double number -> Numbers.nearOne(number);
            default -> plain(value);
        };
    }

    private static String plain(Object value) {
        return switch (value) {
            case List<?> list -> list.stream().map(TrainPage::plain).collect(joining(", "));
            case Map<?, ?> map ->
                map.entrySet().stream()
                        .map(entry -> entry.getKey() + " " + plain(entry.getValue()))
                        .collect(joining(", "));
            default -> value.toString();
        };
    }

    private static String tableStart(String label, List<String> columns) {
        return """
                <div class="scroll" role="region" aria-label="%s" tabindex="0">
                <table class="runs">
                <thead>
                <tr><th class="text" scope="col">run</th>%s</tr>
                </thead>
                <tbody>
                """.formatted(
                        label,
                        columns.stream()
                                .map(column -> "<th scope=\"col\">%s</th>".formatted(breakable(column)))
                                .collect(joining()));
    }

    /** Returns markup in which the name of a setting may be broken before each of its words. */
    private static String breakable(String name) {
        return Markup.escape(name).replaceAll("(?<=[a-z])(?=[A-Z])", "<wbr/>");
    }

    private String rowStart(RunSeries series) {
        String state = switch (series.run().state()) {
            case FINISHED -> "";
            case STOPPED -> "<small>stopped</small>";
            case DIVERGED -> "<small>diverged</small>";
            case UNFINISHED -> "<small>without a summary</small>";
        };
        return "<tr><th class=\"text\" scope=\"row\">%s%s</th>".formatted(Markup.escape(series.label()), state);
    }

    private static String capitalized(String text) {
        return text.substring(0, 1).toUpperCase(Locale.ROOT) + text.substring(1);
    }
}
