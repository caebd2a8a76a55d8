package org.fedcomuon.federation;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.fedcomuon.testing.ChildJvm;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.TestHosts;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The lock of a directory between processes: of one host, and of two that share the directory. */
@Slow
@Timeout(120)
class RunLockIT {
    private static final int PROCESSES = 5;

    @TempDir
    private Path temporary;

    private final List<Process> started = new ArrayList<>();

    @AfterEach
    void nothingIsLeftRunning() {
        started.forEach(Process::destroyForcibly);
    }

    private List<String> command(String how, Path directory) {
        return ChildJvm.command(
                List.of("-XX:TieredStopAtLevel=1"),
                RunLockProgram.class,
                List.of(how, directory.toString(), temporary.resolve("shot").toString()));
    }

    private Process start(String how, Path directory) throws IOException {
        Process process = new ProcessBuilder(command(how, directory))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        started.add(process);
        return process;
    }

    /** Starts processes that all wait for the same shot, fires it, and returns what each has said. */
    private List<String> race(String how, Path directory) throws IOException {
        var readers = new ArrayList<BufferedReader>();
        for (int i = 0; i < PROCESSES; i++) {
            readers.add(start(how, directory).inputReader(UTF_8));
        }
        for (BufferedReader reader : readers) {
            assertThat(reader.readLine()).isEqualTo("ready");
        }
        Files.createFile(temporary.resolve("shot"));
        var said = new ArrayList<String>();
        for (BufferedReader reader : readers) {
            said.add(reader.readLine());
        }
        return said;
    }

    @Test
    void ofProcessesThatStartAtTheSameTimeOneAloneWins() throws Exception {
        assertOneWins(race("take", temporary.resolve("run")));
    }

    /** As on a shared file system whose locks reach nobody else. */
    @Test
    void withoutLocksOfTheKernelToo() throws Exception {
        assertOneWins(race("heartbeat", temporary.resolve("run")));
    }

    private static void assertOneWins(List<String> said) {
        assertThat(said)
                .filteredOn(line -> line.startsWith("held "))
                .as("%s", said)
                .hasSize(1);
        assertThat(said)
                .filteredOn(line -> !line.startsWith("held "))
                .allMatch(line -> line.matches("refused .*/run is in use by process \\d+ on .* since .*"));
    }

    @Test
    void processesThatTakeAnUnusedDirectoryGetOneEach() throws Exception {
        List<String> said = race("unused", temporary.resolve("runs/mnist"));
        assertThat(said).allMatch(line -> line.startsWith("held ")).doesNotHaveDuplicates();
        try (var runs = Files.list(temporary.resolve("runs"))) {
            assertThat(runs).hasSize(PROCESSES);
        }
    }

    @Test
    void theLockOfAKilledProcessIsFreeAtOnce() throws Exception {
        Files.createFile(temporary.resolve("shot"));
        Path run = temporary.resolve("run");
        Process owner = start("take", run);
        assertThat(owner.inputReader(UTF_8).lines().limit(2)).last().asString().startsWith("held ");
        owner.destroyForcibly();
        assertThat(owner.waitFor(30, TimeUnit.SECONDS)).isTrue();
        assertThat(run.resolve(RunLock.FILE)).exists();
        long start = System.nanoTime();
        try (RunLock lock = RunLock.take(run)) {
            assertThat(System.nanoTime() - start)
                    .isLessThan(RunLock.Pace.USUAL.beat().toNanos());
            assertThat(lock.notes())
                    .singleElement()
                    .asString()
                    .contains("process " + owner.pid(), "has ended", "taken over");
        }
    }

    /** Two hosts whose kernels do not know each other's locks. */
    @Test
    void onTwoHostsTheHeartbeatDecides() throws Exception {
        TestHosts.assumePossible();
        Path shared = Files.createDirectory(temporary.resolve("shared"));
        Path run = shared.resolve("run");
        Files.createFile(shared.resolve("shot"));
        List<String> command = ChildJvm.command(
                List.of("-XX:TieredStopAtLevel=1"),
                RunLockProgram.class,
                List.of("heartbeat", run.toString(), shared.resolve("shot").toString()));
        Path one = shared.resolve("one");
        Path two = shared.resolve("two");
        Path three = shared.resolve("three");
        try (TestHosts hosts = TestHosts.start(temporary.resolve("hosts"), List.of(shared), "first", "second")) {
            Process first = hosts.host("first").start(one, Map.of(), command);
            await(one, "held ");
            Process second = hosts.host("second").start(two, Map.of(), command);
            assertThat(second.waitFor(30, TimeUnit.SECONDS)).isTrue();
            assertThat(Files.readString(two))
                    .containsPattern("refused .*/run is in use by process \\d+ on first since ");

            // It looks dead, as a host does that was suspended, and finds out before it writes.
            List<ProcessHandle> suspended = hosts.host("first").processes().stream()
                    .filter(each -> each.info().command().orElse("").endsWith("/java"))
                    .toList();
            assertThat(suspended).hasSize(1);
            TestHosts.pause(suspended);
            hosts.host("second").start(three, Map.of(), command);
            await(three, "held ");
            assertThat(Files.readString(three)).contains("on first", "has not answered");
            TestHosts.proceed(suspended);
            await(one, "lost ");
            assertThat(Files.readString(one))
                    .containsPattern("lost .* belongs to another run now: process \\d+ on second");
            assertThat(first.waitFor(30, TimeUnit.SECONDS)).isTrue();
            assertThat(RunOwner.of(Files.readString(run.resolve(RunLock.FILE)))
                            .orElseThrow()
                            .host())
                    .isEqualTo("second");
        }
    }

    private static void await(Path log, String word) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!Files.exists(log) || !Files.readString(log).contains(word)) {
            assertThat(System.nanoTime()).as(() -> log + " never has: " + word).isLessThan(deadline);
            Thread.sleep(20);
        }
    }
}
