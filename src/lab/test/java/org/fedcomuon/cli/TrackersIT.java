package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.fedcomuon.testing.EventFiles;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** What {@code train} writes for other programs to show is what {@code metrics.jsonl} says. */
class TrackersIT {
    @TempDir
    private Path temporary;

    private static void train(Object... arguments) {
        var all = new ArrayList<Object>(List.of("train"));
        all.addAll(List.of(arguments));
        CommandRun run = CommandRun.of(all.toArray());
        assertThat(run.exitCode()).as(run.err()).isZero();
    }

    private static List<JsonNode> evaluations(Path run) throws Exception {
        return Files.readAllLines(run.resolve("metrics.jsonl")).stream()
                .map(JsonMapper.shared()::readTree)
                .toList();
    }

    private static void assertTensorBoardHasAllMetrics(Path run) throws Exception {
        var expected = new TreeMap<String, NavigableMap<Long, Float>>();
        for (JsonNode evaluation : evaluations(run)) {
            List<String> names = List.copyOf(evaluation.propertyNames());
            for (String metric : names.subList(names.indexOf("round") + 1, names.indexOf("seconds"))) {
                expected.computeIfAbsent(metric, _ -> new TreeMap<>())
                        .put(evaluation.get("step").asLong(), (float)
                                evaluation.get(metric).asDouble());
            }
        }
        Map<String, NavigableMap<Long, Float>> found = EventFiles.scalars(run.resolve("tensorboard"));
        assertThat(found).containsKeys("test_accuracy", "train_loss").isEqualTo(expected);
    }

    private static void assertTheTableHasAllValues(Path run) throws Exception {
        List<JsonNode> evaluations = evaluations(run);
        List<String> columns = List.copyOf(evaluations.getLast().propertyNames());
        assertThat(columns).endsWith("communicated_bytes", "gradient_evaluations");
        var rows = new ArrayList<>(List.of(String.join(",", columns)));
        for (JsonNode evaluation : evaluations) {
            rows.add(columns.stream()
                    .map(column ->
                            evaluation.has(column) ? evaluation.get(column).asString() : "")
                    .collect(Collectors.joining(",")));
        }
        assertThat(Files.readString(run.resolve("metrics.csv"))).isEqualTo(String.join("\r\n", rows) + "\r\n");
    }

    @Test
    void aRunAndItsContinuationAreInTensorBoardAndInTheTable() throws Exception {
        Path run = temporary.resolve("run");
        train(
                "mnist-robust",
                "--iterations",
                "10",
                "--set",
                "evaluateEvery=5",
                "--set",
                "largest=200",
                "--out",
                run,
                "--tensorboard");
        assertThat(evaluations(run)).hasSize(3);
        assertTensorBoardHasAllMetrics(run);
        assertTheTableHasAllValues(run);
        List<Path> files = EventFiles.files(run.resolve("tensorboard"));
        assertThat(EventFiles.events(files.getFirst()))
                .anySatisfy(event -> assertThat(event.getSummary().getValueList())
                        .singleElement()
                        .satisfies(value -> assertThat(
                                        value.getTensor().getStringVal(0).toStringUtf8())
                                .contains("| evaluateEvery | 5 |", "| preset | mnist-robust |")));

        train("--resume", run, "--iterations", "15"); // it goes on as it began
        assertThat(evaluations(run)).hasSize(4);
        assertTensorBoardHasAllMetrics(run);
        assertTheTableHasAllValues(run);
        assertThat(EventFiles.files(run.resolve("tensorboard"))).hasSize(2);
    }

    @Test
    void whoDoesNotAskForEventFilesHasNone() throws Exception {
        Path run = temporary.resolve("run");
        train("mnist-robust", "--iterations", "1", "--set", "largest=200", "--out", run, "--quiet");
        assertThat(run.resolve("tensorboard")).doesNotExist();
    }
}
