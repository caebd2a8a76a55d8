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
import org.fedcomuon.experiment.RunRecord;
import org.fedcomuon.experiment.RunRecord.State;

/** Runs as a page: what came out, how it came about, what it cost, and by which settings. */
public final class TrainPage {
    /** Of which the first that any run has decides which run is best. */
    private static final List<Metric> SCORES =
            List.of(Metric.TEST_ACCURACY, Metric.TEST_PERPLEXITY, Metric.TEST_LOSS, Metric.TRAIN_LOSS);

    private static final List<Metric> FINAL_VALUES = List.of(
            Metric.TEST_ACCURACY,
            Metric.WORST_ACCURACY,
            Metric.TEST_PERPLEXITY,
            Metric.TEST_LOSS,
            Metric.WORST_LOSS,
            Metric.TRAIN_LOSS,
            Metric.TRAIN_OBJECTIVE,
            Metric.STEP,
            Metric.GRADIENTS,
            Metric.SECONDS,
            Metric.OPTIMIZER,
            Metric.BYTES);

    /** The summary's key for why a run diverged. */
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

    /** One HTML document, which refers to nothing outside itself. */
    public static String html(List<RunRecord> runs) {
        var page = new TrainPage(runs);
        return Html.document(page.title(), page.body());
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
                .formatted(Html.escape(title()), Html.escape(facts())));
        html.append(headline());
        runs.forEach(series -> html.append(warning(series)));
        if (runs.stream().anyMatch(series -> !series.run().evaluations().isEmpty())) {
            html.append(progress()).append(cost()).append(time());
        }
        return html.append(values())
                .append(maps("Settings", "settings", TrainPage::settings))
                .append(maps("Environment", "facts", TrainPage::environment))
                .toString();
    }

    /** What is the same for all runs. */
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
        List<Metric> told = Stream.concat(score.stream(), Stream.of(Metric.WORST_ACCURACY, Metric.WORST_LOSS))
                .filter(metric -> runs.stream().anyMatch(series -> metric.isIn(series.run())))
                .limit(2)
                .toList();
        if (runs.size() > 1) {
            return "<p><strong>%s</strong></p>\n"
                    .formatted(told.stream().map(this::best).map(Html::escape).collect(joining("<br/>\n")));
        }
        RunRecord run = runs.getFirst().run();
        String values = told.stream()
                .map(metric -> metric.name() + " " + text(metric, run))
                .collect(joining(", "));
        String step = text(Metric.STEP, run);
        return "<p><strong>%s after %s steps.</strong></p>\n"
                .formatted(Html.escape(capitalized(values)), Html.escape(step));
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

    /** Empty for a run that ended as it should. */
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
            case UNFINISHED -> "has no summary: it is still under way, or it crashed";
        };
        return what.isEmpty()
                ? ""
                : "<p class=\"warning\"><strong>%s %s</strong>%s; %s.</p>\n"
                        .formatted(Html.escape(who), what, Html.escape(why), last);
    }

    private String progress() {
        return RunFigures.each(
                        "progress",
                        "Step by step",
                        "Loss: the mean over clients; objective: what is minimized. Of the average model, also between"
                                + " two rounds. Worst: the client for which it is worst at that step.",
                        RunFigures.byStep(
                                Metric.TRAIN_OBJECTIVE,
                                Metric.TRAIN_LOSS,
                                Metric.TEST_LOSS,
                                Metric.TEST_ACCURACY,
                                Metric.TEST_PERPLEXITY,
                                Metric.WORST_LOSS,
                                Metric.WORST_ACCURACY),
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
                "The same against time, evaluations included, and against the bytes that all clients and the server"
                        + " sent.",
                List.of(
                        new RunFigures.Panel(score.get(), Metric.SECONDS),
                        new RunFigures.Panel(score.get(), Metric.BYTES)),
                runs);
        return figure.plots().isEmpty() ? "" : figure.html();
    }

    private String time() {
        List<RunSeries> timed = runs.stream()
                .filter(series -> seconds(series.run(), Metric.SECONDS.key()) > 0)
                .toList();
        if (timed.isEmpty()) {
            return "";
        }
        var html = new StringBuilder("<section>\n<h2>Where the time went</h2>\n<div class=\"many\">\n");
        timed.forEach(series -> html.append(bar(series)));
        html.append(
                "</div>\n<p class=\"facts\">Other: trackers and momentum, checkpoints, waiting, and all the rest.</p>\n");
        if (timed.stream().anyMatch(series -> phases(series.run()) > seconds(series.run(), Metric.SECONDS.key()))) {
            html.append("<p>Where several devices work at once, shares are those of the sum of their times.</p>\n");
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
                """.formatted(Html.escape(series.label()), Html.escape(Numbers.duration(wall)), bar, names);
    }

    private static String swatch(Phase phase) {
        return "<svg viewBox=\"0 0 10 10\" width=\"10\" height=\"10\" aria-hidden=\"true\">"
                + "<rect class=\"swatch %s\" width=\"10\" height=\"10\"/></svg> ".formatted(phase.style);
    }

    private static double phases(RunRecord run) {
        return PHASES.stream().mapToDouble(phase -> seconds(run, phase.key)).sum();
    }

    /** 0 where it was not measured. */
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
                        .append(Html.escape(text(metric, series.run())))
                        .append("</td>");
            }
            html.append("</tr>\n");
        }
        return html.append("</tbody>\n</table>\n</div>\n</section>\n").toString();
    }

    /** The best first; what does not count last. */
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

    /** All that the runs say of themselves: what differs as a table, what does not below it. */
    private String maps(String heading, String what, Function<RunSeries, Map<String, String>> of) {
        List<Map<String, String>> maps = runs.stream().map(of).toList();
        Set<String> keys = new LinkedHashSet<>();
        maps.forEach(map -> keys.addAll(map.keySet()));
        if (keys.isEmpty()) {
            return "";
        }
        var html = new StringBuilder("<section>\n<h2>%s</h2>\n".formatted(heading));
        // a run without any has not said yet
        List<Map<String, String>> said =
                maps.stream().filter(map -> !map.isEmpty()).toList();
        List<String> differing = keys.stream()
                .filter(key -> said.stream().map(map -> map.get(key)).distinct().count() > 1)
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
        var common = new LinkedHashMap<>(said.getFirst());
        common.keySet().removeAll(differing);
        if (runs.size() == 1) {
            html.append(list(common));
        } else if (!common.isEmpty()) {
            html.append("<details>\n<summary>%s %s that all %s share</summary>\n%s</details>\n"
                    .formatted(
                            common.size(),
                            what,
                            said.size() == runs.size() ? "runs" : "runs with a summary",
                            list(common)));
        }
        return html.append("</section>\n").toString();
    }

    /** Short ones first, several a line; each long one has a line of its own. */
    private static String list(Map<String, String> map) {
        var entries = new StringBuilder();
        var wide = new StringBuilder();
        map.forEach((key, value) -> {
            boolean fits = key.length() + value.length() <= LONG_VALUE;
            (fits ? entries : wide)
                    .append("<div%s><dt>%s</dt><dd>%s</dd></div>\n"
                            .formatted(fits ? "" : " class=\"wide\"", Html.escape(key), Html.escape(value)));
        });
        return "<dl class=\"settings\">\n%s%s</dl>\n".formatted(entries, wide);
    }

    /** A hash is only ever compared: its beginning does. */
    private static String cell(String value) {
        return value.matches("[0-9a-f]{40,}")
                ? "<td title=\"%s\">%s…</td>".formatted(value, value.substring(0, SHORT_HASH))
                : "<td class=\"%s\">%s</td>".formatted(value.length() > LONG_VALUE ? "text" : "", Html.escape(value));
    }

    private static Map<String, String> settings(RunSeries series) {
        var settings = new LinkedHashMap<String, String>();
        if (!series.label().equals(series.run().name())) {
            settings.put("directory", series.run().name());
        }
        settings.putAll(series.run().config());
        return settings;
    }

    /** What the summary has beyond settings, metrics, and what {@link #warning} says. */
    private static Map<String, String> environment(RunSeries series) {
        RunRecord run = series.run();
        var environment = new LinkedHashMap<String, String>();
        run.summary().orElse(Map.of()).forEach((key, value) -> {
            String text = plain(value);
            boolean metric = key.equals("step")
                    || key.equals("round")
                    || run.last().map(last -> last.metrics().containsKey(key)).orElse(false);
            boolean told = key.equals("diverged")
                    || key.equals("stopped")
                    || key.equals(FAILURE)
                    || text.equals(run.config().get(key));
            if (!metric && !told) {
                environment.put(key, text);
            }
        });
        return environment;
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
                                .map(column -> "<th scope=\"col\">%s</th>".formatted(Html.escape(column)))
                                .collect(joining()));
    }

    private String rowStart(RunSeries series) {
        String state = switch (series.run().state()) {
            case FINISHED -> "";
            case STOPPED -> "<small>stopped</small>";
            case DIVERGED -> "<small>diverged</small>";
            case UNFINISHED -> "<small>without a summary</small>";
        };
        return "<tr><th class=\"text\" scope=\"row\">%s%s</th>".formatted(Html.escape(series.label()), state);
    }

    private static String capitalized(String text) {
        return text.substring(0, 1).toUpperCase(Locale.ROOT) + text.substring(1);
    }
}
