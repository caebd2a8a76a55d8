package org.fedcomuon.cluster.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.testing.TrainProcess.awaitCheckpoint;
import static org.fedcomuon.testing.TrainProcess.end;
import static org.fedcomuon.testing.TrainProcess.sha256;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.SoakOnly;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * {@code ./fedcomuon train --cluster} where Spark cannot go on: it ends in time, with one line that names what is wrong
 * and the checkpoint to resume from, or goes on with the same results. {@link SparkHostsIT} has faults of hosts.
 */
@Slow
@Timeout(240)
class SparkFaultsIT {
    private static final int RUN_FAILED = 1;
    private static final int BAD_INPUT = 2;
    /** Seconds; enough for Spark and its executors to start on a machine with much else to do. */
    private static final int LONG_TIMEOUT = 60;

    /** Where it has to pass, too. */
    private static final int TIMEOUT = 15;

    /** Where Spark does not start. */
    private static final int SHORT_TIMEOUT = 3;

    private static final int STEPS = 50;
    private static final int MANY_STEPS = 2000;
    private static final String ONE_EXECUTOR = "local-cluster[1,1,1024]";

    /** So that Spark starts with a heap for which there would be no room for its caches. */
    private static final String SMALL = "-Dspark.testing.memory=500000000 -Dspark.testing.reservedMemory=0";

    @TempDir
    private Path temporary;

    private SparkDrivers drivers = new SparkDrivers(Path.of(""));

    @BeforeEach
    void startNothing() {
        drivers = new SparkDrivers(temporary);
    }

    @AfterEach
    void nothingIsLeftRunning() {
        drivers.close();
    }

    private static List<String> arguments(Path out, int steps, int timeout) {
        return List.of(
                "mnist-robust",
                "--iterations",
                Integer.toString(steps),
                "--checkpoint-every",
                "2",
                "--cluster-timeout",
                Integer.toString(timeout),
                "--out",
                out.toString());
    }

    private Process train(String name, String cluster, String options) throws IOException {
        return train(name, cluster, options, LONG_TIMEOUT);
    }

    private Process train(String name, String cluster, String options, int timeout) throws IOException {
        return drivers.train(name + ".log", cluster, options, arguments(temporary.resolve(name), STEPS, timeout));
    }

    /** The one line that a run has ended with; the others are what it said before. */
    private String ending(String name, Process run, int exitCode) throws Exception {
        int code = end(run);
        String said = drivers.log(name + ".log");
        assertThat(code).as(said).isEqualTo(exitCode);
        assertThat(said).doesNotContain("\tat ").doesNotContain("Exception in thread");
        assertThat(said.lines().filter(line -> line.startsWith("fedcomuon: ")))
                .as(said)
                .hasSize(1);
        assertThat(said.lines().count()).as(said).isLessThan(30);
        return said.lines()
                .filter(line -> line.startsWith("fedcomuon: "))
                .toList()
                .getFirst();
    }

    /** Continues a run in one process, if it has not ended, and compares with one that nothing happened to. */
    private void assertGoesOn(Path out, int steps) throws Exception {
        if (!Files.exists(out.resolve("summary.json"))) {
            Process rest = drivers.start("rest.log", TrainProcess.command(List.of("--resume", out.toString())));
            assertThat(end(rest)).as(drivers.log("rest.log")).isZero();
        }
        Path whole = temporary.resolve("whole");
        Process alone = drivers.start("whole.log", TrainProcess.command(arguments(whole, steps, LONG_TIMEOUT)));
        assertThat(end(alone)).as(drivers.log("whole.log")).isZero();
        assertThat(sha256(out)).isEqualTo(sha256(whole));
    }

