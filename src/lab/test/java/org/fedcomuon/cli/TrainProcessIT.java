package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.testing.TrainProcess.awaitCheckpoint;
import static org.fedcomuon.testing.TrainProcess.end;
import static org.fedcomuon.testing.TrainProcess.sha256;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.fedcomuon.testing.EventFiles;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.Soak;
import org.fedcomuon.testing.SoakReport;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.json.JsonMapper;

/** {@code train} as a process of its own, which is killed or interrupted: nothing that was checkpointed is lost. */
@Slow
class TrainProcessIT {
    private static final long SEED = Long.getLong("tests.seed", 16_11_2026L);
    private static final int SIGINT = 2;
    private static final int KILLS = 3; // of a run
    private static final int RUNS = Soak.times(1, 67);

    @TempDir
    private static Path whole;

    @TempDir
    private Path temporary;

    private static String expected = "";

    private final List<Process> started = new ArrayList<>();

    @BeforeAll
    static void trainWithoutInterruption() throws Exception {
        Path out = whole.resolve("run");
        Process train = start(whole.resolve("log"), arguments(out));
        assertThat(end(train)).as(Files.readString(whole.resolve("log"))).isZero();
        expected = sha256(out);
    }

    @AfterEach
    void nothingIsLeftRunning() {
        started.forEach(Process::destroyForcibly);
    }

    private static List<String> arguments(Path out) {
        return List.of(
                "mnist-robust",
                "--method",
                "fedcomuon-vr",
                "--iterations",
                "120",
                "--checkpoint-every",
                "1",
                "--set",
                "evaluateEvery=30",
                "--set",
                "largest=200",
                "--out",
                out.toString());
    }

    private static Process start(Path log, List<String> arguments) throws IOException {
        // A shell that runs this in the background may have set SIGINT to be ignored.
        var command = new ArrayList<>(List.of("env", "--default-signal=INT"));
        command.addAll(TrainProcess.command(arguments));
        return TrainProcess.start(log, command);
    }

    private Process begin(String log, List<String> arguments) throws IOException {
        Process train = start(temporary.resolve(log), arguments);
        started.add(train);
        return train;
    }

    @Test
    @Tag(Soak.TAG)
    void aRunKilledAtRandomMomentsResumesBitIdentically() throws Exception {
        var random = new Random(SEED);
        int writing = 0;
        for (int run = 0; run < RUNS; run++) {
            writing += killAndResume(temporary.resolve("run" + run), random);
        }
        SoakReport.row(
                SoakReport.Table.KILLS,
                "train, on one device and on two",
                "%d".formatted(RUNS * KILLS),
                "%d".formatted(writing),
                "%d of %d runs".formatted(RUNS, RUNS));
    }

    /** How often it was writing a file when it was killed. */
    private int killAndResume(Path out, Random random) throws Exception {
        int writing = 0;
        List<String> arguments = new ArrayList<>(arguments(out));
        arguments.add("--tensorboard");
        List<String> seen = List.of();
        for (int kill = 0; kill < KILLS; kill++) {
            Process victim = begin("log" + kill, arguments);
            seen = awaitCheckpoint(victim, out, seen);
            Thread.sleep(random.nextInt(100));
            assertThat(victim.isAlive()).as("it ended before it was killed").isTrue();
            victim.destroyForcibly(); // SIGKILL
            end(victim);
            writing += unfinished(out) > 0 ? 1 : 0;
            assertThat(out.resolve("summary.json")).doesNotExist();
            arguments = List.of("--resume", out.toString(), "--devices", "cpu:0,cpu:1");
        }
        Process last = begin("last", arguments);
        assertThat(end(last))
                .as("tests.seed=%d: %s", SEED, Files.readString(temporary.resolve("last")))
                .isZero();
        assertThat(sha256(out)).isEqualTo(expected);
        List<String> metrics = Files.readAllLines(out.resolve("metrics.jsonl"));
        assertThat(metrics)
                .extracting(
                        line -> JsonMapper.shared().readTree(line).get("step").asInt())
                .containsExactly(0, 30, 60, 90, 120);
        assertThat(EventFiles.scalars(out.resolve("tensorboard")).get("test_accuracy"))
                .as("tests.seed=%d", SEED)
                .containsOnlyKeys(0L, 30L, 60L, 90L, 120L);
        assertThat(unfinished(out)).isZero();
        return writing;
    }

    private static long unfinished(Path out) throws IOException {
        try (Stream<Path> files = Files.walk(out)) {
            return files.filter(file -> file.toString().endsWith("part")).count();
        }
    }

    @Test
    void controlCStopsWithACheckpointAndSaysHowToGoOn() throws Exception {
        Path out = temporary.resolve("run");
        Process train = begin("log", arguments(out));
        awaitCheckpoint(train, out, List.of());
        Process interrupt = new ProcessBuilder("kill", "-INT", Long.toString(train.pid())).start();
        assertThat(end(interrupt)).isZero();
        assertThat(end(train)).isEqualTo(128 + SIGINT);
        String said = Files.readString(temporary.resolve("log"));
        assertThat(said)
                .containsPattern("stopped after step \\d+; continue with: ./fedcomuon train --resume "
                        + Pattern.quote(out.toString()));
        assertThat(out.resolve("report.html")).content().contains("was stopped before its end");

        Process rest = begin("rest", List.of("--resume", out.toString()));
        assertThat(end(rest)).as(Files.readString(temporary.resolve("rest"))).isZero();
        assertThat(sha256(out)).isEqualTo(expected);
    }
}
