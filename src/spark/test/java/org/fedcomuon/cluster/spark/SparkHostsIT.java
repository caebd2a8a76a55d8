package org.fedcomuon.cluster.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.cluster.spark.SparkHosts.DRIVER;
import static org.fedcomuon.cluster.spark.SparkHosts.MASTER;
import static org.fedcomuon.cluster.spark.SparkHosts.WORKERS;
import static org.fedcomuon.testing.TrainProcess.awaitCheckpoint;
import static org.fedcomuon.testing.TrainProcess.checkpoints;
import static org.fedcomuon.testing.TrainProcess.end;
import static org.fedcomuon.testing.TrainProcess.sha256;
import static org.fedcomuon.testing.TrainProcess.summary;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.SoakOnly;
import org.fedcomuon.testing.TestHosts;
import org.fedcomuon.testing.TestHosts.Host;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.json.JsonMapper;

/**
 * {@code ./fedcomuon train --cluster spark://...} on several hosts with a network between them that fails: whatever
 * happens, a run that ends well has the result of one process.
 */
@Slow
@Timeout(600)
class SparkHostsIT {
    private static final int BAD_INPUT = 2;
    private static final int STEPS = 50;

    /** Enough that a host which was given up comes back before the run ends. */
    private static final int MANY_STEPS = 150;

    private static final int PATIENCE_SECONDS = 300;

    private static final List<String> DEFAULTS = List.of();

    /** The second member sends to the first, on another host, and not to the driver. */
    private static final List<String> IN_A_CHAIN = List.of("-Dspark.fedcomuon.fan=1");

    /** Where the driver receives values. */
    private static final int PORT = 7999;

    /** What Spark gives up after seconds with, not after minutes. */
    private static final List<String> IMPATIENT = List.of(
            "-Dspark.network.timeout=10s",
            "-Dspark.network.timeoutInterval=2s",
            "-Dspark.executor.heartbeatInterval=2s",
            "-Dspark.worker.timeout=10");

    @TempDir
    private static Path directory;

    /** The one directory that all hosts reach. */
    private static Path shared;

    private static TestHosts hosts;
    private static final Map<Integer, String> EXPECTED = new HashMap<>();

    private SparkHosts spark;

    @BeforeAll
    static void startHosts() throws Exception {
        TestHosts.assumePossible();
        shared = Files.createDirectories(directory.resolve("shared"));
        hosts = SparkHosts.hosts(directory.resolve("hosts"), shared);
    }

    @AfterAll
    static void closeHosts() {
        if (hosts != null) {
            hosts.close();
        }
    }

    @AfterEach
    void closeServersAndRepairLinks() throws Exception {
        if (spark != null) {
            spark.close();
        }
        for (String each : List.of(DRIVER, MASTER, WORKERS.get(0), WORKERS.get(1))) {
            host(each).restore();
        }
    }

    /** The result of one process, without a cluster. */
    private static String expected(int steps) throws Exception {
        if (!EXPECTED.containsKey(steps)) {
            Path out = alone(steps);
            Path log = directory.resolve(steps + ".log");
            assertThat(end(TrainProcess.start(log, TrainProcess.command(arguments(out, steps)))))
                    .as(Files.readString(log))
                    .isZero();
            EXPECTED.put(steps, sha256(out));
        }
        return EXPECTED.get(steps);
    }

    /** The directory of the run of one process. */
    private static Path alone(int steps) {
        return directory.resolve("alone-" + steps);
    }

    /** The steps that were evaluated. */
    private static List<Long> evaluations(Path run) throws IOException {
        return Files.readAllLines(run.resolve("metrics.jsonl")).stream()
                .map(line -> JsonMapper.shared().readTree(line).get("step").asLong())
                .toList();
    }

    private static List<String> arguments(Path out, int steps) {
        return List.of("mnist-robust", "--iterations", "" + steps, "--checkpoint-every", "2", "--out", out.toString());
    }

    /** A run on the hosts, with its directory and all that it says. */
    private final class Run {
        private final Path out;
        private final Path log;
        private final int steps;
        private final Process process;

        Run(String name, List<String> settings, int steps) throws IOException {
            this.steps = steps;
            Path place = Files.createTempDirectory(shared, name);
            out = place.resolve("run");
            log = place.resolve("log");
            process = spark.train(log, settings, arguments(out, steps));
        }

        String said() throws IOException {
            return Files.readString(log);
        }

        void awaitLine(String part) throws Exception {
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
            while (!said().contains(part)) {
                assertThat(process.isAlive()).as(said()).isTrue();
                assertThat(System.nanoTime()).as(said()).isLessThan(deadline);
                Thread.sleep(50);
            }
        }

