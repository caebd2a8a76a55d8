package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import org.fedcomuon.federation.RunFiles;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whatever has become of the files of a run: {@code report} and {@code --resume} read them, or name what is wrong. */
class RunFilesMutationsTest {
    private static final long SEED = Long.getLong("tests.seed", 17_11_2026L);
    private static final int MUTATIONS = Soak.mutations(1_500);

    private static final String CONFIG = """
            preset: mnist-robust
            method: fedcomuon-vr
            seed: 42
            eta: 0.02
            alphas:
            - 0.1
            - 1.0E-4
            title: "a: b"
            """;
    private static final String METRICS = """
            {"step":0,"round":0,"test_accuracy":0.1,"seconds":0.5,"loss":"NaN"}
            {"step":30,"round":6,"test_accuracy":0.75,"seconds":1.5,"loss":2.25,"communicated_bytes":123456789}
            {"step":60,"round":12,"test_accuracy":0.875,"seconds":2.5,"loss":1e-3,"worst":null}
            """;
    private static final String SUMMARY = """
            {
              "preset" : "mnist-robust",
              "seed" : 42,
              "diverged" : false,
              "devices" : [ "cpu:0", "cpu:1" ],
              "nested" : { "a" : [ 1, 2.5, null, true ] },
              "wall_seconds" : 12.75
            }
            """;
    private static final List<String> PIECES = List.of(
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"",
            "\\",
            "\\u0000",
            "null",
            "true",
            "NaN",
            "-Infinity",
            "1e999",
            "-1",
            "0",
            "9223372036854775808",
            "\n",
            "\r",
            "\t",
            "\u0000",
            "\u2028",
            "\ud83d\ude00",
            "\"step\":",
            "\"step\":30,",
            "{\"step\":90}\n",
            "{\"step\":\"x\"}\n",
            "{\"step\":[30]}\n",
            "{\"step\":1e300}\n",
            "[1]\n",
            "7\n",
            "- ",
            "&a ",
            "*a",
            "!!int ",
            "? ",
            "---\n",
            "|",
            "'");

    @TempDir
    private Path directory;

    @BeforeEach
    void leaveARun() throws IOException {
        Files.writeString(directory.resolve(RunRecord.CONFIG), CONFIG);
        Files.writeString(directory.resolve(RunRecord.METRICS), METRICS);
        Files.writeString(directory.resolve(RunRecord.SUMMARY), SUMMARY);
    }

    private static byte[] mutated(String original, Random random) {
        byte[] bytes = Mutations.text(original, PIECES, random).getBytes(StandardCharsets.UTF_8);
        if (bytes.length > 0 && random.nextInt(8) == 0) {
            bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(256);
        }
        return bytes;
    }

    private void feed(Mutations mutations, String name, Callable<?> reading) throws IOException {
        var random = new Random(SEED);
        Path file = directory.resolve(name);
        String original = Files.readString(file);
        for (int i = 0; i < MUTATIONS; i++) {
            byte[] bytes = mutated(original, random);
            Files.write(file, bytes);
            mutations.feed(bytes, "" + file, reading);
        }
        mutations.end(0.01, 0.9);
    }

    @ParameterizedTest
    @ValueSource(strings = {RunRecord.CONFIG, RunRecord.METRICS, RunRecord.SUMMARY})
    @Tag(Soak.TAG)
    void aReportReadsOrRefuses(String name) throws IOException {
        try (var mutations = new Mutations("a run's %s, for report".formatted(name), SEED, RunRecordException.class)
                .allocating(256, 4 << 20)) {
            feed(mutations, name, () -> RunRecord.read(directory));
        }
    }

    @Test
    @Tag(Soak.TAG)
    void aRunThatGoesOnReadsOrRefusesItsMetrics() throws IOException {
        try (var mutations = new Mutations("metrics.jsonl, for --resume", SEED, MalformedFileException.class)
                .allocating(256, 4 << 20)) {
            feed(mutations, RunRecord.METRICS, () -> {
                var last = new RunFiles(directory).resume(30);
                last.ifPresent(values ->
                        assertThat(((Number) values.get("step")).longValue()).isLessThanOrEqualTo(30));
                return last;
            });
        }
    }
}
