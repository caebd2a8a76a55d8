package org.fedcomuon.cluster.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.cluster.spark.SparkHosts.DRIVER;
import static org.fedcomuon.cluster.spark.SparkHosts.MASTER;
import static org.fedcomuon.cluster.spark.SparkHosts.WORKERS;
import static org.fedcomuon.testing.TrainProcess.awaitCheckpoint;
import static org.fedcomuon.testing.TrainProcess.end;
import static org.fedcomuon.testing.TrainProcess.sha256;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.SoakOnly;
import org.fedcomuon.testing.TestHosts;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Hosts on which Spark cannot go on: full and unwritable disks, networks that swallow everything. As in
 * {@link SparkFaultsIT}, a run ends in time with one line that names the host, or goes on with the same results.
 */
@Slow
@SoakOnly
@Timeout(300)
class SparkHostFaultsIT {
    private static final int STEPS = 50;
    private static final int RUN_FAILED = 1;

    @TempDir
    private static Path directory;

    private static Path shared;
    private static TestHosts hosts;
    private static String expected = "";

    private SparkHosts spark;
    private Path log = Path.of("");
    private Path out = Path.of("");

    @BeforeAll
    static void startHosts() throws Exception {
        TestHosts.assumePossible();
        shared = Files.createDirectories(directory.resolve("shared"));
        hosts = SparkHosts.hosts(directory.resolve("hosts"), shared);
        Path alone = directory.resolve("alone");
        Path said = directory.resolve("alone.log");
        assertThat(end(TrainProcess.start(said, TrainProcess.command(arguments(alone)))))
                .as(Files.readString(said))
                .isZero();
        expected = sha256(alone);
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
            hosts.host(each).restore();
        }
    }

    private static List<String> arguments(Path out) {
        return List.of(
                "mnist-robust",
                "--iterations",
                Integer.toString(STEPS),
                "--checkpoint-every",
                "2",
                "--cluster-timeout",
                "10",
                "--out",
                out.toString());
    }

    private void startServers() throws Exception {
        spark = SparkHosts.start(hosts, Files.createTempDirectory(shared, "servers"), List.of());
    }

    private Process train(String... settings) throws IOException {
        Path place = Files.createTempDirectory(shared, "run");
        out = place.resolve("run");
        log = place.resolve("log");
        return spark.train(log, List.of(settings), arguments(out));
    }

    private String ending(Process run) throws Exception {
        int code = end(run);
        String said = Files.readString(log);
        assertThat(code).as(said).isEqualTo(RUN_FAILED);
        List<String> lines =
                said.lines().filter(line -> line.startsWith("fedcomuon: ")).toList();
        assertThat(lines).as(said).hasSize(1);
        assertThat(said).doesNotContain("\tat ");
        assertThat(said.lines().count()).as(said).isLessThan(30);
        return lines.getFirst();
    }

    /** Makes a directory of a host a disk of its own, without room for anything. */
    private static void fill(String host, Path disk) throws Exception {
        Path said = Files.createTempFile(shared, "disk", ".log");
        String script =
                "mkdir -p \"$1\" && mount -t tmpfs -o size=16k tmpfs \"$1\" && { head -c 100000 /dev/zero > \"$1/full\"; true; }";
        Process mount = hosts.host(host)
                .start(said, Map.of(), new ArrayList<>(List.of("sh", "-c", script, "sh", disk.toString())));
        assertThat(end(mount)).as(Files.readString(said)).isZero();
    }

    private static void free(String host, Path disk) throws Exception {
        Path said = Files.createTempFile(shared, "disk", ".log");
        assertThat(end(hosts.host(host).start(said, Map.of(), List.of("umount", disk.toString()))))
                .as(Files.readString(said))
                .isZero();
    }

    @Test
    void aMasterBehindANetworkThatSwallowsEverything() throws Exception {
        startServers();
        hosts.host(MASTER).isolate();
        assertThat(ending(train()))
                .contains("no master answers at spark://master:7077 within 10 s (--cluster-timeout): master:7077: ");
    }

    /** The disk on which a worker starts executors. */
    @Test
    void aWorkerWhoseDiskIsFullIsDoneWithout() throws Exception {
        startServers();
        fill(WORKERS.get(1), SparkHosts.WORK);
        try {
            assertThat(end(train())).as(Files.readString(log)).isZero();
        } finally {
            free(WORKERS.get(1), SparkHosts.WORK);
        }
        String said = Files.readString(log);
        assertThat(said.lines().filter(line -> line.contains("is lost: ")))
                .as(said)
                .isNotEmpty()
                .hasSizeLessThan(6)
                .allMatch(line -> line.contains(
                        "is lost: %s: ".formatted(hosts.host(WORKERS.get(1)).address())))
                .allMatch(line -> line.contains("is the disk of its work directory full, or not writable?"));
        assertThat(sha256(out)).isEqualTo(expected);
    }

    @Test
    void workersWhoseDisksAreAllFull() throws Exception {
        startServers();
        for (String each : WORKERS) {
            fill(each, SparkHosts.WORK);
        }
        try {
            assertThat(ending(train()))
                    .contains("the last executor lost on ", "is the disk of its work directory full, or not writable?")
                    .contains(hosts.host(WORKERS.get(0)).address());
        } finally {
            for (String each : WORKERS) {
                free(each, SparkHosts.WORK);
            }
        }
    }

    /** Where libtorch is unpacked. */
    @Test
    void aHostThatCannotUnpackItsLibraries() throws Exception {
        startServers();
        Path disk = Path.of("/tmp/libraries");
        fill(WORKERS.get(1), disk);
        try {
            String line = ending(
                    train("-Dspark.executor.extraJavaOptions=-Dorg.bytedeco.javacpp.cachedir=%s".formatted(disk)));
            assertThat(line).contains(hosts.host(WORKERS.get(1)).address());
        } finally {
            free(WORKERS.get(1), disk);
        }
    }

    /** Both hosts lose their power while the run goes on. */
    @Test
    void hostsThatAreAllGone() throws Exception {
        startServers();
        Process run = train(
                "-Dspark.network.timeout=10s",
                "-Dspark.network.timeoutInterval=2s",
                "-Dspark.executor.heartbeatInterval=2s");
        assertThat(awaitCheckpoint(run, out, List.of()))
                .as(Files.readString(log))
                .isNotEmpty();
        for (String each : WORKERS) {
            hosts.host(each).isolate();
        }
        assertThat(ending(run))
                .contains("there has been no executor for 10 s (--cluster-timeout)")
                .contains(
                        hosts.host(WORKERS.get(0)).address(),
                        hosts.host(WORKERS.get(1)).address())
                .containsPattern("the last checkpoint is \\S+, --resume \\S+ continues from it");
        Path rest = directory.resolve("rest.log");
        assertThat(end(TrainProcess.start(rest, TrainProcess.command(List.of("--resume", out.toString())))))
                .as(Files.readString(rest))
                .isZero();
        assertThat(sha256(out)).isEqualTo(expected);
    }
}
