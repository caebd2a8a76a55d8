package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.cli.CommandRun.assertRefused;
import static org.fedcomuon.testing.TrainProcess.summary;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.fedcomuon.format.SafetensorsFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Training MNIST as a user does, in few steps. */
class TrainCommandIT {
    @TempDir
    private Path temporary;

    private static CommandRun train(String... arguments) {
        return CommandRun.of(
                Stream.concat(Stream.of("train"), Stream.of(arguments)).toArray());
    }

    private CommandRun quick(Path out, String... more) {
        var all = new ArrayList<>(List.of(
                "mnist-robust",
                "--iterations",
                "12",
                "--set",
                "evaluateEvery=6",
                "--set",
                "largest=200",
                "--out",
                out.toString()));
        all.addAll(List.of(more));
        return train(all.toArray(String[]::new));
    }

    @Test
    void leavesTheFilesOfTheInterface() throws Exception {
        Path out = temporary.resolve("run");
        CommandRun run = quick(out);
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out()).contains("test_accuracy", "worst_client_accuracy", "sha256", "report.html");
        List<String> lines = Files.readAllLines(out.resolve("metrics.jsonl"));
        assertThat(lines).hasSize(3);
        JsonNode last = JsonMapper.shared().readTree(lines.getLast());
        assertThat(last.propertyNames())
                .contains(
                        "step",
                        "round",
                        "train_loss",
                        "test_loss",
                        "test_accuracy",
                        "worst_client_loss",
                        "worst_client_accuracy",
                        "seconds",
                        "orthogonalize_seconds",
                        "gradient_seconds",
                        "evaluate_seconds",
                        "optimizer_share",
                        "communicated_bytes");
        double steps = last.get("step_seconds").asDouble();
        assertThat(steps + last.get("evaluate_seconds").asDouble())
                .isLessThan(last.get("seconds").asDouble());
        assertThat(last.get("evaluate_seconds").asDouble()).isPositive();
        assertThat(last.get("optimizer_share").asDouble())
                .isBetween(0.0, 1.0)
                .isEqualTo(1 - last.get("gradient_seconds").asDouble() / steps);
        assertThat(last.get("step").asInt()).isEqualTo(12);
        assertThat(last.get("communicated_bytes").asLong())
                .isEqualTo(2 * 10 * 2 * 2 * 34622L * 4); // two rounds of W and M
        JsonNode summary = summary(out);
        assertThat(summary.get("diverged").asBoolean()).isFalse();
        assertThat(summary.get("test_accuracy").asDouble())
                .isEqualTo(last.get("test_accuracy").asDouble());
        assertThat(Files.readString(out.resolve("config.yaml"))).contains("tau: 5", "alpha: 0.2");
        assertThat(Files.readString(out.resolve("report.html"))).contains("</html>");
        try (var model = SafetensorsFile.open(out.resolve("model.safetensors"))) {
            model.verify();
            assertThat(model.tensors().get("conv2.weight").shape()).containsExactly(16L, 6L, 5L, 5L);
            assertThat(model.metadata())
                    .containsEntry("weights_sha256", summary.get("sha256").asString());
        }
    }

    @Test
    void devicesAndConfigurationGiveBitIdenticalResults() throws Exception {
        Path one = temporary.resolve("one");
        Path two = temporary.resolve("two");
        Path again = temporary.resolve("again");
        assertThat(quick(one, "--method", "fedcomuon-vr").exitCode()).isZero();
        assertThat(quick(two, "--method", "fedcomuon-vr", "--devices", "cpu:0,cpu:1", "--threads", "1")
                        .exitCode())
                .isZero();
        assertThat(train(one.resolve("config.yaml").toString(), "--out", again.toString())
                        .exitCode())
                .isZero();
        String hash = summary(one).get("sha256").asString();
        assertThat(summary(two).get("sha256").asString()).isEqualTo(hash);
        assertThat(summary(again).get("sha256").asString()).isEqualTo(hash);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "fedavg",
                "fedmaml",
                "fedmuon",
                "fedmuon-lga",
                "fedmuon-bc",
                "comfedl",
                "local-scgdm",
                "fedprox",
                "scaffold",
                "fedadam",
                "fedyogi",
                "ef21-muon",
                "local-moml",
                "fgdro-kl",
                "fgdro-cvar",
                "feddro"
            })
    void everyMethodTrains(String method) throws Exception {
        Path out = temporary.resolve(method);
        CommandRun run = quick(out, "--method", method, "--quiet");
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.err()).isEmpty();
        List<String> lines = Files.readAllLines(out.resolve("metrics.jsonl"));
        double first =
                JsonMapper.shared().readTree(lines.getFirst()).get("train_loss").asDouble();
        double last =
                JsonMapper.shared().readTree(lines.getLast()).get("train_loss").asDouble();
        assertThat(last).isLessThan(first);
    }

    @Test
    void narrowDirectionsTrainTooWithBitsOfTheirOwn() throws Exception {
        var hashes = new HashSet<String>();
        for (String precision : List.of("fp32", "tf32", "bf16")) {
            Path one = temporary.resolve(precision);
            Path two = temporary.resolve(precision + " on two");
            assertThat(quick(one, "--set", "precision=" + precision).exitCode()).isZero();
            assertThat(quick(two, "--set", "precision=" + precision, "--devices", "cpu:0,cpu:1", "--threads", "1")
                            .exitCode())
                    .isZero();
            String hash = summary(one).get("sha256").asString();
            assertThat(summary(two).get("sha256").asString()).isEqualTo(hash);
            assertThat(hashes.add(hash)).as(precision).isTrue();
        }
    }

    @Test
    void exactDirectionsTrainToo() throws Exception {
        Path out = temporary.resolve("exact");
        assertThat(quick(out, "--orthogonalizer", "exact").exitCode()).isZero();
        assertThat(summary(out).get("orthogonalizer").asString()).isEqualTo("exact");
    }

    @Test
    void aRunThatDivergesSaysSoAndWhere() throws Exception {
        Path out = temporary.resolve("diverging");
        CommandRun run = quick(out, "--method", "fedavg", "--set", "eta=1e30", "--quiet");
        assertThat(run.exitCode()).isEqualTo(1);
        assertThat(run.err().lines()).singleElement().asString().contains("client", "step");
        assertThat(summary(out).get("diverged").asBoolean()).isTrue();
    }

    @Test
    void goesOnWhereItWasLeft() throws Exception {
        Path whole = temporary.resolve("whole");
        Path parts = temporary.resolve("parts");
        assertThat(quick(whole).exitCode()).isZero();
        assertThat(quick(parts, "--iterations", "10").exitCode()).isEqualTo(2); // given twice
        assertThat(train(
                                "mnist-robust",
                                "--iterations",
                                "10",
                                "--set",
                                "evaluateEvery=6",
                                "--set",
                                "largest=200",
                                "--out",
                                parts.toString())
                        .exitCode())
                .isZero();
        CommandRun rest = train("--resume", parts.toString(), "--iterations", "12");
        assertThat(rest.exitCode()).as(rest.err()).isZero();
        assertThat(summary(parts).get("sha256").asString())
                .isEqualTo(summary(whole).get("sha256").asString());
        assertThat(evaluated(parts)).containsExactly(0, 6, 10, 12);
    }

    private static List<Integer> evaluated(Path out) throws IOException {
        return Files.readAllLines(out.resolve("metrics.jsonl")).stream()
                .map(line -> JsonMapper.shared().readTree(line).get("step").asInt())
                .toList();
    }

    @Test
    void aRunThatEndedBeforeItsFirstCheckpointBeginsAnewMetricsAndAll() throws Exception {
        Path out = temporary.resolve("ended");
        assertThat(quick(out).exitCode()).isZero();
        String sha256 = summary(out).get("sha256").asString();
        List<Integer> steps = evaluated(out);
        try (var checkpoints = Files.list(out.resolve("checkpoints"))) {
            for (Path checkpoint : checkpoints.toList()) {
                Files.delete(checkpoint);
            }
        }
        assertThat(train("--resume", out.toString()).exitCode()).isZero();
        assertThat(summary(out).get("sha256").asString()).isEqualTo(sha256);
        assertThat(evaluated(out)).isEqualTo(steps).startsWith(0, 6);
    }

    /** Found before the data are read, and not when the report is made of them after all steps. */
    @Test
    void aDamagedFileOfARunThatIsResumedIsNamedBeforeTheFirstStep() throws Exception {
        Path out = temporary.resolve("run");
        assertThat(quick(out, "--quiet").exitCode()).isZero();
        Map<String, String> damages = new LinkedHashMap<>();
        damages.put("metrics.jsonl", "{\"step\":6,\"train_loss\":\"low\"}");
        damages.put("clients.jsonl", "{\"step\":6}");
        for (String file : damages.keySet()) {
            Path damaged = out.resolve(file);
            List<String> whole = Files.readAllLines(damaged);
            for (String line : List.of("{", "[1]", "{\"step\":\"x\"}", damages.get(file))) {
                for (int at : new int[] {1, whole.size()}) { // a line in the middle, and one after the last
                    var lines = new ArrayList<>(whole);
                    lines.add(at, line);
                    Files.writeString(damaged, String.join("\n", lines)); // the last one without an end
                    Map<Path, String> before = contents(out);
                    assertRefused(
                            train("--resume", out.toString()),
                            "--resume " + out,
                            damaged + ": line %d: ".formatted(at + 1),
                            "delete the line, then resume again");
                    assertThat(contents(out)).isEqualTo(before);
                }
            }
            Files.write(damaged, new byte[] {'{', (byte) 0xff, '}'});
            assertRefused(
                    train("--resume", out.toString()), damaged + ": not UTF-8 text", "restore or delete the file");
            Files.write(damaged, whole);
        }
        Path config = out.resolve("config.yaml");
        String settings = Files.readString(config);
        Files.writeString(config, settings + "tau: [\n");
        assertRefused(train("--resume", out.toString()), config.toString());
        Files.writeString(config, settings);
        Files.writeString(out.resolve("summary.json"), "{"); // is written anew
        assertThat(train("--resume", out.toString()).exitCode()).isZero();
        assertThat(summary(out).get("sha256").asString()).hasSize(64);
    }

    private static Map<Path, String> contents(Path directory) throws IOException {
        var all = new LinkedHashMap<Path, String>();
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                all.put(file, Files.readString(file, StandardCharsets.ISO_8859_1));
            }
        }
        return all;
    }

    /** What a full disk does to it is in DiskFaultsIT. */
    @Test
    void aReportThatCannotBeWrittenLeavesTheRunComplete() throws Exception {
        Path out = temporary.resolve("run");
        Files.createDirectories(out.resolve("report.html/in-the-way"));
        CommandRun run = quick(out, "--quiet");
        assertThat(run.exitCode()).isEqualTo(1);
        assertThat(run.err().lines())
                .singleElement()
                .asString()
                .startsWith("fedcomuon: " + out.resolve("report.html"))
                .contains("summary and model are complete", "./fedcomuon report " + out);
        assertThat(summary(out).get("sha256").asString()).hasSize(64);
        assertThat(out.resolve("model.safetensors")).isNotEmptyFile();
    }

    @Test
    void aBadRequestIsOneLineAndLeavesNothing() {
        Path out = temporary.resolve("never");
        assertRefused(train("mnist-robst", "--out", out.toString()), "did you mean 'mnist-robust'");
        assertRefused(train("--out", out.toString()), "no PRESET given");
        assertRefused(quick(out, "--method", "fedcomuno"), "did you mean 'fedcomuon'");
        assertRefused(quick(out, "--set", "taau=5"), "did you mean 'tau'");
        assertRefused(quick(out, "--tau", "0"), "tau = 0");
        assertRefused(quick(out, "--devices", "gpu:0"), "gpu:0");
        assertRefused(quick(out, "--data-dir", temporary.resolve("nowhere").toString()), "nowhere");
        assertRefused(quick(out, "--set", "model=vit"), "model = vit takes images of 3 x 32 x 32 values");
        assertRefused(quick(out, "--memory-limit", "0.001"), "this run needs");
        assertRefused(quick(out, "--cluster", "cloud"), "--cluster cloud: unknown; possible are local, mpi");
        assertRefused(train("--resume", temporary.toString()), "holds no run");
        assertThat(out).doesNotExist();
    }

    @Test
    void aDirectoryThatCannotBeMadeIsRefused() throws IOException {
        Path file = Files.createFile(temporary.resolve("file"));
        assertRefused(quick(file, "--quiet"), "there is a file of this name");
        assertRefused(quick(Path.of("/proc/nowhere"), "--quiet"), "--out /proc/nowhere cannot be made: ");
    }

    @Test
    void aDirectoryWithARunIsNotOverwritten() {
        Path out = temporary.resolve("run");
        assertThat(quick(out, "--quiet").exitCode()).isZero();
        assertRefused(quick(out), "holds a run already; --resume");
    }
}
