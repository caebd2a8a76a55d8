package org.fedcomuon.cluster.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.testing.TrainProcess.end;
import static org.fedcomuon.testing.TrainProcess.sha256;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.fedcomuon.testing.Slow;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.json.JsonMapper;

/**
 * {@code ./fedcomuon sweep --cluster} with Apache Spark: trials in executors are those of processes of this machine.
 */
@Slow
@Timeout(240)
class SparkSweepIT {
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

    private Process sweep(String name, String... more) throws IOException {
        var all = new ArrayList<>(List.of(
                "sweep",
                "portfolio",
                "--iterations",
                "1500",
                "--grid",
                "eta=0.01,0.02",
                "--checkpoint-every",
                "5",
                "--out",
                temporary.resolve(name).toString()));
        all.addAll(List.of(more));
        return drivers.launch(name + ".log", "", all);
    }

    private Process sweepOnSpark(String name) throws IOException {
        return sweep(name, "--cluster", "local-cluster[2,1,1024]");
    }

    /** The hash of the weights of each trial, by its name. */
    private Map<String, String> hashes(String name) throws IOException {
        var hashes = new TreeMap<String, String>();
        try (Stream<Path> trials = Files.list(temporary.resolve(name).resolve("trials"))) {
            for (Path trial : trials.toList()) {
                hashes.put(trial.getFileName().toString(), sha256(trial));
            }
        }
        return hashes;
    }

    private boolean isComplete(String name) throws IOException {
        return JsonMapper.shared()
                .readTree(Files.readString(temporary.resolve(name).resolve("sweep.json")))
                .get("complete")
                .asBoolean();
    }

    /** Stopped, continued, and an executor killed meanwhile. */
    @Test
    void trialsInExecutorsAreThoseOfThisMachine() throws Exception {
        Process local = sweep("local");
        assertThat(end(local)).as(drivers.log("local.log")).isZero();

        Process stopped = sweepOnSpark("spark");
        awaitCheckpoint(stopped, "spark");
        stopped.destroy(); // SIGTERM
        end(stopped);
        assertThat(drivers.log("spark.log")).contains("2 trials at a time", "the same command continues");
        assertThat(isComplete("spark")).isFalse();

        Files.move(temporary.resolve("spark.log"), temporary.resolve("first.log"));
        Process rest = sweepOnSpark("spark");
        assertThat(awaitExecutor(rest)).isTrue();
        rest.children()
                .filter(child -> child.info().command().orElse("").endsWith("java"))
                .findFirst()
                .orElseThrow()
                .destroyForcibly();
        assertThat(end(rest)).as(drivers.log("spark.log")).isZero();
        assertThat(isComplete("spark")).isTrue();
        assertThat(hashes("spark")).isEqualTo(hashes("local")).hasSize(2);
        assertThat(drivers.log("spark.log")).contains("is lost");
    }

    private void awaitCheckpoint(Process process, String name) throws Exception {
        Path trials = temporary.resolve(name).resolve("trials");
        while (process.isAlive()) {
            if (Files.isDirectory(trials)) {
                try (Stream<Path> all = Files.walk(trials)) {
                    if (all.anyMatch(file -> file.toString().endsWith(".safetensors"))) {
                        return;
                    }
                }
            }
            Thread.sleep(50);
        }
    }

    /** Until trials run in executors. */
    private boolean awaitExecutor(Process process) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (process.isAlive() && System.nanoTime() < deadline) {
            if (drivers.log("spark.log").contains("trials at a time")) {
                Thread.sleep(500);
                return true;
            }
            Thread.sleep(50);
        }
        return false;
    }

    @Test
    void whatIsWrongIsOneLine() throws Exception {
        Process wide = sweep("wide", "--cluster", "local-cluster[1,1,1024]", "--threads", "2");
        assertThat(end(wide)).as(drivers.log("wide.log")).isEqualTo(2);
        assertThat(drivers.log("wide.log").lines().filter(line -> line.startsWith("fedcomuon: ")))
                .singleElement()
                .asString()
                .contains("cpus per task = 2");
    }
}
