package org.fedcomuon.sweep;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.fedcomuon.experiment.Configuration;
import org.fedcomuon.experiment.statistics.Interval;
import org.fedcomuon.experiment.statistics.Summary;
import org.fedcomuon.federation.RunFiles;
import org.fedcomuon.format.AtomicFile;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;

/** The files of a sweep in its directory. A file that exists is complete. Not thread-safe. */
final class SweepFiles {
    static final double LEVEL = 0.95;

    private static final JsonMapper JSON =
            JsonMapper.builder().enable(SerializationFeature.INDENT_OUTPUT).build();

    private final Path directory;

    SweepFiles(Path directory) {
        this.directory = directory;
    }

    /** Returns the directory of the trials. */
    Path trials() {
        return directory.resolve("trials");
    }

    Path page() {
        return directory.resolve("sweep.html");
    }

    static Path json(Path directory) {
        return directory.resolve("sweep.json");
    }

    Path best(String method) {
        return directory.resolve("best-%s.yaml".formatted(method));
    }

    /** Deletes what is no longer true when other trials are to come. */
    void deleteBest(List<String> methods) throws IOException {
        for (String method : methods) {
            Files.deleteIfExists(best(method));
        }
    }

    void write(SweepRecord sweep) throws IOException {
        AtomicFile.write(json(directory), JSON.writeValueAsString(describe(sweep)) + '\n');
        AtomicFile.write(directory.resolve("sweep.csv"), table(sweep));
        AtomicFile.write(page(), SweepPage.html(sweep));
    }

    /**
     * Writes the settings of a method that are best, as a preset for {@code train}. It trains on all training examples:
     * the choice has been made. Where runs are to end early, they need the validation examples.
     */
    void writeBest(SweepRecord sweep, Standing standing, Configuration configuration) throws IOException {
        var values = new LinkedHashMap<>(configuration.values());
        Optional<String> share = values.containsKey("earlyStopping")
                ? Optional.empty()
                : Optional.ofNullable(values.remove("validationShare"));
        Summary summary = standing.summary().orElseThrow();
        String head = """
                # The best of %d settings of %s: %s.
                # %s %s, the mean over %s, on validation examples.
                """.formatted(
                sweep.standings().stream()
                        .filter(other -> other.method().equals(standing.method()))
                        .count(),
                standing.method(),
                standing.text(),
                sweep.metric().name(),
                String.format(Locale.ROOT, "%.6g", summary.mean()),
                sweep.seeds().size() == 1
                        ? "seed " + sweep.seeds().getFirst()
                        : "seeds %d to %d"
                                .formatted(
                                        sweep.seeds().getFirst(), sweep.seeds().getLast()));
        String tail = share.map(
                        "# Trains on all training examples; with validationShare: %s it is the trial again.\n"
                                ::formatted)
                .orElse("");
        AtomicFile.write(best(standing.method()), head + tail + RunFiles.yaml(values));
    }

    private static Map<String, Object> describe(SweepRecord sweep) {
        var all = new LinkedHashMap<String, Object>();
        all.put("preset", sweep.preset());
        all.put("metric", sweep.metric().name());
        all.put("greater_is_better", sweep.metric().greaterIsBetter());
        all.put("strategy", sweep.strategy());
        all.put("methods", sweep.methods());
        all.put("seeds", sweep.seeds());
        all.put("varied", sweep.varied());
        all.put("planned", sweep.planned());
        all.put("complete", sweep.isComplete());
        all.put("trials", sweep.trials().stream().map(SweepFiles::describe).toList());
        var rankings = new ArrayList<Map<String, Object>>();
        sweep.rankings().forEach((minimized, standings) -> {
            var ranking = new LinkedHashMap<String, Object>();
            if (!minimized.isEmpty()) {
                ranking.put("minimized", minimized);
            }
            ranking.put("settings", standings.stream().map(SweepFiles::describe).toList());
            rankings.add(ranking);
        });
        all.put("rankings", rankings);
        return all;
    }

    private static Map<String, Object> describe(Trial trial) {
        var map = new LinkedHashMap<String, Object>();
        map.put("name", trial.name());
        map.put("method", trial.method());
        map.put("settings", trial.settings());
        map.put("seed", trial.seed());
        map.put("iterations", trial.iterations());
        map.put("minimized", trial.minimized());
        map.put("ranked", trial.ranked());
        map.put("state", state(trial));
        if (!trial.reason().isEmpty()) {
            map.put("reason", trial.reason());
        }
        map.put("metrics", trial.metrics());
        map.put("seconds", trial.seconds());
        return map;
    }

    static String state(Trial trial) {
        return trial.state().name().toLowerCase(Locale.ROOT);
    }

    private static Map<String, Object> describe(Standing standing) {
        var map = new LinkedHashMap<String, Object>();
        map.put("method", standing.method());
        map.put("settings", standing.settings());
        standing.summary().ifPresent(summary -> {
            map.put("mean", summary.mean());
            if (summary.count() > 1) {
                Interval interval = summary.interval(LEVEL).orElseThrow();
                map.put("deviation", summary.deviation());
                map.put("interval", List.of(interval.low(), interval.high()));
            }
        });
        map.put("trials", standing.trials().stream().map(Trial::name).toList());
        return map;
    }

    private static String table(SweepRecord sweep) {
        var metrics = new LinkedHashSet<String>();
        sweep.trials().forEach(trial -> metrics.addAll(trial.metrics().keySet()));
        var text = new StringBuilder();
        text.append(line(Stream.of(
                        Stream.of(
                                "name",
                                "method",
                                "seed",
                                "iterations",
                                "minimized",
                                "state",
                                "reason",
                                "trial_seconds"),
                        sweep.varied().stream(),
                        metrics.stream())
                .flatMap(each -> each)));
        for (Trial trial : sweep.trials()) {
            text.append(line(Stream.of(
                            Stream.of(
                                    trial.name(),
                                    trial.method(),
                                    Long.toString(trial.seed()),
                                    Long.toString(trial.iterations()),
                                    trial.minimized(),
                                    state(trial),
                                    trial.reason(),
                                    Double.toString(trial.seconds())),
                            sweep.varied().stream().map(name -> trial.settings().getOrDefault(name, "")),
                            metrics.stream()
                                    .map(name -> Optional.ofNullable(
                                                    trial.metrics().get(name))
                                            .map(Object::toString)
                                            .orElse("")))
                    .flatMap(each -> each)));
        }
        return text.toString();
    }

    /** Returns a line as RFC 4180 has it. */
    private static String line(Stream<String> cells) {
        return String.join(",", cells.map(SweepFiles::quoted).toList()) + "\r\n";
    }

    private static String quoted(String cell) {
        return cell.matches("(?s).*[\",\r\n].*") ? '"' + cell.replace("\"", "\"\"") + '"' : cell;
    }
}
