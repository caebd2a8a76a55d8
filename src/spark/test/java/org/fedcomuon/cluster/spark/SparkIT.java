package org.fedcomuon.cluster.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;
import static org.fedcomuon.testing.TrainProcess.awaitCheckpoint;
import static org.fedcomuon.testing.TrainProcess.end;
import static org.fedcomuon.testing.TrainProcess.sha256;
import static org.fedcomuon.testing.TrainProcess.summary;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.SoakOnly;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;

/** {@code ./fedcomuon train --cluster} with Apache Spark, whose servers and executors are on this machine. */
@Slow
class SparkIT {
    private static final int BAD_INPUT = 2;
    private static final String TWO_EXECUTORS = "local-cluster[2,1,1024]";

    @TempDir
    private static Path whole;

    @TempDir
    private Path temporary;

    private static String expected = "";

    private SparkDrivers drivers = new SparkDrivers(Path.of(""));

    @BeforeEach
    void startNothing() {
        drivers = new SparkDrivers(temporary);
    }

    @BeforeAll
    static void trainInOneProcess() throws Exception {
        Path out = whole.resolve("run");
        Path log = whole.resolve("log");
        assertThat(end(TrainProcess.start(log, TrainProcess.command(arguments(out)))))
                .as(Files.readString(log))
                .isZero();
        expected = sha256(out);
    }

    @AfterEach
    void nothingIsLeftRunning() {
        drivers.close();
    }

    private static List<String> arguments(Path out) {
        return List.of("mnist-robust", "--iterations", "50", "--checkpoint-every", "2", "--out", out.toString());
    }

    private Process train(String log, String cluster, List<String> arguments) throws IOException {
        return drivers.train(log, cluster, "", arguments);
    }

    private String log(String name) throws IOException {
        return drivers.log(name);
    }

    @Test
    void twoExecutorsGiveTheBitsOfOneProcess() throws Exception {
        Path out = temporary.resolve("run");
        var arguments = new ArrayList<>(arguments(out));
        arguments.add("--tensorboard");
        Process run = train("log", TWO_EXECUTORS, arguments);
        assertThat(end(run)).as(log("log")).isZero();
        assertThat(sha256(out)).isEqualTo(expected);
        assertThat(summary(out).get("members").asInt()).isEqualTo(2);
        assertThat(Files.readAllLines(out.resolve("metrics.jsonl")))
                .hasSameSizeAs(Files.readAllLines(whole.resolve("run").resolve("metrics.jsonl")));
        assertThat(log("log")).containsOnlyOnce("step 25 of 50").contains("sha256                 " + expected);
        assertThat(out.resolve("report.html")).exists();
        assertOneMemberHasWrittenEventFiles(out);
        assertNothingElseCrossed(log("log"), summary(out));
        try (var left = Files.list(out)) {
            assertThat(left.map(Path::getFileName).map(Path::toString)).noneMatch(name -> name.startsWith("."));
        }
    }

    /** With the name of a metric once for each evaluation. */
    private static void assertOneMemberHasWrittenEventFiles(Path out) throws IOException {
        try (Stream<Path> files = Files.list(out.resolve("tensorboard"))) {
            assertThat(files)
                    .singleElement()
                    .satisfies(file -> assertThat(Files.readString(file, StandardCharsets.ISO_8859_1)
                                    .split("test_accuracy"))
                            .hasSize(1
                                    + Files.readAllLines(out.resolve("metrics.jsonl"))
                                            .size()));
        }
    }

    /**
     * Integers of W and M in each round, and of W for what is evaluated and kept, whatever the number of clients, and a
     * few numbers: no example, no u.
     */
    private static void assertNothingElseCrossed(String log, JsonNode summary) {
        Matcher crossed = Pattern.compile(
                        "(\\d+) exchanges, in which members sent (\\d+) bytes and received (\\d+) bytes")
                .matcher(log);
        assertThat(crossed.find()).as(log).isTrue();
        long exchanges = Long.parseLong(crossed.group(1));
        long sent = Long.parseLong(crossed.group(2));
        long received = Long.parseLong(crossed.group(3));
        int rounds = 10;
        int averages = 4; // at steps 0, 25 and 50, and the result
        long means = 34_622L * (2 * rounds + averages);
        long members = 2;
        long headers = 1000; // of an exchange, and the statuses
        assertThat(sent).isBetween(members * 9 * means, members * (9 * means + exchanges * headers));
        assertThat(received).isBetween(members * 5 * means, members * (5 * means + exchanges * headers));
        assertThat(summary.get("exchanged_bytes").asLong()).isCloseTo((sent + received) / members, withinPercentage(1));
    }

