package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.as;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;
import static org.fedcomuon.testing.TrainProcess.awaitCheckpoint;
import static org.fedcomuon.testing.TrainProcess.checkpoints;
import static org.fedcomuon.testing.TrainProcess.end;
import static org.fedcomuon.testing.TrainProcess.sha256;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.fedcomuon.testing.ChildJvm;
import org.fedcomuon.testing.EventFiles;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.SoakOnly;
import org.fedcomuon.testing.TestHosts;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** {@code mpirun ./fedcomuon train --cluster mpi}, on one machine. Root installs Open MPI where it is missing. */
@Slow
class MpiIT {
    private static final String PACKAGE = "openmpi-bin";
    static final String MPIRUN = "mpirun.openmpi";

    @TempDir
    private static Path whole;

    @TempDir
    private Path temporary;

    private static String expected = "";

    private final List<Process> started = new ArrayList<>();

    @BeforeAll
    static void trainInOneProcess() throws Exception {
        assumeOpenMpi();
        Path out = whole.resolve("run");
        Path log = whole.resolve("log");
        assertThat(end(TrainProcess.start(log, TrainProcess.command(arguments(out)))))
                .as(Files.readString(log))
                .isZero();
        expected = sha256(out);
    }

    /** Skips the test where Open MPI is missing and cannot be installed. */
    static void assumeOpenMpi() throws InterruptedException {
        boolean there = canRun(MPIRUN, "--version");
        if (!there && System.getProperty("user.name").equals("root")) {
            there = canRun(
                            "apt-get",
                            "-o",
                            "DPkg::Lock::Timeout=60",
                            "install",
                            "--yes",
                            "--no-install-recommends",
                            PACKAGE)
                    && canRun(MPIRUN, "--version");
        }
        assumeTrue(there, "Open MPI is missing; install it: sudo apt-get install " + PACKAGE);
    }

    private static boolean canRun(String... command) throws InterruptedException {
        try {
            Process process = new ProcessBuilder(command)
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start();
            return process.waitFor(TrainProcess.PATIENCE_SECONDS, TimeUnit.SECONDS) && process.exitValue() == 0;
        } catch (IOException e) {
            return false; // no such program
        }
    }

    @AfterEach
    void nothingIsLeftRunning() {
        started.forEach(mpirun -> {
            mpirun.descendants().forEach(ProcessHandle::destroyForcibly);
            mpirun.destroyForcibly();
        });
    }

    private static List<String> arguments(Path out) {
        return List.of("mnist-robust", "--iterations", "50", "--checkpoint-every", "1", "--out", out.toString());
    }

    private static List<String> mpirun(int processes) {
        return new ArrayList<>(List.of(
                MPIRUN,
                "--allow-run-as-root",
                "--oversubscribe",
                "--bind-to",
                "none",
                "--mca",
                "mpi_yield_when_idle",
                "1",
                "-np",
                Integer.toString(processes)));
    }

    private Process mpirun(String log, int processes, List<String> arguments) throws IOException {
        List<String> command = mpirun(processes);
        command.addAll(TrainProcess.command(arguments));
        command.addAll(List.of("--cluster", "mpi"));
        Process process = TrainProcess.start(temporary.resolve(log), command);
        started.add(process);
        return process;
    }

    private String log(String name) throws IOException {
        return Files.readString(temporary.resolve(name));
    }

    @Test
    void twoProcessesGiveTheBitsOfOne() throws Exception {
        Path out = temporary.resolve("run");
        var arguments = new ArrayList<>(arguments(out));
        arguments.add("--tensorboard");
        Process run = mpirun("log", 2, arguments);
        assertThat(end(run)).as(log("log")).isZero();
        assertThat(sha256(out)).isEqualTo(expected);
        JsonNode summary = JsonMapper.shared().readTree(Files.readString(out.resolve("summary.json")));
        assertThat(summary.get("members").asInt()).isEqualTo(2);
        assertThat(log("log")).containsOnlyOnce("sha256"); // one process speaks
        assertThat(Files.readAllLines(out.resolve("metrics.jsonl")))
                .hasSameSizeAs(Files.readAllLines(whole.resolve("run").resolve("metrics.jsonl")));
        assertThat(EventFiles.files(out.resolve("tensorboard"))).hasSize(1); // one process writes
        assertThat(EventFiles.scalars(out.resolve("tensorboard")).get("test_accuracy"))
                .hasSameSizeAs(Files.readAllLines(out.resolve("metrics.jsonl")));
    }

