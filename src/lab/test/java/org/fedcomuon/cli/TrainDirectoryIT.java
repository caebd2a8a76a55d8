package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.cli.CommandRun.assertRefused;
import static org.fedcomuon.testing.TrainProcess.awaitCheckpoint;
import static org.fedcomuon.testing.TrainProcess.end;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.fedcomuon.federation.RunLock;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.SoakOnly;
import org.fedcomuon.testing.TestHosts;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** One run, one directory: what a second {@code train} says of the directory of the first. */
@Slow
@Timeout(240)
class TrainDirectoryIT {
    @TempDir
    private Path temporary;

    private final List<Process> started = new ArrayList<>();

    @AfterEach
    void nothingIsLeftRunning() {
        started.forEach(Process::destroyForcibly);
    }

    private static List<String> arguments(String... more) {
        var all = new ArrayList<>(List.of(
                "mnist-robust", "--checkpoint-every", "1", "--set", "evaluateEvery=10", "--set", "largest=200"));
        all.addAll(List.of(more));
        return all;
    }

    private Process start(String log, List<String> arguments) throws IOException {
        Process train = TrainProcess.start(temporary.resolve(log), TrainProcess.command(arguments));
        started.add(train);
        return train;
    }

    private static CommandRun train(String... arguments) {
        return CommandRun.of(
                Stream.concat(Stream.of("train"), Stream.of(arguments)).toArray());
    }

    private static Stream<String> names(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(file -> String.valueOf(file.getFileName())).toList().stream();
        }
    }

    @Test
    void theDirectoryOfARunThatIsUnderWayIsRefusedAndThatOfAKilledOneGoesOn() throws Exception {
        Path out = temporary.resolve("run");
        Process first = start("first", arguments("--iterations", "60", "--out", out.toString()));
        assertThat(awaitCheckpoint(first, out, List.of())).isNotEmpty();
        TestHosts.pause(List.of(first.toHandle())); // so that it does not end now; a suspended owner is an owner
        String owner = " is in use by process %d on ".formatted(first.pid());
        assertRefused(train("--resume", out.toString()), out + owner, "; wait until it ends");
        assertRefused(train(arguments("--out", out.toString()).toArray(String[]::new)), out + owner);
        assertThat(first.isAlive()).isTrue();

        first.destroyForcibly();
        assertThat(end(first)).isNotZero();
        assertThat(names(out)).contains(RunLock.FILE);
        CommandRun rest = train("--resume", out.toString());
        assertThat(rest.exitCode()).as(rest.err()).isZero();
        assertThat(rest.err().lines().filter(line -> line.contains("lock")))
                .singleElement()
                .asString()
                .contains("process " + first.pid(), "has ended", "taken over");
        assertThat(names(out)).noneMatch(name -> name.contains("lock"));
    }

    @Test
    void twoRunsWithoutADirectoryThatStartTogetherGetOneEach() throws Exception {
        var trains = new ArrayList<Process>();
        for (int i = 0; i < 2; i++) {
            var builder = new ProcessBuilder(TrainProcess.command(arguments("--iterations", "10")))
                    .directory(temporary.toFile())
                    .redirectErrorStream(true)
                    .redirectOutput(temporary.resolve("log" + i).toFile());
            Process train = builder.start();
            started.add(train);
            trains.add(train);
        }
        for (int i = 0; i < 2; i++) {
            assertThat(end(trains.get(i)))
                    .as(Files.readString(temporary.resolve("log" + i)))
                    .isZero();
        }
        List<String> runs = names(temporary.resolve("runs")).sorted().toList();
        assertThat(runs).hasSize(2);
        assertThat(runs.get(1)).isEqualTo(runs.get(0) + "-2");
        for (String run : runs) {
            assertThat(TrainProcess.sha256(temporary.resolve("runs").resolve(run)))
                    .hasSize(64);
        }
    }

    /** With the locks of one kernel, and the names of two hosts: the refusal names the other one. */
    @Test
    @SoakOnly
    void aRunOnAnotherHostIsRefusedAndTakenOverWhenThatHostIsGone() throws Exception {
        TestHosts.assumePossible();
        Path shared = Files.createDirectory(temporary.resolve("shared"));
        Path out = shared.resolve("run");
        try (TestHosts hosts = TestHosts.start(temporary.resolve("hosts"), List.of(shared), "first", "second")) {
            Process first = hosts.host("first")
                    .start(
                            shared.resolve("one"),
                            Map.of("OPENBLAS_NUM_THREADS", "1"),
                            TrainProcess.command(arguments("--iterations", "100000", "--out", out.toString())));
            assertThat(awaitCheckpoint(first, out, List.of())).isNotEmpty();
            List<String> resume =
                    TrainProcess.command(List.of("--resume", out.toString(), "--set", "evaluateEvery=100000"));
            Process second = hosts.host("second").start(shared.resolve("two"), Map.of(), resume);
            assertThat(end(second)).isEqualTo(2);
            assertThat(Files.readString(shared.resolve("two")))
                    .containsPattern("fedcomuon: .*run is in use by process \\d+ on first since ");

            hosts.host("first").killAll();
            List<String> before = TrainProcess.checkpoints(out);
            Process third = hosts.host("second").start(shared.resolve("three"), Map.of(), resume);
            assertThat(awaitCheckpoint(third, out, before)).isNotEqualTo(before);
            assertThat(Files.readString(shared.resolve("three")))
                    .containsPattern("was locked by process \\d+ on first .* has not answered");
        }
    }
}
