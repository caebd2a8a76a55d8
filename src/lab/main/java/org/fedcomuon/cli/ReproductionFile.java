package org.fedcomuon.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.fedcomuon.experiment.Comparison;
import org.fedcomuon.experiment.Reproduction;
import org.fedcomuon.experiment.RowValues;
import org.fedcomuon.experiment.Verdict;
import org.fedcomuon.experiment.statistics.Bootstrap;
import org.fedcomuon.experiment.statistics.Interval;
import org.fedcomuon.experiment.statistics.Summary;
import org.fedcomuon.file.MalformedFileException;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * The JSON file of a reproduction: every value by row, metric and seed, with what follows from them. Reading takes the
 * values alone, so that claims can be judged again without training.
 *
 * @param what was trained
 * @param rows in the order of the table
 */
record ReproductionFile(Reproduction what, List<Row> rows) {
    /** In the order of the table's columns; what a run does not have is left out. */
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

    private static final Bootstrap BOOTSTRAP = new Bootstrap(10_000, 1);

    /** A row, with the hash of each run's weights. */
    record Row(RowValues values, List<Long> seeds, List<String> sha256) {
        static Row of(Reproduction.Outcome outcome) {
            return new Row(
                    outcome.values(),
                    List.copyOf(outcome.runs().keySet()),
                    outcome.runs().values().stream()
                            .map(run -> run.setting("sha256").orElse(""))
                            .toList());
        }
    }

    static ReproductionFile of(Reproduction what, List<Reproduction.Outcome> outcomes) {
        return new ReproductionFile(what, outcomes.stream().map(Row::of).toList());
    }

    /**
     * Reads the values of a figure.
     *
     * @throws UsageException when the file is damaged, or not of this figure
     */
    static ReproductionFile read(Path file, Reproduction what) {
        try {
            JsonNode all = JsonMapper.shared().readTree(Files.readString(file));
            Map<String, String> changes = settings(all.required("changes"));
            if (!all.required("figure").stringValue().equals(what.name()) || !changes.equals(what.changes())) {
                throw new UsageException("--from %s: made by 'reproduce %s' with %s, and not by 'reproduce %s' with %s"
                        .formatted(
                                file,
                                all.required("figure").stringValue(),
                                words(changes),
                                what.name(),
                                words(what.changes())));
            }
            var rows = new ArrayList<Row>();
            for (JsonNode row : all.required("rows")) {
                rows.add(row(row));
            }
            long labels =
                    rows.stream().map(row -> row.values().label()).distinct().count();
            if (labels < rows.size()) {
                throw new IllegalArgumentException("%d rows with %d labels".formatted(rows.size(), labels));
            }
            var tuned = new LinkedHashMap<String, Map<String, String>>();
            all.path("tuned").properties().forEach(method -> tuned.put(method.getKey(), settings(method.getValue())));
            return new ReproductionFile(what.tuned(tuned), rows);
        } catch (JacksonException e) {
            throw new UsageException(
                    "--from %s: %s"
                            .formatted(
                                    file,
                                    e.getOriginalMessage().lines().findFirst().orElse("no JSON")),
                    e);
        } catch (IllegalArgumentException e) {
            throw new UsageException("--from %s: %s".formatted(file, e.getMessage()), e);
        } catch (IOException e) {
            throw new UsageException("--from %s: %s".formatted(file, MalformedFileException.reason(e)), e);
        }
    }

    private static Map<String, String> settings(JsonNode object) {
        var settings = new LinkedHashMap<String, String>();
        object.properties()
                .forEach(entry -> settings.put(entry.getKey(), entry.getValue().stringValue()));
        return settings;
    }

    private static String words(Map<String, String> changes) {
        return changes.isEmpty() ? "the settings of the preset" : changes.toString();
    }

    private static Row row(JsonNode row) {
        List<Long> seeds = longs(row.required("seeds"));
        var metrics = new LinkedHashMap<String, Map<Long, Double>>();
        row.required("metrics").properties().forEach(metric -> {
            JsonNode values = metric.getValue().required("values");
            if (values.size() != seeds.size()) {
                throw new IllegalArgumentException(
                        "%d values of %s for %d seeds".formatted(values.size(), metric.getKey(), seeds.size()));
            }
            var bySeed = new TreeMap<Long, Double>();
            for (int i = 0; i < seeds.size(); i++) {
                if (!values.get(i).isNull()) {
                    bySeed.put(seeds.get(i), values.get(i).doubleValue());
                }
            }
            metrics.put(metric.getKey(), bySeed);
        });
        var sha256 = new ArrayList<String>();
        row.required("sha256").forEach(hash -> sha256.add(hash.stringValue()));
        String label = row.required("row").stringValue();
        return new Row(new RowValues(label, metrics, longs(row.required("diverged"))), seeds, sha256);
    }