    @Test
    void aKilledProcessEndsTheJobAndTheCheckpointIsNamed() throws Exception {
        Path out = temporary.resolve("run");
        Process run = mpirun("log", 2, arguments(out));
        assertThat(awaitCheckpoint(run, out, List.of())).isNotEmpty();
        ProcessHandle victim = run.descendants()
                .filter(process -> process.info().command().orElse("").endsWith("java"))
                .max((a, b) -> Long.compare(a.pid(), b.pid()))
                .orElseThrow();
        victim.destroyForcibly(); // SIGKILL
        assertThat(end(run)).isNotZero();
        assertThat(out.resolve("summary.json")).doesNotExist();
        assertThat(log("log")).containsPattern("the last checkpoint is .*checkpoint-\\d+\\.safetensors, --resume ");

        Process rest = mpirun("rest", 3, List.of("--resume", out.toString()));
        assertThat(end(rest)).as(log("rest")).isZero();
        assertThat(sha256(out)).isEqualTo(expected);
    }

    /** One that is stopped for less than the limit goes on; then the same, for longer. */
    @Test
    void aFrozenProcessEndsTheRunWithItsNumberAndHost() throws Exception {
        freeze(1);
    }

    /** The process that the others wait for. */
    @Test
    @SoakOnly
    void theFirstProcessFrozenEndsTheRunToo() throws Exception {
        freeze(0);
    }

    private void freeze(int frozen) throws Exception {
        Path out = temporary.resolve("run");
        var arguments = new ArrayList<>(arguments(out));
        arguments.addAll(List.of("--cluster-timeout", "3"));
        Process run = mpirun("log", 2, arguments);
        List<String> before = awaitCheckpoint(run, out, List.of());
        assertThat(before).as(log("log")).isNotEmpty();
        List<ProcessHandle> process = List.of(member(run, frozen));
        TestHosts.pause(process);
        TimeUnit.SECONDS.sleep(1);
        TestHosts.proceed(process);
        assertThat(awaitCheckpoint(run, out, checkpoints(out))).isNotEqualTo(before);
        TestHosts.pause(process);
        long from = System.nanoTime();
        assertThat(end(run)).as(log("log")).isEqualTo(Failures.RUN_FAILED);
        assertThat(Duration.ofNanos(System.nanoTime() - from)).isBetween(Duration.ofSeconds(2), Duration.ofSeconds(20));
        process.getFirst()
                .onExit()
                .orTimeout(TrainProcess.PATIENCE_SECONDS, TimeUnit.SECONDS)
                .join();
        assertThat(log("log").lines().filter(line -> line.contains("no sign of life")))
                .singleElement(as(STRING))
                .matches(("fedcomuon: no sign of life for 3 s from process %d on \\S+;"
                                + " the last checkpoint is .*checkpoint-\\d+\\.safetensors, --resume .*")
                        .formatted(frozen));

        Path rest = temporary.resolve("rest");
        assertThat(end(TrainProcess.start(rest, TrainProcess.command(List.of("--resume", out.toString())))))
                .as(Files.readString(rest))
                .isZero();
        assertThat(sha256(out)).isEqualTo(expected);
    }

    /** Finds a process that {@code mpirun} has started, by its number. */
    private static ProcessHandle member(Process mpirun, int rank) {
        return mpirun.descendants()
                .filter(process -> environment(process).contains("OMPI_COMM_WORLD_RANK=" + rank))
                .findFirst()
                .orElseThrow();
    }

    private static List<String> environment(ProcessHandle process) {
        try {
            return List.of(Files.readString(Path.of("/proc", Long.toString(process.pid()), "environ"))
                    .split("\0"));
        } catch (IOException e) {
            return List.of(); // it has ended
        }
    }

    @Test
    void aSlowProcessIsWaitedFor() throws Exception {
        List<String> command = mpirun(2);
        command.addAll(ChildJvm.command(List.of(), SlowMember.class, List.of()));
        Process run = TrainProcess.start(temporary.resolve("log"), command);
        started.add(run);
        assertThat(end(run)).as(log("log")).isZero();
        assertThat(log("log")).contains("process 0 has ended").contains("process 1 has ended");
    }

    @Test
    void whatIsWrongIsSaidOnceAndNobodyWaits() throws Exception {
        Process taken = mpirun("taken", 2, arguments(whole.resolve("run")));
        assertThat(end(taken)).isEqualTo(Failures.BAD_INPUT);
        assertThat(log("taken")).containsOnlyOnce("holds a run already");

        Path out = temporary.resolve("run");
        var many = new ArrayList<>(arguments(out));
        many.addAll(List.of("--clients", "2"));
        Process tooMany = mpirun("many", 3, many);
        assertThat(end(tooMany)).isNotZero();
        assertThat(log("many")).contains("3 members for 2 clients");
    }

    @Test
    void withoutMpirunItSaysSo() throws Exception {
        var arguments = new ArrayList<>(arguments(temporary.resolve("run")));
        arguments.addAll(List.of("--cluster", "mpi"));
        Process alone = TrainProcess.start(temporary.resolve("log"), TrainProcess.command(arguments));
        started.add(alone);
        assertThat(end(alone)).isEqualTo(Failures.BAD_INPUT);
        assertThat(log("log")).contains("--cluster mpi: this process was not started by Open MPI");
    }
}
