package org.fedcomuon.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.testing.TrainProcess.end;
import static org.fedcomuon.testing.TrainProcess.sha256;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.fedcomuon.testing.ChildJvm;
import org.fedcomuon.testing.EventFiles;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.json.JsonMapper;

/**
 * {@code train} on disks that are full, or that become read-only, and under a clock that jumps: it ends with one line
 * that names the file, and resumes from its last checkpoint with bit-identical results when the fault is gone.
 */
@Timeout(240)
@Slow
class DiskFaultsIT {
    /** For all but checkpoints. */
    private static final long ROOM_KIB = 4096;

    /** For the settings and some evaluations. */
    private static final long EVENTS_KIB = 8;

    @TempDir
    private static Path whole;

    @TempDir
    private Path temporary;

    private static String expected = "";
    private static long checkpointBytes;

    private final List<Process> started = new ArrayList<>();

    @BeforeAll
    static void trainWithoutTrouble() throws Exception {
        Path out = whole.resolve("run");
        Process train = TrainProcess.start(whole.resolve("log"), TrainProcess.command(arguments(out)));
        assertThat(end(train)).as(Files.readString(whole.resolve("log"))).isZero();
        expected = sha256(out);
        try (Stream<Path> files = Files.list(out.resolve("checkpoints"))) {
            checkpointBytes = Files.size(files.findFirst().orElseThrow());
        }
    }

    @AfterEach
    void nothingIsLeftRunning() {
        started.forEach(process -> process.descendants().forEach(ProcessHandle::destroyForcibly));
        started.forEach(Process::destroyForcibly);
    }

    private static List<String> arguments(Path out) {
        return List.of(
                "mnist-robust",
                "--iterations",
                "60",
                "--checkpoint-every",
                "1",
                "--set",
                "evaluateEvery=10",
                "--set",
                "largest=200",
                "--out",
                out.toString());
    }

    private static List<String> resume(Path out) {
        return List.of("--resume", out.toString());
    }

    private static String shell(List<String> command) {
        return command.stream()
                .map(word -> "'" + word.replace("'", "'\\''") + "'")
                .collect(Collectors.joining(" "));
    }

    /** What is wrong, in the one line that says it. */
    private static String complaint(String said) {
        List<String> lines =
                said.lines().filter(line -> line.startsWith("fedcomuon: ")).toList();
        assertThat(lines).as(said).hasSize(1);
        assertThat(said).doesNotContain("\tat ");
        return lines.getFirst();
    }

    private void assertGoesOn(Path out) throws Exception {
        Path log = temporary.resolve("rest");
        Process rest = TrainProcess.start(log, TrainProcess.command(resume(out)));
        started.add(rest);
        assertThat(end(rest)).as(Files.readString(log)).isZero();
        assertThat(sha256(out)).isEqualTo(expected);
        assertNothingUnfinished(out);
    }

    private static void assertNothingUnfinished(Path out) throws IOException {
        try (Stream<Path> files = Files.walk(out)) {
            assertThat(files.map(file -> "" + file.getFileName())).noneMatch(name -> name.endsWith("part"));
        }
    }

    /** As a quota would: from now on no file of the process may become longer than a few bytes. */
    @Test
    void aLimitOnFilesEndsTheRunWithTheCheckpointsThatThereAre() throws Exception {
        assumeTrue(succeeds("prlimit", "--version"), "prlimit is not here");
        Path out = temporary.resolve("run");
        Process train = new ProcessBuilder(TrainProcess.command(arguments(out)))
                .redirectErrorStream(true)
                .start(); // its words through a pipe, which has no length
        started.add(train);
        CompletableFuture<String> said = CompletableFuture.supplyAsync(() -> {
            try {
                return new String(train.getInputStream().readAllBytes(), UTF_8);
            } catch (IOException e) {
                throw new AssertionError(e);
            }
        });
        assertThat(TrainProcess.awaitCheckpoint(train, out, List.of())).isNotEmpty();
        assertThat(succeeds("prlimit", "--pid", "" + train.pid(), "--fsize=512"))
                .isTrue();
        assertThat(end(train)).isEqualTo(1);
        assertThat(complaint(said.get(30, TimeUnit.SECONDS)))
                .contains(out.toString())
                .endsWith("File too large");
        assertThat(out.resolve("summary.json")).doesNotExist();
        assertNothingUnfinished(out);
        assertGoesOn(out);
    }

    private static boolean succeeds(String... command) throws InterruptedException {
        try {
            return end(new ProcessBuilder(command)
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start())
                    == 0;
        } catch (IOException e) {
            return false;
        }
    }

    /** Runs a script that has file systems of its own, in {@code disk}; the test is skipped where nobody may. */
    private int withDisk(Path disk, long kib, String script) throws Exception {
        assumeTrue(
                succeeds("unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /tmp"),
                "user namespaces with file systems of their own are not allowed here");
        Files.createDirectories(disk);
        String prelude = """
                disk=%s
                mount -t tmpfs -o size=%dk tmpfs "$disk" || exit 99
                """.formatted(shell(List.of(disk.toString())), kib);
        Path log = temporary.resolve("script");
        Process process = TrainProcess.start(log, List.of("unshare", "-rm", "bash", "-c", prelude + script));
        started.add(process);
        int code = end(process);
        assertThat(code).as(Files.readString(log)).isNotEqualTo(99);
        return code;
    }

