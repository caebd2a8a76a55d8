package org.fedcomuon;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.fedcomuon.testing.Repository;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** {@code examples/own-problem}: a CNN of one's own in a page of Java and in a page of YAML is the same run. */
class OwnProblemIT {
    private static final Path ROOT = Repository.root();
    private static final Path EXAMPLE = ROOT.resolve("examples/own-problem");

    @TempDir
    private Path temporary;

    private static List<String> lines(String file) throws IOException {
        return Files.readAllLines(EXAMPLE.resolve(file));
    }

    private static Set<String> files(Path run) throws IOException {
        try (Stream<Path> files = Files.list(run)) {
            return new TreeSet<>(
                    files.map(file -> run.relativize(file).toString()).toList());
        }
    }

    @Test
    void areShort() throws IOException {
        assertThat(lines("OwnProblem.java"))
                .hasSizeLessThanOrEqualTo(35)
                .allSatisfy(line -> assertThat(line).hasSizeLessThanOrEqualTo(120));
        assertThat(lines("own-problem.yaml"))
                .hasSizeLessThanOrEqualTo(20)
                .allSatisfy(line -> assertThat(line).hasSizeLessThanOrEqualTo(120));
    }

    @Slow
    @Test
    void giveTheSameWeightsAndTheSameFiles() throws Exception {
        Path java = temporary.resolve("java");
        Path yaml = temporary.resolve("yaml");
        Launcher launcher = Launcher.in(ROOT); // the program finds its data from here
        Launcher.Run program = launcher.run("run", "examples/own-problem/OwnProblem.java", java.toString())
                .done();
        Launcher.Run train = launcher.run("train", "examples/own-problem/own-problem.yaml", "--out", yaml.toString())
                .done();

        String sha256 = TrainProcess.sha256(java);
        assertThat(TrainProcess.sha256(yaml)).isEqualTo(sha256);
        assertThat(program.out()).contains(sha256);
        assertThat(train.out()).contains(sha256);
        assertThat(TrainProcess.summary(java).get("test_accuracy").asDouble()).isGreaterThan(0.85);
        assertThat(files(java))
                .isEqualTo(files(yaml))
                .contains(
                        "config.yaml",
                        "metrics.jsonl",
                        "metrics.csv",
                        "clients.jsonl",
                        "summary.json",
                        "model.safetensors",
                        "report.html");
        assertThat(TrainProcess.summary(yaml).propertyNames())
                .containsAll(TrainProcess.summary(java).propertyNames());
        for (String file : List.of("metrics.jsonl", "clients.jsonl")) {
            List<JsonNode> ofProgram = rows(java.resolve(file));
            List<JsonNode> ofTrain = rows(yaml.resolve(file));
            assertThat(ofProgram).hasSameSizeAs(ofTrain);
            for (int i = 0; i < ofProgram.size(); i++) {
                assertSameScores(ofProgram.get(i), ofTrain.get(i));
            }
        }
    }

    private static List<JsonNode> rows(Path file) throws IOException {
        return Files.readAllLines(file).stream()
                .map(JsonMapper.shared()::readTree)
                .toList();
    }

    /** All but times; examples are judged in other batches, because only a list of layers knows its activations. */
    private static void assertSameScores(JsonNode ofProgram, JsonNode ofTrain) {
        for (String name : ofProgram.propertyNames()) {
            if (!name.contains("seconds") && !name.equals("optimizer_share")) {
                assertThat(ofProgram.get(name).asDouble())
                        .as(name)
                        .isCloseTo(ofTrain.get(name).asDouble(), within(1e-6));
            }
        }
    }

    /** Whoever runs a program twice does not overwrite the first run. */
    @Slow
    @Test
    void aSecondRunHasADirectoryOfItsOwn() throws Exception {
        Path first = temporary.resolve("run");
        for (int i = 0; i < 2; i++) {
            Launcher.in(ROOT)
                    .run("run", "examples/own-problem/OwnProblem.java", first.toString())
                    .done();
        }
        assertThat(TrainProcess.sha256(temporary.resolve("run-2"))).isEqualTo(TrainProcess.sha256(first));
    }

    @Test
    void theDataAreThoseOfTheProgramThatMakesThem() throws Exception {
        Python.run(temporary, Files.readString(EXAMPLE.resolve("make_data.py")));
        for (String file : List.of("x.npy", "y.npy")) {
            assertThat(temporary.resolve(file)).hasSameBinaryContentAs(EXAMPLE.resolve(file));
        }
    }
}
