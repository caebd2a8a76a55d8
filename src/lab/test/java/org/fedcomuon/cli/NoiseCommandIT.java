package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.testing.Slow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

@Slow
class NoiseCommandIT {
    @TempDir
    private Path temporary;

    private Path train(String method) {
        Path out = temporary.resolve(method);
        CommandRun run = CommandRun.of(
                "train",
                "mnist-robust",
                "--method",
                method,
                "--iterations",
                "10",
                "--set",
                "evaluateEvery=10",
                "--set",
                "checkpointEvery=1",
                "--out",
                out.toString(),
                "--quiet");
        assertThat(run.exitCode()).as(run.err()).isZero();
        return out;
    }

    private static CommandRun noise(Path run, String... more) {
        var arguments = new ArrayList<>(List.of("noise", run.toString()));
        arguments.addAll(List.of(more));
        return CommandRun.of(arguments.toArray());
    }

    /** A client with twenty images and batches of twenty has no noise; the one with 5000 has less in larger batches. */
    @Test
    void largerBatchesAndShorterStepsAreLessNoisy() throws Exception {
        Path run = train("fedcomuon-vr");
        Path file = temporary.resolve("noise.json");
        CommandRun result = noise(
                run,
                "--etas",
                "0.01,0.0001",
                "--batches",
                "20,200",
                "--clients",
                "0",
                "--samples",
                "12",
                "--json",
                file.toString());
        assertThat(result.exitCode()).as(result.err()).isZero();
        assertThat(result.out().lines().filter(line -> line.startsWith("| 0 | ")))
                .hasSize(4);
        assertThat(result.err()).contains("batch 200, client 0");
        JsonNode rows = JsonMapper.shared().readTree(Files.readString(file)).get("rows");
        JsonNode small = rows.get(0);
        JsonNode shortStep = rows.get(1);
        JsonNode large = rows.get(2);
        assertThat(large.get("deviation").doubleValue())
                .isLessThan(small.get("deviation").doubleValue());
        assertThat(shortStep.get("deviation").doubleValue())
                .isEqualTo(small.get("deviation").doubleValue());
        assertThat(shortStep.get("deviation_of_change").doubleValue())
                .isCloseTo(
                        small.get("deviation_of_change").doubleValue() / 100,
                        within(small.get("deviation_of_change").doubleValue() / 200));
        assertThat(small.get("tracker_error").doubleValue()).isBetween(0.0, 1.0);
        assertThat(large.has("tracker_error")).isFalse();
        assertThat(small.get("variance_reduction_of_run").doubleValue())
                .isGreaterThanOrEqualTo(
                        small.get("variance_reduction").get("error").doubleValue());

        CommandRun whole = noise(run, "--etas", "0.01", "--clients", "1", "--samples", "3", "--json", file.toString());
        assertThat(whole.exitCode()).as(whole.err()).isZero();
        JsonNode row =
                JsonMapper.shared().readTree(Files.readString(file)).get("rows").get(0);
        assertThat(row.get("deviation").doubleValue()).isLessThan(1e-6);
        assertThat(row.get("change").doubleValue()).isGreaterThan(1e-3);
    }

    @Test
    void whatCannotBeMeasuredIsRefused() {
        CommandRun.assertRefused(noise(temporary.resolve("none"), "--etas", "0.1"), "none");
        CommandRun.assertRefused(noise(temporary, "--etas", "0"), "--etas 0");
        CommandRun.assertRefused(noise(temporary, "--etas", "0.1", "--samples", "1"), "--samples 1");
        CommandRun.assertRefused(noise(temporary), "--etas");
        Path run = train("fedavg");
        CommandRun.assertRefused(noise(run, "--etas", "0.1"), "fedavg keeps no M");
    }
}