    @Test
    void aMasterThatIsNotThere() throws Exception {
        int nobody;
        try (var silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                nobody = socket.getLocalPort();
            }
            Process refused = train("refused", "spark://127.0.0.1:" + nobody, "", SHORT_TIMEOUT);
            Process unknown = train("unknown", "spark://no-such-host.invalid:7077", "", SHORT_TIMEOUT);
            Process mute = train("mute", "spark://127.0.0.1:" + silent.getLocalPort(), "", SHORT_TIMEOUT);
            assertThat(ending("refused", refused, RUN_FAILED))
                    .contains("no master answers at spark://127.0.0.1:" + nobody + " within 3 s (--cluster-timeout)")
                    .contains("Connection refused")
                    .contains("there is no checkpoint yet");
            assertThat(ending("unknown", unknown, RUN_FAILED)).contains("no-such-host.invalid:7077: no such host");
            assertThat(ending("mute", mute, RUN_FAILED))
                    .contains("does not accept this application within 3 s (--cluster-timeout)");
        }
        assertThat(temporary.resolve("mute")).doesNotExist();
    }

    @Test
    void aSettingThatIsWrong() throws Exception {
        Process memory = train("memory", ONE_EXECUTOR, "-Dspark.executor.memory=lots");
        Process fan = train("fan", ONE_EXECUTOR, "-Dspark.fedcomuon.fan=0");
        Process master = train("master", "spark://7077", "");
        assertThat(ending("memory", memory, BAD_INPUT))
                .contains("Spark refuses a setting", "spark.executor.memory=lots");
        assertThat(ending("fan", fan, BAD_INPUT)).contains("spark.fedcomuon.fan = 0: must be a whole number");
        assertThat(ending("master", master, BAD_INPUT)).contains("7077 is no HOST:PORT of a master");
    }

    @Test
    void aSecretThatTheMasterDoesNotHave() throws Exception {
        var settings = List.of("-Dspark.authenticate=true", "-Dspark.authenticate.secret=one");
        try (var servers = SparkServers.start(temporary.resolve("servers"), 0, settings)) {
            Process other = train("other", servers.url(), "-Dspark.authenticate=true -Dspark.authenticate.secret=two");
            Process none = train("none", servers.url(), "");
            assertThat(ending("other", other, BAD_INPUT)).contains(servers.url(), "do not have the same secret");
            assertThat(ending("none", none, BAD_INPUT)).contains(servers.url(), "do not have the same secret");
        }
    }

    @Test
    @SoakOnly
    void executorsThatAreAllGone() throws Exception {
        Path out = temporary.resolve("run");
        try (var servers = SparkServers.start(temporary.resolve("servers"))) {
            Process run = train("run", servers.url(), "", TIMEOUT);
            assertThat(awaitCheckpoint(run, out, List.of()))
                    .as(drivers.log("run.log"))
                    .isNotEmpty();
            servers.killWorkers();
            long since = System.nanoTime();
            assertThat(ending("run", run, RUN_FAILED))
                    .contains("there has been no executor for 15 s (--cluster-timeout)")
                    .containsPattern("the last executor lost on 127\\.0\\.0\\.1: ")
                    .containsPattern("the last checkpoint is \\S+, --resume " + Pattern.quote(out.toString())
                            + " continues from it");
            assertThat(System.nanoTime() - since).isLessThan(TimeUnit.SECONDS.toNanos(2 * TIMEOUT + 30));
        }
        assertGoesOn(out, STEPS);
    }

    @Test
    @SoakOnly
    void aMasterWithoutWorkers() throws Exception {
        try (var servers = SparkServers.start(temporary.resolve("servers"), 0, List.of())) {
            assertThat(ending("run", train("run", servers.url(), "", TIMEOUT), RUN_FAILED))
                    .contains("no executors have registered within 15 s (--cluster-timeout)", "1g of memory");
        }
    }

    /** Which thread has no room depends on the size: some fail while Spark starts, others in the middle of the run. */
    @ParameterizedTest
    @ValueSource(ints = {24, 32, 40, 48, 64})
    @SoakOnly
    void aDriverWithoutRoomInItsHeap(int megabytes) throws Exception {
        Path out = temporary.resolve("run");
        Process run = train("run", ONE_EXECUTOR, "-Xmx%dm %s".formatted(megabytes, SMALL));
        if (end(run) != 0) {
            assertThat(ending("run", run, RUN_FAILED))
                    .contains(
                            "the driver, this process, is out of memory",
                            megabytes + " MiB",
                            "FEDCOMUON_JAVA_OPTS=-Xmx");
        } else {
            assertThat(out.resolve("summary.json")).exists();
        }
        if (Files.exists(out)) {
            assertGoesOn(out, STEPS);
        }
    }

    /** Its directory for executors is none: as with a disk that is full, every executor ends before it has begun. */
    @Test
    @SoakOnly
    void aWorkerThatCannotStartExecutorsIsDoneWithout() throws Exception {
        Path out = temporary.resolve("run");
        try (var servers = SparkServers.start(temporary.resolve("servers"))) {
            Files.delete(servers.workDirectory(1));
            Files.createFile(servers.workDirectory(1));
            Process run = train("run", servers.url(), "");
            assertThat(end(run)).as(drivers.log("run.log")).isZero();
        }
        String said = drivers.log("run.log");
        assertThat(said.lines().filter(line -> line.contains("is lost: 127.0.0.1: ")))
                .as(said)
                .isNotEmpty()
                .hasSizeLessThan(6)
                .allMatch(line -> line.contains("is the disk of its work directory full, or not writable?"));
        assertThat(said).contains("1 members on ");
        assertGoesOn(out, STEPS);
    }

    private void awaitLines(Process run, String pattern, int count) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(TrainProcess.PATIENCE_SECONDS);
        while (lines(pattern) < count) {
            assertThat(run.isAlive()).as(drivers.log("run.log")).isTrue();
            assertThat(System.nanoTime()).as(drivers.log("run.log")).isLessThan(deadline);
            Thread.sleep(20);
        }
    }

    private long lines(String pattern) throws IOException {
        return drivers.log("run.log")
                .lines()
                .filter(Pattern.compile(pattern).asPredicate())
                .count();
    }

    /**
     * Twice, so that a host which was lost after a member had moved to it is no other case than one that never had any.
     */
    @Test
    @SoakOnly
    void membersMoveToExecutorsThatJoinOrReturn() throws Exception {
        Path out = temporary.resolve("run");
        String moves = "member \\d starts again on 127\\.0\\.0\\.1, from ";
        try (var servers = SparkServers.start(temporary.resolve("servers"))) {
            Process run = drivers.train("run.log", servers.url(), "", arguments(out, MANY_STEPS, LONG_TIMEOUT));
            assertThat(awaitCheckpoint(run, out, List.of()))
                    .as(drivers.log("run.log"))
                    .isNotEmpty();
            for (int i = 0; i < 2; i++) {
                servers.killWorker();
                awaitLines(run, moves, 2 * i + 1); // beside the other one
                servers.addWorkers(1);
                awaitLines(run, moves, 2 * i + 2); // to the new one
            }
            assertThat(lines("executor \\d is lost")).isEqualTo(2);
            assertThat(end(run)).as(drivers.log("run.log")).isZero();
        }
        assertThat(lines(moves)).isEqualTo(4);
        assertGoesOn(out, MANY_STEPS);
    }
}