    /** Whichever it is: the first member writes the files. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void anExecutorThatIsKilledChangesNoBit(int which) throws Exception {
        Path out = temporary.resolve("run");
        Process run = train("log", TWO_EXECUTORS, arguments(out));
        List<String> first = awaitCheckpoint(run, out, List.of());
        assertThat(awaitCheckpoint(run, out, first)).as(log("log")).isNotEqualTo(first);
        List<ProcessHandle> executors = run.children()
                .filter(child -> child.info().command().orElse("").endsWith("java"))
                .toList();
        assertThat(executors).hasSize(2);
        executors.get(which).destroyForcibly(); // SIGKILL
        assertThat(end(run)).as(log("log")).isZero();
        assertThat(sha256(out)).isEqualTo(expected);
        assertThat(log("log"))
                .containsPattern("executor \\d is lost: .*137")
                .containsPattern("member \\d starts again on \\S+, from step \\d+")
                .containsOnlyOnce("step 25 of 50");
        assertThat(Files.readAllLines(out.resolve("metrics.jsonl")))
                .hasSameSizeAs(Files.readAllLines(whole.resolve("run").resolve("metrics.jsonl")));
    }

    @Test
    @SoakOnly
    void membersBelowOthersGiveTheBitsOfOneProcess() throws Exception {
        trainBelowOthers(false);
    }

    @Test
    void membersBelowOthersOfWhichOneStartsAgainGiveTheBitsOfOneProcess() throws Exception {
        trainBelowOthers(true);
    }

    /** Each is below another, so that both of those above add up. */
    private void trainBelowOthers(boolean isKilled) throws Exception {
        Path out = temporary.resolve("run");
        Process run = drivers.train("log", "local-cluster[3,1,1024]", "-Dspark.fedcomuon.fan=1", arguments(out));
        if (isKilled) {
            assertThat(awaitCheckpoint(run, out, List.of())).as(log("log")).isNotEmpty();
            run.children()
                    .filter(child -> child.info().command().orElse("").endsWith("java"))
                    .skip(1)
                    .findFirst()
                    .orElseThrow()
                    .destroyForcibly();
        }
        assertThat(end(run)).as(log("log")).isZero();
        assertThat(sha256(out)).isEqualTo(expected);
        assertThat(summary(out).get("members").asInt()).isEqualTo(3);
        assertThat(log("log").contains("starts again")).isEqualTo(isKilled);
    }

    /** Nothing replaces it, so that its member goes to the other one. */
    @SoakOnly
    @Test
    void anExecutorThatIsNotReplacedLeavesItsMemberToAnother() throws Exception {
        Path out = temporary.resolve("run");
        try (var servers = SparkServers.start(temporary.resolve("servers"))) {
            Process run = train("log", servers.url(), arguments(out));
            assertThat(awaitCheckpoint(run, out, List.of())).as(log("log")).isNotEmpty();
            servers.killWorker();
            assertThat(end(run)).as(log("log")).isZero();
        }
        assertThat(sha256(out)).isEqualTo(expected);
        assertThat(log("log")).containsPattern("member \\d starts again on \\S+, from ");
    }

    @SoakOnly
    @Test
    void aMasterThatIsKilledLeavesACheckpointToGoOnFrom() throws Exception {
        Path out = temporary.resolve("run");
        try (var servers = SparkServers.start(temporary.resolve("servers"))) {
            Process run = train("log", servers.url(), arguments(out));
            assertThat(awaitCheckpoint(run, out, List.of())).as(log("log")).isNotEmpty();
            servers.kill();
            SparkDrivers.kill(run);
            assertThat(end(run)).isNotZero();
        }
        assertThat(out.resolve("summary.json")).doesNotExist();
        try (var servers = SparkServers.start(temporary.resolve("other servers"))) {
            Process rest = train("rest", servers.url(), List.of("--resume", out.toString()));
            assertThat(end(rest)).as(log("rest")).isZero();
        }
        assertThat(sha256(out)).isEqualTo(expected);
        assertThat(summary(out).get("members").asInt()).isEqualTo(2);
    }

