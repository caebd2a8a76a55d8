package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.cli.CommandRun.assertRefused;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.fedcomuon.testing.ChildJvm;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.SoakOnly;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Sweeps as users run them, with trials of a few steps. */
class SweepCommandIT {
    @TempDir
    private Path temporary;

    private final List<Process> started = new ArrayList<>();

    @AfterEach
    void nothingIsLeftRunning() {
        started.forEach(Process::destroyForcibly);
    }

    private static List<String> arguments(Path out, String... more) {
        var all = new ArrayList<>(List.of("sweep", "portfolio", "--set", "days=100", "--out", out.toString()));
        all.addAll(List.of(more));
        return all;
    }

    private static CommandRun sweep(Path out, String... more) {
        return CommandRun.of(arguments(out, more).toArray());
    }

    private static JsonNode json(Path out) throws IOException {
        return JsonMapper.shared().readTree(Files.readString(out.resolve("sweep.json")));
    }

    /** When each trial that has ended did so. */
    private static Map<String, FileTime> ends(Path out) throws IOException {
        var ends = new TreeMap<String, FileTime>();
        if (!Files.isDirectory(out.resolve("trials"))) {
            return ends;
        }
        try (Stream<Path> trials = Files.list(out.resolve("trials"))) {
            for (Path trial : trials.toList()) {
                Path model = trial.resolve("model.safetensors");
                Path summary = trial.resolve("summary.json");
                if (Files.exists(summary)
                        && !JsonMapper.shared()
                                .readTree(Files.readString(summary))
                                .get("stopped")
                                .asBoolean()) {
                    ends.put(trial.getFileName().toString(), Files.getLastModifiedTime(model));
                }
            }
        }
        return ends;
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }

    @Test
    @Slow
    void aSweepLeavesItsFilesAndRunsOnlyWhatIsMissing() throws Exception {
        Path out = temporary.resolve("sweep");
        String[] what = {
            "--iterations",
            "8",
            "--methods",
            "fedcomuon,fedavg",
            "--grid",
            "eta=0.005,0.02",
            "--seeds",
            "2",
            "--parallel",
            "2"
        };
        CommandRun first = sweep(out, what);
        assertThat(first.exitCode()).as(first.err()).isZero();
        assertThat(first.out()).contains("fedcomuon", "fedavg", "validation_objective", "sweep.html");
        assertThat(first.err()).contains("fedavg, eta 0.02, seed 43: validation_objective", "8 of 8 trials");
        JsonNode json = json(out);
        assertThat(json.get("complete").asBoolean()).isTrue();
        assertThat(json.get("trials")).hasSize(8).allSatisfy(trial -> {
            assertThat(trial.get("state").asString()).isEqualTo("done");
            assertThat(trial.get("metrics").get("validation_objective").asDouble())
                    .isFinite();
            assertThat(trial.get("seconds").asDouble()).isPositive();
            assertThat(out.resolve("trials")
                            .resolve(trial.get("name").asString())
                            .resolve("report.html"))
                    .exists();
        });
        assertThat(Files.readAllLines(out.resolve("sweep.csv"))).hasSize(9);
        Map<String, FileTime> ends = ends(out);
        assertThat(ends).hasSize(8);

        CommandRun again = sweep(out, what);
        assertThat(again.exitCode()).isZero();
        assertThat(again.err()).contains("all 8 trials exist already");
        assertThat(again.out()).isEqualTo(first.out());
        assertThat(ends(out)).isEqualTo(ends);

        String lost = "fedavg-eta=0.02-seed=42-steps=8";
        String before = TrainProcess.sha256(out.resolve("trials").resolve(lost));
        delete(out.resolve("trials").resolve(lost));
        CommandRun third = sweep(out, what);
        assertThat(third.err()).contains("7 of 8 trials exist already");
        Map<String, FileTime> now = ends(out);
        assertThat(now.remove(lost)).isNotEqualTo(ends.remove(lost));
        assertThat(now).isEqualTo(ends);
        assertThat(TrainProcess.sha256(out.resolve("trials").resolve(lost))).isEqualTo(before);

        Path best = out.resolve("best-fedcomuon.yaml");
        assertThat(Files.readString(best)).startsWith("# The best of 2 settings of fedcomuon: eta 0.0");
        Path trained = temporary.resolve("trained");
        CommandRun train = CommandRun.of("train", best, "--out", trained);
        assertThat(train.exitCode()).as(train.err()).isZero();
        assertThat(Files.readString(trained.resolve("config.yaml")))
                .contains("iterations: 8", "seed: 42")
                .doesNotContain("validationShare");
    }

