package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.fedcomuon.problem.testbed.RateTestbed;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The lock of a directory within one JVM, and against owners on other hosts, whose files a test writes. */
@Timeout(60)
class RunLockTest {
    private static final RunLock.Pace FAST =
            new RunLock.Pace(Duration.ofMillis(100), Duration.ofMillis(400), Duration.ofMillis(200));

    /** An owner that no process here can be. */
    private static final RunOwner ELSEWHERE = new RunOwner(
            "elsewhere",
            "another boot",
            "pid:[4026531836]",
            1234,
            5678,
            Instant.parse("2026-11-19T10:11:12Z"),
            "the lock of elsewhere");

    @TempDir
    private Path temporary;

    private Path directory;
    private Path file;

    @BeforeEach
    void makeDirectory() throws IOException {
        directory = Files.createDirectory(temporary.resolve("run"));
        file = directory.resolve(RunLock.FILE);
    }

    private RunLock take() throws IOException {
        return RunLock.take(directory, FAST, RunLock.KernelLocks::tryAll);
    }

    /** As an owner does, so that the file is never empty. */
    private void writeInPlace(String text) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)));
        }
    }

    private void assertRefused(String owner) {
        assertThatThrownBy(this::take)
                .isInstanceOf(RunLock.InUseException.class)
                .hasMessageStartingWith(directory + " is in use by process " + owner)
                .hasMessageEndingWith("; wait until it ends, or name another directory");
    }

    @Test
    void itsFileSaysWhoHasItAndIsGoneWhenItIsClosed() throws Exception {
        try (RunLock lock = take()) {
            assertThat(lock.notes()).isEmpty();
            RunOwner owner = RunOwner.of(Files.readString(file)).orElseThrow();
            assertThat(owner.pid()).isEqualTo(ProcessHandle.current().pid());
            assertThat(owner.host())
                    .isEqualTo(Files.readString(Path.of("/proc/sys/kernel/hostname"))
                            .strip());
            assertThat(owner.isAlive()).isTrue();
            assertThat(owner.isHere(RunOwner.current())).isTrue();
        }
        assertThat(directory).isEmptyDirectory();
    }

    @Test
    void aSecondOneInThisJvmIsRefusedByEveryNameOfTheDirectory() throws Exception {
        Path other = Files.createSymbolicLink(temporary.resolve("link"), directory);
        try (RunLock lock = take()) {
            assertRefused(Long.toString(ProcessHandle.current().pid()));
            assertThatThrownBy(() -> RunLock.take(other)).isInstanceOf(RunLock.InUseException.class);
            lock.requireHeld(); // which looking for it has not changed
        }
        take().close();
    }

    @Test
    void theDirectoryIsMadeAndLeavesNothingIfNothingIsWritten() throws Exception {
        Path deep = temporary.resolve("runs/of/today");
        try (RunLock lock = RunLock.take(deep)) {
            assertThat(lock.directory()).isEqualTo(deep);
        }
        assertThat(temporary.resolve("runs")).doesNotExist();
        try (RunLock _ = RunLock.take(deep)) {
            Files.createFile(deep.resolve("config.yaml"));
        }
        assertThat(deep)
                .isDirectoryNotContaining(
                        each -> String.valueOf(each.getFileName()).contains("lock"));
        try (RunLock _ = take()) {
            assertThat(file).exists();
        }
        assertThat(directory).as("it was there before").isEmptyDirectory();
    }

    @Test
    void unusedDirectoriesAreOneForEach() throws Exception {
        Path name = temporary.resolve("runs/mnist");
        try (RunLock first = RunLock.takeUnused(name);
                RunLock second = RunLock.takeUnused(name)) {
            assertThat(first.directory()).isEqualTo(name);
            assertThat(second.directory()).isEqualTo(temporary.resolve("runs/mnist-2"));
        }
    }

    @Test
    void anInterruptNeitherPreventsNorReleasesIt() throws Exception {
        Thread.currentThread().interrupt();
        try (RunLock lock = take()) {
            assertThat(Thread.currentThread().isInterrupted()).isTrue();
            lock.requireHeld();
            assertThat(Thread.interrupted()).isTrue();
        }
        assertThat(directory).isEmptyDirectory();
    }

    /** The locks of the kernel do not reach that host: its heartbeat alone says that it is alive. */
    @Test
    void anOwnerOnAnotherHostIsWatchedAndRefusesWhileItsHeartBeats() throws Exception {
        Files.writeString(file, ELSEWHERE.text(0));
        var done = new AtomicBoolean();
        Thread heart = Thread.ofPlatform().start(() -> {
            for (int beat = 1; !done.get(); beat++) {
                try {
                    writeInPlace(ELSEWHERE.text(beat));
                    Thread.sleep(FAST.beat());
                } catch (IOException | InterruptedException e) {
                    throw new AssertionError(e);
                }
            }
        });
        try {
            assertRefused("1234 on elsewhere since 2026-11-19 ");
        } finally {
            done.set(true);
            heart.join();
        }
        assertThat(RunOwner.of(Files.readString(file))).contains(ELSEWHERE);
    }

    @Test
    void anOwnerOnAnotherHostThatIsSilentIsTakenOverAfterMoreThanTwoBeats() throws Exception {
        Files.writeString(file, ELSEWHERE.text(7));
        long start = System.nanoTime();
        try (RunLock lock = take()) {
            assertThat(Duration.ofNanos(System.nanoTime() - start))
                    .isGreaterThan(FAST.beat().multipliedBy(2));
            assertThat(lock.notes())
                    .singleElement()
                    .asString()
                    .contains("process 1234 on elsewhere", "has not answered", "was taken over");
        }
        assertThat(directory).isEmptyDirectory();
    }

    @Test
    void anOwnerHereThatHasEndedIsTakenOverAtOnce() throws Exception {
        Process process = new ProcessBuilder("true").start();
        assertThat(process.waitFor(30, TimeUnit.SECONDS)).isTrue();
        RunOwner me = RunOwner.current();
        RunOwner ended =
                new RunOwner(me.host(), me.boot(), me.processes(), process.pid(), 1, Instant.now(), "its lock");
        Files.writeString(file, ended.text(3));
        long start = System.nanoTime();
        try (RunLock lock = RunLock.take(directory)) {
            assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(RunLock.Pace.USUAL.beat());
            assertThat(lock.notes()).singleElement().asString().contains("process " + process.pid(), "has ended");
        }
    }

    /** As after a lock manager has lost its locks, or with a file system that grants all. */
    @Test
    void anOwnerHereThatIsAliveRefusesWhateverTheKernelSays() throws Exception {
        Process process = new ProcessBuilder("sleep", "60").start();
        try {
            RunOwner me = RunOwner.current();
            String stat = Files.readString(Path.of("/proc/" + process.pid() + "/stat"));
            long started =
                    Long.parseLong(stat.substring(stat.lastIndexOf(')') + 2).split(" ", -1)[19]);
            RunOwner alive =
                    new RunOwner(me.host(), me.boot(), me.processes(), process.pid(), started, Instant.now(), "x");
            Files.writeString(file, alive.text(3));
            assertRefused(Long.toString(process.pid()));
            // The number of a process that has ended is given to another.
            RunOwner earlier =
                    new RunOwner(me.host(), me.boot(), me.processes(), process.pid(), started - 1, Instant.now(), "x");
            Files.writeString(file, earlier.text(3));
            take().close();
        } finally {
            process.destroyForcibly();
        }
    }

    @Test
    void aFileWithoutAnOwnerIsTakenOverWhenNothingMoves() throws Exception {
        for (String content : new String[] {"", "{", "{\"host\":\"x\"}", "\0\0\0\0"}) {
            Files.writeString(file, content);
            try (RunLock lock = take()) {
                assertThat(lock.notes()).singleElement().asString().contains("has not left its name");
            }
        }
        Files.createSymbolicLink(file, temporary.resolve("elsewhere"));
        assertThatThrownBy(this::take).isInstanceOf(IOException.class).hasMessageContaining("a link");
        assertThat(temporary.resolve("elsewhere")).doesNotExist();
    }

    @Test
    void withoutLocksOfTheFileSystemTheHeartbeatDecides() throws Exception {
        RunLock.KernelLocks none = (channel, shared) -> {
            throw new IOException("No locks available");
        };
        try (RunLock lock = RunLock.take(directory, FAST, none)) {
            assertThat(lock.notes())
                    .singleElement()
                    .asString()
                    .contains("has no locks (No locks available)", RunLock.FILE);
        }
        Files.writeString(file, ELSEWHERE.text(1));
        try (RunLock lock = RunLock.take(directory, FAST, none)) {
            assertThat(lock.notes()).hasSize(2);
        }
        assertThat(directory).isEmptyDirectory();
    }

    /** As a process sees it that was suspended while another took its lock over. */
    @Test
    void whoHasLostItIsToldAndWritesNothingMore() throws Exception {
        var told = new CountDownLatch(1);
        try (RunLock lock = take()) {
            lock.onLoss(told::countDown);
            Files.writeString(file, ELSEWHERE.text(0));
            assertThatThrownBy(lock::requireHeld)
                    .isInstanceOf(RunLock.LostException.class)
                    .hasMessageContaining("belongs to another run now: process 1234 on elsewhere");
            assertThat(told.await(10, TimeUnit.SECONDS)).isTrue();
        }
        assertThat(RunOwner.of(Files.readString(file)))
                .as("it is not ours to delete")
                .contains(ELSEWHERE);
        Files.delete(file);
        try (RunLock lock = take()) {
            Files.delete(file);
            assertThatThrownBy(lock::requireHeld)
                    .isInstanceOf(RunLock.LostException.class)
                    .hasMessageContaining("was deleted");
        }
    }

    @Test
    void beatsInPlace() throws Exception {
        try (RunLock _ = take()) {
            String first = Files.readString(file);
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
            String now = first;
            while (now.equals(first) && System.nanoTime() < deadline) {
                Thread.sleep(10);
                now = Files.readString(file);
            }
            assertThat(now).isNotEqualTo(first).hasSameSizeAs(first);
            assertThat(RunOwner.of(now)).isEqualTo(RunOwner.of(first));
        }
    }

    private Federation.Builder run() {
        var testbed = new RateTestbed(4, 1);
        return Federation.of(testbed, AllMethods.fedCoMuon()).iterations(20).tau(5);
    }

    @Test
    void twoFederationsOnOneDirectoryAreOneRun() throws Exception {
        var inside = new CountDownLatch(1);
        var proceed = new CountDownLatch(1);
        Path checkpoints = directory.resolve("checkpoints");
        Federation first = run().checkpoints(checkpoints, 1)
                .listener(new Listener() {
                    @Override
                    public void onStep(long step) {
                        inside.countDown();
                        try {
                            proceed.await();
                        } catch (InterruptedException e) {
                            throw new AssertionError(e);
                        }
                    }
                })
                .build();
        Federation second = run().checkpoints(checkpoints, 1).build();
        try (FederationRun running = first.start()) {
            assertThat(inside.await(30, TimeUnit.SECONDS)).isTrue();
            assertThatThrownBy(second::run)
                    .isInstanceOf(RunLock.InUseException.class)
                    .hasMessageStartingWith(checkpoints + " is in use by process ");
            proceed.countDown();
            running.result().get(30, TimeUnit.SECONDS);
        } finally {
            proceed.countDown();
        }
        assertThat(checkpoints.resolve(RunLock.FILE)).doesNotExist();
    }

    @Test
    void aRunThatHasLostItsDirectoryWritesNothingMore() throws Exception {
        Path out = directory.resolve("recorded");
        Federation federation = run().record(out)
                .evaluate(5, (step, model) -> {
                    if (step == 10) {
                        Files.writeString(out.resolve(RunLock.FILE), ELSEWHERE.text(0));
                    }
                    return Map.of("metric", 1.0);
                })
                .build();
        assertThatThrownBy(federation::run)
                .isInstanceOf(RunLock.LostException.class)
                .hasMessageContaining("1234 on elsewhere");
        assertThat(Files.readAllLines(out.resolve("metrics.jsonl"))).hasSize(2);
        assertThat(out.resolve("summary.json")).doesNotExist();
        assertThat(RunOwner.of(Files.readString(out.resolve(RunLock.FILE)))).isEqualTo(Optional.of(ELSEWHERE));
    }
}