    @Test
    void aJarThatSparkShips() throws Exception {
        List<Path> jars;
        try (Stream<Path> files = Files.list(Path.of("target"))) {
            jars = files.filter(file -> file.toString().endsWith("-all.jar")).toList();
        }
        assumeTrue(
                jars.size() == 1,
                "there is no jar for spark-submit; mvn -pl src/spark -Pspark-jar package -DskipTests makes it");
        Path out = temporary.resolve("run");
        try (var servers = SparkServers.start(temporary.resolve("servers"))) {
            var arguments = new ArrayList<>(List.of("train"));
            arguments.addAll(arguments(out));
            arguments.addAll(List.of("--cluster", "spark"));
            Process run = drivers.start("log", servers.submit(jars.getFirst().toAbsolutePath(), arguments));
            assertThat(end(run)).as(log("log")).isZero();
        }
        assertThat(sha256(out)).isEqualTo(expected);
    }

    @Test
    void aStopIsACheckpoint() throws Exception {
        Path out = temporary.resolve("run");
        Process run = train("log", TWO_EXECUTORS, arguments(out));
        assertThat(awaitCheckpoint(run, out, List.of())).as(log("log")).isNotEmpty();
        // A terminal's Ctrl-C would reach the executors too, and they must not mind.
        var interrupt = new ArrayList<>(List.of("kill", "-INT"));
        run.children().forEach(executor -> interrupt.add(Long.toString(executor.pid())));
        assertThat(end(new ProcessBuilder(interrupt).start())).isZero();
        run.destroy(); // SIGTERM
        end(run);
        assertThat(summary(out).get("stopped").asBoolean()).as(log("log")).isTrue();
        assertThat(log("log")).contains("continue with: ./fedcomuon train --resume");
        Path rest = temporary.resolve("rest");
        assertThat(end(TrainProcess.start(rest, TrainProcess.command(List.of("--resume", out.toString())))))
                .as(Files.readString(rest))
                .isZero();
        assertThat(sha256(out)).isEqualTo(expected);
    }

    @Test
    void whatIsWrongIsOneLine() throws Exception {
        Path out = temporary.resolve("run");
        Process submitted = train("submitted", "spark", arguments(out));
        assertThat(end(submitted)).isEqualTo(BAD_INPUT);
        assertThat(log("submitted").lines()).singleElement().asString().contains("requires spark-submit");
        assertThat(out).doesNotExist();

        var elsewhere = new ArrayList<>(arguments(temporary.resolve("elsewhere")));
        elsewhere.addAll(List.of("--data-dir", "/no/such/directory"));
        Process noData = train("data", TWO_EXECUTORS, elsewhere);
        assertThat(end(noData)).isEqualTo(BAD_INPUT);
        assertThat(log("data")).contains("there is no directory /no/such/directory, which --data-dir names");
        assertThat(temporary.resolve("elsewhere")).doesNotExist();

        var unfit = new ArrayList<>(arguments(temporary.resolve("unfit")));
        unfit.addAll(List.of("--memory-limit", "0.1"));
        Process noMemory = train("memory", TWO_EXECUTORS, unfit);
        assertThat(end(noMemory)).isEqualTo(BAD_INPUT);
        assertThat(log("memory")).containsPattern("fedcomuon: member \\d on \\S+: this run needs");
        assertThat(temporary.resolve("unfit")).doesNotExist();

        Process unknown = train("unknown", "sparkle", arguments(temporary.resolve("unknown run")));
        assertThat(end(unknown)).isEqualTo(BAD_INPUT);
        assertThat(log("unknown"))
                .contains("--cluster sparkle: unknown; possible are local, mpi, spark://HOST:PORT, local-cluster[");
    }
}