    @Test
    @Slow
    void halvingGoesOnWithTheBetterHalf() throws Exception {
        Path out = temporary.resolve("sweep");
        CommandRun run = sweep(
                out,
                "--iterations",
                "12",
                "--tau",
                "1",
                "--grid",
                "eta=0.002,0.01,0.02,0.04",
                "--strategy",
                "halving",
                "--parallel",
                "1");
        assertThat(run.exitCode()).as(run.err()).isZero();
        JsonNode trials = json(out).get("trials");
        assertThat(trials).extracting(trial -> trial.get("iterations").asInt()).containsExactly(3, 3, 3, 3, 6, 6, 12);
        assertThat(etas(trials, 6))
                .containsExactlyInAnyOrderElementsOf(etas(trials, 3).subList(0, 2));
        assertThat(etas(trials, 12)).isEqualTo(etas(trials, 6).subList(0, 1));
        assertThat(Files.readString(out.resolve("best-fedcomuon.yaml"))).contains("iterations: 12");
    }

    /** The values of eta that were tried for so many steps, the best first. */
    private static List<String> etas(JsonNode trials, int iterations) {
        return trials.valueStream()
                .filter(trial -> trial.get("iterations").asInt() == iterations)
                .sorted(Comparator.comparingDouble(trial ->
                        trial.get("metrics").get("validation_objective").asDouble()))
                .map(trial -> trial.get("settings").get("eta").asString())
                .toList();
    }

    @Test
    @Slow
    void trialsThatDivergeOrFailAreRows() throws Exception {
        Path out = temporary.resolve("diverged");
        String[] what = {"--iterations", "8", "--method", "fedavg", "--grid", "eta=0.01,1e30", "--parallel", "1"};
        CommandRun run = sweep(out, what);
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out()).contains("1 of 2 trials diverged");
        JsonNode trial = json(out).get("trials").get(1);
        assertThat(trial.get("state").asString()).isEqualTo("diverged");
        assertThat(trial.get("reason").asString()).contains("step");
        assertThat(Files.readString(out.resolve("best-fedavg.yaml"))).contains("eta: 0.01");
        CommandRun again = sweep(out, what);
        assertThat(again.err()).contains("all 2 trials exist already"); // it would diverge again