    private static List<Long> longs(JsonNode array) {
        var all = new ArrayList<Long>();
        array.forEach(element -> all.add(element.longValue()));
        return all;
    }

    List<RowValues> values() {
        return rows.stream().map(Row::values).toList();
    }

    /** Returns the metrics that any row has: a text has no accuracy, an image no perplexity. */
    List<String> metrics() {
        return METRICS.stream()
                .filter(metric ->
                        rows.stream().anyMatch(row -> !row.values().of(metric).isEmpty()))
                .toList();
    }

    String json(List<Verdict> verdicts) {
        var all = new LinkedHashMap<String, Object>();
        all.put("figure", what.name());
        all.put("preset", what.preset());
        all.put("changes", what.changes());
        if (!what.tuned().isEmpty()) {
            all.put("tuned", what.tuned());
        }
        all.put("rows", rows.stream().map(this::describe).toList());
        all.put("claims", verdicts.stream().map(ReproductionFile::describe).toList());
        return Json.pretty(all);
    }

    private Map<String, Object> describe(Row row) {
        var all = new LinkedHashMap<String, Object>();
        all.put("row", row.values().label());
        all.put("seeds", row.seeds());
        all.put("diverged", row.values().diverged());
        var metrics = new LinkedHashMap<String, Object>();
        for (String metric : metrics()) {
            var values = new ArrayList<@Nullable Double>();
            row.seeds().forEach(seed -> values.add(row.values().of(metric).get(seed)));
            var one = new LinkedHashMap<String, Object>();
            one.put("values", values);
            row.values().summary(metric).ifPresent(summary -> {
                one.put("mean", summary.mean());
                if (summary.count() > 1) {
                    one.put("deviation", summary.deviation());
                }
                summary.interval(Comparison.CONFIDENCE).ifPresent(interval -> one.put("interval", ends(interval)));
                BOOTSTRAP
                        .corrected(List.copyOf(row.values().of(metric).values()), Comparison.CONFIDENCE)
                        .ifPresent(interval -> one.put("bootstrap_interval", ends(interval)));
            });
            metrics.put(metric, one);
        }
        all.put("metrics", metrics);
        all.put("sha256", row.sha256());
        return all;
    }

    private static Map<String, Object> describe(Verdict verdict) {
        var all = new LinkedHashMap<String, Object>();
        all.put("claim", verdict.claim());
        all.put("answer", verdict.answer().toString());
        all.put("reason", verdict.reason());
        if (!verdict.evidence().comparisons().isEmpty()) {
            all.put("p", verdict.p());
            all.put("p_yes", verdict.evidence().test().greater());
            all.put("p_no", verdict.evidence().test().less());
            all.put("p_yes_sign_flips", verdict.evidence().check().greater());
            all.put("p_no_sign_flips", verdict.evidence().check().less());
        }
        verdict.seeds().ifPresent(seeds -> all.put("seeds_to_decide", seeds));
        all.put(
                "comparisons",
                verdict.evidence().comparisons().stream()
                        .map(ReproductionFile::describe)
                        .toList());
        return all;
    }

    private static Map<String, Object> describe(Comparison comparison) {
        var all = new LinkedHashMap<String, Object>();
        all.put("rival", comparison.rival());
        all.put("seeds", comparison.seeds());
        all.put("ahead", comparison.ahead());
        all.put("behind", comparison.behind());
        all.put("diverged", comparison.diverged());
        if (comparison.lead().count() > 0) {
            Summary lead = comparison.lead().summary();
            all.put("mine", comparison.mine());
            all.put("its", comparison.its());
            all.put("lead", lead.mean());
            if (lead.count() > 1) {
                all.put("deviation", lead.deviation());
            }
        }
        comparison.interval().ifPresent(interval -> all.put("interval", ends(interval)));
        comparison.bootstrap().ifPresent(interval -> all.put("bootstrap_interval", ends(interval)));
        all.put("p_ahead", comparison.test().greater());
        all.put("p_behind", comparison.test().less());
        return all;
    }

    private static List<Double> ends(Interval interval) {
        return List.of(interval.low(), interval.high());
    }
}