        void awaitProgress(List<String> since) throws Exception {
            List<String> now = awaitCheckpoint(process, out, since);
            assertThat(now).as(said()).isNotEmpty().isNotEqualTo(since);
        }

        void assertEndsWell() throws Exception {
            assertThat(process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS))
                    .as(said())
                    .isTrue();
            assertThat(process.exitValue()).as(said()).isZero();
            assertThat(sha256(out)).as(said()).isEqualTo(expected(steps));
            assertThat(summary(out).get("members").asInt()).isEqualTo(2);
            assertThat(said()).containsOnlyOnce("step 25 of " + steps);
            assertThat(evaluations(out)).isEqualTo(evaluations(alone(steps)));
        }
    }

    private static SparkHosts start(List<String> settings) throws Exception {
        return SparkHosts.start(hosts, Files.createTempDirectory(shared, "servers"), settings);
    }

    private static List<String> with(List<String> some, List<String> more) {
        return Stream.concat(some.stream(), more.stream()).toList();
    }

    private static Host host(String name) {
        return hosts.host(name);
    }

    /** Both of them are needed for every round, so that nothing goes on while one is away. */
    @SoakOnly
    @Test
    void hostsThatShareOneDirectoryAndALinkThatIsCutForSeconds() throws Exception {
        spark = start(DEFAULTS);
        var healthy = new Run("healthy", DEFAULTS, STEPS);
        healthy.assertEndsWell();

        var run = new Run("cut", IN_A_CHAIN, STEPS);
        run.awaitProgress(List.of());
        host(WORKERS.get(1)).cut();
        TimeUnit.SECONDS.sleep(1); // what is under way arrives or does not
        List<String> before = checkpoints(run.out);
        TimeUnit.SECONDS.sleep(4);
        assertThat(checkpoints(run.out)).isEqualTo(before);
        assertThat(run.process.isAlive()).as(run.said()).isTrue();
        host(WORKERS.get(1)).restore();
        run.assertEndsWell();
        assertThat(run.said()).doesNotContain("is lost");
    }

    @Test
    @SoakOnly
    void aDirectoryThatIsNotSharedIsNamedWithTheHosts() throws Exception {
        spark = start(DEFAULTS);
        Path log = shared.resolve("apart.log");
        Process run = spark.train(log, DEFAULTS, arguments(Path.of("/var/tmp/run"), STEPS));
        assertThat(end(run)).as(Files.readString(log)).isEqualTo(BAD_INPUT);
        assertThat(Files.readString(log))
                .contains(
                        "/var/tmp/run is not the directory that the driver has",
                        host(WORKERS.get(0)).address())
                .contains(host(WORKERS.get(1)).address());
    }

    /** Of each worker, because the member of one of them writes the files. */
    @ParameterizedTest
    @CsvSource({"0, 4", "1, 4", "0, 1", "1, 1"})
    @SoakOnly
    void aHostThatIsCutOffForGoodIsReplaced(int worker, int fan) throws Exception {
        spark = start(IMPATIENT);
        var run = new Run("run", with(IMPATIENT, List.of("-Dspark.fedcomuon.fan=" + fan)), STEPS);
        run.awaitProgress(List.of());
        host(WORKERS.get(worker)).cut();
        run.assertEndsWell();
        assertThat(run.said()).containsPattern("executor \\d is lost").containsPattern("member \\d starts again on ");
    }

    /** Nothing tells anybody that the other side is gone: no carrier is lost, and no answer comes. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    @SoakOnly
    void aHostWithoutPowerIsReplaced(int worker) throws Exception {
        spark = start(IMPATIENT);
        var run = new Run("run", with(IMPATIENT, IN_A_CHAIN), STEPS);
        run.awaitProgress(List.of());
        host(WORKERS.get(worker)).isolate();
        host(WORKERS.get(worker)).killAll();
        run.assertEndsWell();
        assertThat(run.said()).containsPattern("executor \\d is lost").containsPattern("member \\d starts again on ");
    }

    /** It still has members, which must not write to what is now others' business. */
    @ParameterizedTest
    @CsvSource({"0, 4", "1, 4", "0, 1", "1, 1"})
    @SoakOnly
    void aHostThatComesBackAfterItWasGivenUpDoesNoHarm(int worker, int fan) throws Exception {
        spark = start(IMPATIENT);
        var run = new Run("run", with(IMPATIENT, List.of("-Dspark.fedcomuon.fan=" + fan)), MANY_STEPS);
        run.awaitProgress(List.of());
        host(WORKERS.get(worker)).isolate();
        run.awaitLine("starts again on ");
        run.awaitProgress(checkpoints(run.out));
        host(WORKERS.get(worker)).restore();
        run.assertEndsWell();
    }

    @Test
    @SoakOnly
    void aDriverThatIsCutOffForSecondsGoesOn() throws Exception {
        spark = start(DEFAULTS);
        var run = new Run("run", IN_A_CHAIN, STEPS);
        run.awaitProgress(List.of());
        host(DRIVER).cut();
        TimeUnit.SECONDS.sleep(20);
        assertThat(run.process.isAlive()).as(run.said()).isTrue();
        host(DRIVER).restore();
        run.assertEndsWell();
        assertThat(run.said()).doesNotContain("is lost");
    }

    /** Members and driver need no master once they have found each other. */
    @Test
    @SoakOnly
    void aMasterThatIsCutOffForGoodIsNotMissed() throws Exception {
        spark = start(IMPATIENT);
        var run = new Run("run", with(IMPATIENT, IN_A_CHAIN), MANY_STEPS);
        run.awaitProgress(List.of());
        host(MASTER).cut();
        run.assertEndsWell();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    @SoakOnly
    void anExecutorThatRestsForSecondsIsWaitedFor(int worker) throws Exception {
        spark = start(DEFAULTS);
        var run = new Run("run", IN_A_CHAIN, STEPS);
        run.awaitProgress(List.of());
        List<ProcessHandle> executors = spark.executors(WORKERS.get(worker));
        assertThat(executors).hasSize(1);
        TestHosts.pause(executors);
        TimeUnit.SECONDS.sleep(10);
        TestHosts.proceed(executors);
        run.assertEndsWell();
        assertThat(run.said()).doesNotContain("is lost");
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    @SoakOnly
    void anExecutorThatWakesAfterItWasGivenUpDoesNoHarm(int worker) throws Exception {
        spark = start(IMPATIENT);
        var run = new Run("run", with(IMPATIENT, IN_A_CHAIN), MANY_STEPS);
        run.awaitProgress(List.of());
        List<ProcessHandle> executors = spark.executors(WORKERS.get(worker));
        assertThat(executors).hasSize(1);
        List<ProcessHandle> server = List.of(spark.server(WORKERS.get(worker)));
        TestHosts.pause(server); // or it would end the executor
        TestHosts.pause(executors);
        run.awaitLine("starts again on ");
        run.awaitProgress(checkpoints(run.out));
        TestHosts.proceed(executors);
        run.awaitProgress(checkpoints(run.out));
        TestHosts.proceed(server);
        run.assertEndsWell();
    }

    @Test
    @SoakOnly
    void aDriverThatRestsForSecondsGoesOn() throws Exception {
        spark = start(DEFAULTS);
        var run = new Run("run", IN_A_CHAIN, STEPS);
        run.awaitProgress(List.of());
        List<ProcessHandle> driver = List.of(SparkHosts.program(run.process));
        TestHosts.pause(driver);
        TimeUnit.SECONDS.sleep(10);
        TestHosts.proceed(driver);
        run.assertEndsWell();
        assertThat(run.said()).doesNotContain("is lost");
    }

    @Test
    @SoakOnly
    void connectionsThatAreResetChangeNoBit() throws Exception {
        spark = start(DEFAULTS);
        var run = new Run("run", IN_A_CHAIN, MANY_STEPS);
        run.awaitProgress(List.of());
        for (String each : WORKERS) {
            host(each).resetConnections();
            run.awaitProgress(checkpoints(run.out));
        }
        run.assertEndsWell();
    }

    /** Spark's own connections stay, so that it does not notice. */
    @Test
    @SoakOnly
    void aConnectionForValuesThatIsResetIsMadeAgain() throws Exception {
        spark = start(DEFAULTS);
        var run = new Run("run", List.of("-Dspark.fedcomuon.port=" + PORT), MANY_STEPS);
        for (int i = 0; i < 3; i++) {
            run.awaitProgress(checkpoints(run.out));
            for (String each : WORKERS) {
                host(each).resetConnections(PORT);
            }
        }
        run.assertEndsWell();
        assertThat(run.said()).doesNotContain("is lost");
    }

    @Test
    @SoakOnly
    void aLongLinkThatLosesFramesChangesNoBit() throws Exception {
        spark = start(DEFAULTS);
        for (String each : WORKERS) {
            host(each).slow(Duration.ofMillis(50), 0.01); // 100 ms there and back, 200 between workers
        }
        new Run("run", IN_A_CHAIN, STEPS).assertEndsWell();
    }
}