    @Test
    void aFullDiskEndsTheRunAndWithMoreRoomItGoesOn() throws Exception {
        Path disk = temporary.resolve("disk");
        Path out = disk.resolve("run");
        Path results = Files.createDirectories(temporary.resolve("results"));
        // Two are kept while a third is written: there is room for two and a half.
        long kib = checkpointBytes * 5 / 2 / 1024 + 64;
        int code = withDisk(disk, kib, """
                cd %s
                %s > first.log 2>&1
                echo $? > first.code
                ls -A %s > left
                mount -o remount,size=%dk tmpfs "$disk" || exit 99
                %s > second.log 2>&1 || exit 98
                cp -r %s .
                """.formatted(
                        results,
                        shell(TrainProcess.command(arguments(out))),
                        out.resolve("checkpoints"),
                        checkpointBytes * 5 / 1024 + ROOM_KIB,
                        shell(TrainProcess.command(resume(out))),
                        out));
        String first = Files.readString(results.resolve("first.log"));
        assertThat(code)
                .as(first + Files.readString(temporary.resolve("script")))
                .isZero();
        assertThat(Files.readString(results.resolve("first.code")).strip())
                .as(first)
                .isEqualTo("1");
        assertThat(complaint(first)).contains(out.toString()).endsWith("No space left on device");
        assertThat(Files.readAllLines(results.resolve("left")))
                .isNotEmpty()
                .allMatch(name -> name.endsWith(".safetensors"));
        assertThat(sha256(results.resolve("run"))).isEqualTo(expected);
    }

    /** There is room for all but the last file. */
    @Test
    void aFullDiskAtTheReportLeavesTheRunCompleteAndThePageIsMadeLater() throws Exception {
        Path disk = temporary.resolve("disk");
        Path out = disk.resolve("run");
        Path results = Files.createDirectories(temporary.resolve("results"));
        String train = shell(TrainProcess.command(arguments(out).stream()
                .map(word -> word.equals("evaluateEvery=10") ? "evaluateEvery=1" : word) // a long page
                .map(word -> word.equals("1") ? "1000" : word) // one checkpoint, so that most room is needed at the end
                .toList()));
        long kib = checkpointBytes * 5 / 1024 + ROOM_KIB;
        int code = withDisk(disk, kib, """
                cd %1$s
                %2$s > whole.log 2>&1 || exit 98
                page=$(du -k %3$s/report.html | cut -f 1)
                all=$(du -sk "$disk" | cut -f 1)
                rm -r %3$s
                mount -o remount,size=$((all - page / 2))k tmpfs "$disk" || exit 99
                %2$s > first.log 2>&1
                echo $? > first.code
                mount -o remount,size=%4$dk tmpfs "$disk" || exit 99
                cp -r %3$s before
                %5$s > report.log 2>&1 || exit 97
                cp -r %3$s .
                """.formatted(
                results,
                train,
                out,
                kib,
                shell(ChildJvm.command(List.of(), "org.fedcomuon.cli.Main", List.of("report", out.toString())))));
        String first = Files.readString(results.resolve("first.log"));
        assertThat(code)
                .as(first + Files.readString(temporary.resolve("script")))
                .isZero();
        assertThat(Files.readString(results.resolve("first.code")).strip())
                .as(first)
                .isEqualTo("1");
        assertThat(complaint(first))
                .startsWith("fedcomuon: " + out.resolve("report.html") + ": No space left on device; ")
                .contains("summary and model are complete", "./fedcomuon report " + out);
        assertThat(sha256(results.resolve("before"))).isEqualTo(expected);
        assertThat(results.resolve("before/report.html")).doesNotExist();
        assertThat(results.resolve("before/model.safetensors")).isNotEmptyFile();
        assertThat(results.resolve("run/report.html")).isNotEmptyFile();
        assertNothingUnfinished(results.resolve("before"));
    }