        Path small = temporary.resolve("failed");
        CommandRun failed = sweep(small, "--iterations", "8", "--memory-limit", "0.1");
        assertThat(failed.exitCode()).isEqualTo(1);
        assertThat(failed.err()).contains("fedcomuon: none of 1 trials has a result; the first one: this run needs");
        assertThat(json(small).get("trials").get(0).get("state").asString()).isEqualTo("failed");
    }

    /** SweepIT has a sweep that is stopped without other processes than those of its trials. */
    @Test
    @SoakOnly
    void aSweepThatIsStoppedOrKilledGoesOn() throws Exception {
        Path out = temporary.resolve("sweep");
        String[] what = {
            "--iterations",
            "1500",
            "--checkpoint-every",
            "20",
            "--set",
            "evaluateEvery=500",
            "--grid",
            "eta=0.01,0.02",
            "--seeds",
            "2",
            "--parallel",
            "1"
        };
        Process stopped = begin("stopped", arguments(out, what));
        awaitEnds(stopped, out, Map.of());
        Process interrupt = new ProcessBuilder("kill", "-INT", Long.toString(stopped.pid())).start();
        assertThat(TrainProcess.end(interrupt)).isZero();
        assertThat(TrainProcess.end(stopped)).as(said("stopped")).isEqualTo(130);
        assertThat(said("stopped")).containsPattern("stopped with [1-3] of 4 trials; the same command continues");
        assertThat(json(out).get("complete").asBoolean()).isFalse();
        Map<String, FileTime> ends = ends(out);

        Process killed = begin("killed", arguments(out, what));
        Map<String, FileTime> more = awaitEnds(killed, out, ends);
        killed.destroyForcibly();
        TrainProcess.end(killed);
        assertThat(more).containsAllEntriesOf(ends);
        assertThat(out.resolve("best-fedcomuon.yaml")).doesNotExist();

        CommandRun rest = sweep(out, what);
        assertThat(rest.exitCode()).as(rest.err()).isZero();
        assertThat(ends(out)).hasSize(4).containsAllEntriesOf(more);
        assertThat(json(out).get("complete").asBoolean()).isTrue();
        assertThat(out.resolve("run.lock")).doesNotExist();
    }

    private Process begin(String log, List<String> arguments) throws IOException {
        // A shell that runs this in the background may have set SIGINT to be ignored.
        var command = new ArrayList<>(List.of("env", "--default-signal=INT"));
        command.addAll(ChildJvm.command(List.of(), "org.fedcomuon.cli.Main", arguments));
        Process process = TrainProcess.start(temporary.resolve(log), command);
        started.add(process);
        return process;
    }

    private String said(String log) throws IOException {
        return Files.readString(temporary.resolve(log));
    }

    private static Map<String, FileTime> awaitEnds(Process sweep, Path out, Map<String, FileTime> before)
            throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(TrainProcess.PATIENCE_SECONDS);
        Map<String, FileTime> now = ends(out);
        while (now.size() <= before.size() && sweep.isAlive() && System.nanoTime() < deadline) {
            Thread.sleep(10);
            now = ends(out);
        }
        return now;
    }

    @Test
    void whatCannotBeIsRefusedBeforeAnyTrial() {
        Path out = temporary.resolve("sweep");
        assertRefused(
                sweep(out, "--grid", "eta=0.01", "--metric", "test_accuracy"), "--metric test_accuracy", "validation_");
        assertRefused(sweep(out, "--grid", "etta=0.01"), "did you mean 'eta'?");
        assertRefused(sweep(out, "--grid", "eta=0.01", "--cluster", "mpi"), "--cluster mpi", "possible are local");
        assertRefused(sweep(out, "--grid", "eta=0.01", "--cluster-timeout", "0"), "--cluster-timeout 0");
        assertRefused(sweep(out, "--grid", "eta=0.01", "--trials", "3"), "--trials 3");
        assertRefused(sweep(out, "--grid", "eta=0.01", "--strategy", "annealing"), "--strategy annealing", "halving");
        assertRefused(sweep(out, "--grid", "eta=0.01", "--parallel", "0"), "--parallel 0");
        assertRefused(CommandRun.of("sweep"), "no PRESET given");
        CommandRun several =
                sweep(out, "--grid", "eta=-1", "--seeds", "0", "--methods", "fedavg,fedawg", "--devices", "tpu:0");
        assertThat(several.exitCode()).isEqualTo(2);
        assertThat(several.err()).contains("eta = -1", "--seeds 0", "did you mean 'fedavg'?", "tpu:0");
        assertThat(out).doesNotExist();
    }

    @Test
    void earlyStoppingIsNotForClusters() {
        assertRefused(
                CommandRun.of(
                        "train",
                        "mnist-robust",
                        "--cluster",
                        "mpi",
                        "--set",
                        "validationShare=0.1",
                        "--set",
                        "earlyStopping=2"),
                "--cluster mpi with earlyStopping");
    }
}
