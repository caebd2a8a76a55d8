package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.fedcomuon.cli.CommandRun.assertRefused;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class CompareCommandIT {
    @TempDir
    private Path temporary;

    @Test
    void compareLeavesBothFiles() throws Exception {
        Path out = temporary.resolve("compare");
        CommandRun result = CommandRun.of("compare", "--shapes", "12x20,140x140", "--condition", "1e1", "--out", out);
        assertThat(result.exitCode()).as(result.err()).isZero();
        JsonNode json = JsonMapper.shared().readTree(Files.readString(out.resolve("compare.json")));
        assertThat(json.get("matrices")).hasSize(2);
        assertThat(json.get("entries")).hasSize(2 * (2 + 9 + 2 + 3));
        for (JsonNode entry : json.get("entries")) {
            boolean exact = entry.get("method").asString().startsWith("exact");
            assertThat(entry.get("seconds").asDouble()).isPositive();
            assertThat(entry.get("alignment").asDouble()).isBetween(exact ? 0.99999 : 0.05, exact ? 1.00001 : 1.3);
            if (exact) {
                assertThat(entry.get("orthogonality_error").asDouble()).isLessThan(1e-5);
                assertThat(entry.get("directions_kept").asInt())
                        .isEqualTo(entry.get("rows").asInt());
                assertThat(entry.get("directions_dropped").asInt()).isZero();
            }
            String coefficients = entry.get("coefficients").asString();
            if (coefficients.startsWith("polar-express-until:")) {
                String until = coefficients.replaceAll(".*:|@.*", "");
                assertThat(entry.get("error").asDouble()).isLessThan(Double.parseDouble(until));
            }
        }
        assertThat(json.get("equal_error")).hasSize(2 * 3).allSatisfy(equal -> {
            double wanted = equal.get("wanted_error").asDouble();
            assertThat(equal.get("fastest").get("error").asDouble()).isLessThan(wanted);
            assertThat(equal.get("exact").get("error").asDouble()).isLessThan(1e-6);
            assertThat(equal.get("five_steps").get("coefficients").asString()).isEqualTo("jordan");
            assertThat(equal.get("five_steps").get("error").asDouble()).isGreaterThan(0.1);
        });
        assertThat(Files.readString(out.resolve("compare.html"))).contains("polar-express", "140");
        assertThat(out).isDirectoryNotContaining(file -> file.toString().endsWith(".part"));
        assertRefused(CommandRun.of("compare", "--shapes", "12", "--out", out), "--shapes '12'");
        assertRefused(CommandRun.of("compare", "--shapes", "0x5", "--out", out), "0x5");
        assertRefused(CommandRun.of("compare", "--condition", "0.5", "--out", out), "--condition");
        assertRefused(CommandRun.of("compare", "--seeds", "0", "--out", out), "--seeds");
        assertRefused(CommandRun.of("compare", "--until", "0", "--out", out), "--until 0.0");
    }

    /** The error is that of the very floats: the exact factor keeps it small, a decomposition in floats does not. */
    @Test
    void errorsGrowWithTheConditionNumberButThatOfTheExactFactor() throws Exception {
        Path out = temporary.resolve("compare");
        CommandRun result = CommandRun.of(
                "compare", "--shapes", "40x24", "--condition", "1e2,1e6,1e7", "--until", "1e-2", "--out", out);
        assertThat(result.exitCode()).as(result.err()).isZero();
        JsonNode json = JsonMapper.shared().readTree(Files.readString(out.resolve("compare.json")));
        for (int matrix = 0; matrix < 2; matrix++) {
            assertThat(error(json, matrix, "exact", "")).isLessThan(1e-5);
        }
        assertThat(error(json, 0, "exact-svd", "")).isBetween(1e-7, 1e-4);
        assertThat(error(json, 1, "exact-svd", "")).isBetween(1e-3, 1.5);
        assertThat(error(json, 1, "newton-schulz", "jordan")).isBetween(0.9, 1.5);
        JsonNode last = json.get("matrices").get(2);
        assertThat(last.get("directions").asInt()).isEqualTo(24);
        assertThat(last.get("directions_above_rounding").asInt()).isBetween(23, 24);
        assertThat(last.get("singular_values")).hasSize(24);
    }

    private static double error(JsonNode json, int matrix, String method, String coefficients) {
        return json.get("entries")
                .valueStream()
                .filter(entry -> entry.get("matrix").asInt() == matrix
                        && entry.get("method").asString().equals(method)
                        && entry.get("coefficients").asString().equals(coefficients))
                .findFirst()
                .orElseThrow()
                .get("error")
                .asDouble();
    }

    /** The last layer of a classifier lacks one direction: rows of the gradient of a softmax sum to zero. */
    @Test
    void compareTakesTheMomentumOfARun() throws Exception {
        Path run = temporary.resolve("run");
        CommandRun trained = CommandRun.of(
                "train",
                "mnist-robust",
                "--iterations",
                "5",
                "--set",
                "checkpointEvery=1",
                "--set",
                "coefficients=polar-express-until:1e-3@1e-5",
                "--out",
                run,
                "--quiet");
        assertThat(trained.exitCode()).as(trained.err()).isZero();
        assertThat(Files.readString(run.resolve("config.yaml")))
                .contains("polar-express-until:1e-3@1e-5")
                .doesNotContain("schulzSteps");
        Path out = temporary.resolve("compare");
        CommandRun result = CommandRun.of("compare", "--run", run, "--out", out);
        assertThat(result.exitCode()).as(result.err()).isZero();
        JsonNode json = JsonMapper.shared().readTree(Files.readString(out.resolve("compare.json")));
        assertThat(json.get("title").asString()).contains("at step 5");
        JsonNode last = json.get("matrices").get(json.get("matrices").size() - 1);
        assertThat(last.get("rows").asInt()).isEqualTo(10);
        assertThat(last.get("directions_above_rounding").asInt()).isLessThan(10);
        JsonNode exact = json.get("entries")
                .valueStream()
                .filter(entry ->
                        entry.get("matrix").asInt() == json.get("matrices").size() - 1
                                && entry.get("method").asString().equals("exact"))
                .findFirst()
                .orElseThrow();
        assertThat(exact.get("directions_dropped").asInt()).isPositive();
        assertThat(exact.get("directions_kept").asInt())
                .isEqualTo(last.get("directions_above_rounding").asInt());
        assertThat(exact.get("error").asDouble()).isLessThan(1e-3);
        assertThat(Files.readString(out.resolve("compare.html"))).contains("Singular values of the momentum");

        assertRefused(CommandRun.of("compare", "--run", run, "--shapes", "8x8", "--out", out), "--shapes");
        assertRefused(CommandRun.of("compare", "--client", "1", "--out", out), "--client", "--run");
    }

    @Test
    void runsWithoutMomentumAreRefused() throws Exception {
        Path out = temporary.resolve("compare");
        Path missing = temporary.resolve("missing");
        assertRefused(
                CommandRun.of("compare", "--run", missing, "--out", out), "--run", "missing", "no such directory");
        Path empty = Files.createDirectory(temporary.resolve("empty"));
        assertRefused(CommandRun.of("compare", "--run", empty, "--out", out), "empty", "no checkpoint");
        Path run = temporary.resolve("run");
        CommandRun trained = CommandRun.of(
                "train",
                "mnist-robust",
                "--method",
                "fedavg",
                "--iterations",
                "5",
                "--set",
                "checkpointEvery=1",
                "--out",
                run,
                "--quiet");
        assertThat(trained.exitCode()).as(trained.err()).isZero();
        assertRefused(CommandRun.of("compare", "--run", run, "--out", out), "fedavg", "no momentum M");
        try (var files = Files.newDirectoryStream(run.resolve("checkpoints"), "*.safetensors")) {
            for (Path file : files) {
                byte[] bytes = Files.readAllBytes(file);
                bytes[bytes.length - 1] ^= 1;
                Files.write(file, bytes);
            }
        }
        assertRefused(CommandRun.of("compare", "--run", run, "--out", out), "damaged");
    }

    @Test
    void compareKnowsTheBandsOfEveryPrecision() {
        CommandRun result = CommandRun.of("compare", "--bands", "--shapes", "40x60", "--condition", "1e2");
        assertThat(result.exitCode()).as(result.err()).isZero();
        List<String> lines = result.out().lines().toList();
        assertThat(lines.getFirst())
                .isEqualTo(
                        "| 40 x 60, s0 in [1e-02, 1] | exact arithmetic | fp32 | tf32 | bf16 | tf32 off fp32 | bf16 off fp32 |");
        String[] jordan = lines.stream()
                .filter(line -> line.startsWith("| jordan x 5"))
                .findFirst()
                .orElseThrow()
                .split(" \\| ", -1);
        double[] exact = band(jordan[1]);
        assertThat(exact[0]).isBetween(0.68, 0.70);
        assertThat(exact[1]).isBetween(1.10, 1.135);
        double[] allowed = {1e-3, 1e-2, 5e-2};
        for (int i = 0; i < allowed.length; i++) {
            assertThat(band(jordan[2 + i])).containsExactly(exact, within(allowed[i]));
        }
        assertThat(Double.parseDouble(jordan[5])).isBetween(1e-4, 1e-2);
    }

    /** Reads [LEAST, GREATEST]. */
    private static double[] band(String text) {
        return Stream.of(text.replaceAll("[\\[\\]]", "").split(", ", -1))
                .mapToDouble(Double::parseDouble)
                .toArray();
    }

    @Test
    void compareTrainsWithEach() throws Exception {
        Path out = temporary.resolve("trained");
        CommandRun result = CommandRun.of(
                "compare",
                "--shapes",
                "8x8",
                "--condition",
                "1e1",
                "--train",
                "--iterations",
                "5",
                "--seeds",
                "1",
                "--out",
                out);
        assertThat(result.exitCode()).as(result.err()).isZero();
        JsonNode rows = JsonMapper.shared()
                .readTree(Files.readString(out.resolve("orthogonalizers.json")))
                .get("rows");
        assertThat(rows)
                .extracting(row -> row.get("row").asString())
                .containsExactly(
                        "fedcomuon, exact",
                        "fedcomuon, newton-schulz",
                        "fedcomuon, gram",
                        "fedcomuon, newton-schulz in bf16",
                        "fedcomuon-vr, exact",
                        "fedcomuon-vr, newton-schulz",
                        "fedcomuon-vr, gram",
                        "fedcomuon-vr, newton-schulz in bf16");
        assertThat(rows)
                .extracting(row -> row.get("sha256").get(0).asString())
                .as("each way has bits of its own")
                .doesNotHaveDuplicates()
                .doesNotContain("");
        assertThat(Files.readString(out.resolve("orthogonalizers.html"))).contains("gram", "</html>");
        assertThat(result.out()).contains("orthogonalizers.html");
    }
}