    /** Event files are appended to: what there is room for stays, and nothing else of the evaluation. */
    @Test
    void aFullDiskOfEventFilesLeavesThemReadableAndWithMoreRoomTheyGoOn() throws Exception {
        Path out = temporary.resolve("run");
        Path disk = out.resolve("tensorboard");
        Path results = Files.createDirectories(temporary.resolve("results"));
        List<String> train = new ArrayList<>(arguments(out).stream()
                .map(word -> word.equals("evaluateEvery=10") ? "evaluateEvery=1" : word)
                .toList());
        train.add("--tensorboard");
        int code = withDisk(disk, EVENTS_KIB, """
                cd %s
                %s > first.log 2>&1
                echo $? > first.code
                cp -r "$disk" first
                mount -o remount,size=%dk tmpfs "$disk" || exit 99
                %s > second.log 2>&1 || exit 98
                cp -r "$disk" second
                """.formatted(
                results, shell(TrainProcess.command(train)), ROOM_KIB, shell(TrainProcess.command(resume(out)))));
        String first = Files.readString(results.resolve("first.log"));
        assertThat(code)
                .as(first + Files.readString(temporary.resolve("script")))
                .isZero();
        assertThat(Files.readString(results.resolve("first.code")).strip())
                .as(first)
                .isEqualTo("1");
        assertThat(complaint(first))
                .contains(disk.resolve("events.out.tfevents.").toString())
                .endsWith("No space left on device");
        NavigableSet<Long> before = steps(results.resolve("first"));
        assertThat(before).hasSizeBetween(5, 60);
        assertThat(before.last()).isEqualTo(before.size() - 1); // each from 0 on
        assertThat(steps(results.resolve("second"))).hasSize(61).contains(0L, 60L);
        assertThat(sha256(out)).isEqualTo(expected);
    }

    private static NavigableSet<Long> steps(Path tensorBoard) throws IOException {
        return EventFiles.scalars(tensorBoard).get("test_accuracy").navigableKeySet();
    }

    @Test
    void aDiskThatBecomesReadOnlyEndsTheRunAndWritableAgainItGoesOn() throws Exception {
        Path disk = temporary.resolve("disk");
        Path out = disk.resolve("run");
        Path results = Files.createDirectories(temporary.resolve("results"));
        int code = withDisk(disk, checkpointBytes * 5 / 1024 + ROOM_KIB, """
                cd %s
                %s > first.log 2>&1 & train=$!
                until ls %s/checkpoints/*.safetensors > checkpoints.log 2>&1; do kill -0 $train || exit 97; sleep 0.05; done
                until mount -o remount,ro tmpfs "$disk" 2> remount.log; do kill -0 $train || exit 96; done
                wait $train
                echo $? > first.code
                %s > other.log 2>&1
                echo $? > other.code
                mount -o remount,rw tmpfs "$disk" || exit 99
                %s > second.log 2>&1 || exit 98
                cp -r %s .
                """.formatted(
                        results,
                        shell(TrainProcess.command(arguments(out))),
                        out,
                        shell(TrainProcess.command(arguments(disk.resolve("other")))),
                        shell(TrainProcess.command(resume(out))),
                        out));
        String first = Files.readString(results.resolve("first.log"));
        assertThat(code).as(first).isZero();
        assertThat(Files.readString(results.resolve("first.code")).strip())
                .as(first)
                .isEqualTo("1");
        assertThat(complaint(first)).contains(out.toString()).endsWith("Read-only file system");
        String other = Files.readString(results.resolve("other.log"));
        assertThat(Files.readString(results.resolve("other.code")).strip())
                .as(other)
                .isEqualTo("2");
        assertThat(complaint(other)).contains(disk.resolve("other").toString());
        assertThat(sha256(results.resolve("run"))).isEqualTo(expected);
    }

    /** The wall clock is a year ahead, then a year behind, at every look; nothing that counts asks it. */
    @Test
    void aClockThatJumpsChangesNothing() throws Exception {
        Path source = Files.writeString(temporary.resolve("clock.c"), """
                #define _GNU_SOURCE
                #include <sys/syscall.h>
                #include <sys/time.h>
                #include <time.h>
                #include <unistd.h>
                static int looks;
                int clock_gettime(clockid_t clock, struct timespec *now) {
                    long status = syscall(SYS_clock_gettime, clock, now);
                    if (clock == CLOCK_REALTIME) {
                        now->tv_sec += (__sync_fetch_and_add(&looks, 1) % 2 ? 1 : -1) * 31536000L;
                    }
                    return (int)status;
                }
                int gettimeofday(struct timeval *now, void *zone) {
                    struct timespec time;
                    clock_gettime(CLOCK_REALTIME, &time);
                    now->tv_sec = time.tv_sec;
                    now->tv_usec = time.tv_nsec / 1000;
                    return 0;
                }
                """);
        Path library = temporary.resolve("libclock.so");
        assumeTrue(
                succeeds("cc", "-shared", "-fPIC", "-O1", "-o", library.toString(), source.toString()),
                "there is no C compiler for the clock");
        Path out = temporary.resolve("run");
        var builder = new ProcessBuilder(TrainProcess.command(arguments(out)))
                .redirectErrorStream(true)
                .redirectOutput(temporary.resolve("log").toFile());
        builder.environment().putAll(Map.of("OPENBLAS_NUM_THREADS", "1", "LD_PRELOAD", library.toString()));
        Process train = builder.start();
        started.add(train);
        assertThat(end(train)).as(Files.readString(temporary.resolve("log"))).isZero();
        assertThat(sha256(out)).isEqualTo(expected);
        double before = 0;
        for (String line : Files.readAllLines(out.resolve("metrics.jsonl"))) {
            double seconds = JsonMapper.shared().readTree(line).get("seconds").asDouble();
            assertThat(seconds).isBetween(before, (double) TrainProcess.PATIENCE_SECONDS);
            before = seconds;
        }
    }
}
