package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.entry;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.fedcomuon.experiment.RunRecord.Evaluation;
import org.fedcomuon.experiment.RunRecord.State;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunRecordTest {
    @TempDir
    private Path directory;

    private void config(String text) throws IOException {
        Files.writeString(directory.resolve("config.yaml"), text);
    }

    private void metrics(String text) throws IOException {
        Files.writeString(directory.resolve("metrics.jsonl"), text);
    }

    private void summary(String text) throws IOException {
        Files.writeString(directory.resolve("summary.json"), text);
    }

    private RunRecord read() {
        return RunRecord.read(directory);
    }

    private void assertRefused(String file, String... words) {
        assertThatThrownBy(this::read)
                .isInstanceOf(RunRecordException.class)
                .message()
                .startsWith(directory.resolve(file) + ": ")
                .contains(words)
                .doesNotContain("\n", "\\u");
    }

    @Test
    void readsAll() throws IOException {
        config("method: fedcomuon-vr\nseed: 42\nsizes: 5000,20,20\nlambda: 0.50\nrate: 1e-3\nnothing:\nlist: [a, 1]\n");
        metrics("""
                {"step": 0, "round": 0, "train_loss": 2.5, "seconds": 1}

                {"step": 10, "round": 2, "train_loss": 1e-3, "later": 7}
                """);
        summary("""
                {"method": "fedcomuon-vr", "diverged": false, "devices": ["cpu:0", "cpu:1"], "cores": 2,
                 "nothing": null, "map": {"a": [1, null]}, "wall_seconds": 3.5}
                """);
        RunRecord run = read();
        assertThat(run.name()).isEqualTo(directory.getFileName().toString());
        assertThat(run.config())
                .containsExactly(
                        entry("method", "fedcomuon-vr"),
                        entry("seed", "42"),
                        entry("sizes", "5000,20,20"),
                        entry("lambda", "0.50"),
                        entry("rate", "0.001"),
                        entry("nothing", ""),
                        entry("list", "[\"a\",1]"));
        assertThat(run.evaluations())
                .containsExactly(
                        new Evaluation(0, 0, Map.of("train_loss", 2.5, "seconds", 1.0)),
                        new Evaluation(10, 2, Map.of("train_loss", 1e-3, "later", 7.0)));
        assertThat(run.summary().orElseThrow())
                .containsExactly(
                        entry("method", "fedcomuon-vr"),
                        entry("diverged", false),
                        entry("devices", List.of("cpu:0", "cpu:1")),
                        entry("cores", 2),
                        entry("map", Map.of("a", List.of(1))),
                        entry("wall_seconds", 3.5));
        assertThat(run.state()).isEqualTo(State.FINISHED);
        assertThat(run.last("train_loss")).hasValue(1e-3);
        assertThat(run.last("wall_seconds")).hasValue(3.5);
        assertThat(run.last("seconds")).isEmpty();
        assertThat(run.last("method")).isEmpty();
    }

    @Test
    void theSummarySaysHowItEnded() throws IOException {
        config("a: 1");
        metrics("");
        assertThat(read().state()).isEqualTo(State.UNFINISHED);
        summary("{}");
        assertThat(read().state()).isEqualTo(State.FINISHED);
        summary("{\"stopped\": true}");
        assertThat(read().state()).isEqualTo(State.STOPPED);
        summary("{\"stopped\": true, \"diverged\": true}");
        assertThat(read().state()).isEqualTo(State.DIVERGED);
    }

    @Test
    void aRunUnderWayNeedsNoMoreThanItsSettings() throws IOException {
        config("seed: 1");
        RunRecord run = read();
        assertThat(run.evaluations()).isEmpty();
        assertThat(run.last()).isEmpty();
        assertThat(run.method()).isEqualTo(run.name());
        summary("{\"method\": \"fedavg\"}");
        assertRefused("metrics.jsonl", "no such file", "summary.json");
    }

    @Test
    void halfALastLineIsPassedOverWhileTheRunHasNotEnded() throws IOException {
        config("seed: 1");
        metrics("{\"step\": 0}\n{\"step\": 10, \"train_lo");
        assertThat(read().evaluations()).hasSize(1);
        summary("{}");
        assertRefused("metrics.jsonl", "line 2");
        Files.delete(directory.resolve("summary.json"));
        metrics("{\"step\": 0}\n{\"step\": 10, \"train_lo\n"); // whole, and wrong
        assertRefused("metrics.jsonl", "line 2");
        metrics("{\"step\": 0}\n{\"step\": 10}");
        assertThat(read().evaluations()).hasSize(2);
    }

    @Test
    void whatIsNoNumberByAnySpelling() throws IOException {
        config("seed: 1");
        metrics("{\"step\": 1, \"a\": NaN, \"b\": \"NaN\", \"c\": \"Infinity\", \"d\": -Infinity, \"e\": null}\n");
        assertThat(read().evaluations().getFirst().metrics())
                .containsExactly(
                        entry("a", Double.NaN),
                        entry("b", Double.NaN),
                        entry("c", Double.POSITIVE_INFINITY),
                        entry("d", Double.NEGATIVE_INFINITY));
    }

    @Test
    void aStepThatWasEvaluatedAgainCountsOnce() throws IOException {
        config("seed: 1");
        metrics("{\"step\":0}\n{\"step\":20,\"a\":1}\n{\"step\":10}\n{\"step\":20,\"a\":2}\n");
        assertThat(read().evaluations()).extracting(Evaluation::step).containsExactly(0L, 10L, 20L);
        assertThat(read().last("a")).hasValue(2);
    }

    @Test
    void refusesWhatIsDamaged() throws IOException {
        assertRefused("config.yaml", "no such file");
        config("");
        assertRefused("config.yaml", "nothing", "keys");
        config("- a\n- b\n");
        assertRefused("config.yaml", "a list");
        config("a: 1\nb: [\n");
        assertRefused("config.yaml", "line ");
        config("a: 1\na: 2\n");
        assertRefused("config.yaml", "line 2", "\"a\"");
        Files.write(directory.resolve("config.yaml"), new byte[] {'a', ':', ' ', (byte) 0xff});
        assertRefused("config.yaml", "UTF-8");
        config("a: 1\n");

        metrics("{\"step\": 0}\n{\"round\": 0}\n");
        assertRefused("metrics.jsonl", "line 2: no step");
        for (String step : List.of("1.5", "-1", "\"1\"", "null", "1e30", "[]")) {
            metrics("{\"step\": %s}\n".formatted(step));
            assertRefused("metrics.jsonl", "line 1: step is ", "whole number");
        }
        metrics("{\"step\": 0, \"round\": -1}\n");
        assertRefused("metrics.jsonl", "line 1: round is -1");
        for (String value : List.of("\"abc\"", "true", "[1]", "{}")) {
            metrics("{\"step\": 0, \"loss\": %s}\n".formatted(value));
            assertRefused("metrics.jsonl", "line 1: loss is " + value);
        }
        metrics("[1]\n");
        assertRefused("metrics.jsonl", "line 1: holds a list");
        metrics("{\"step\": 0} {\"step\": 1}\n");
        assertRefused("metrics.jsonl", "line 1");

        metrics("");
        summary("{\"a\": 1,\n");
        assertRefused("summary.json", "line ");
        summary("3");
        assertRefused("summary.json", "single value");
    }

    @Test
    void aDirectoryThatIsNone() throws IOException {
        for (Path path : List.of(directory.resolve("none"), Files.createFile(directory.resolve("file")))) {
            assertThatThrownBy(() -> RunRecord.read(path))
                    .isInstanceOf(RunRecordException.class)
                    .hasMessageStartingWith(path + ": no such directory");
        }
    }

    @Test
    void theNameIsTheDirectorysOwn() throws IOException {
        config("a: 1");
        assertThat(RunRecord.read(Files.createDirectory(directory.resolve("x")).resolve(".."))
                        .name())
                .isEqualTo(directory.getFileName().toString());
    }
}
