package org.fedcomuon.cli;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import org.fedcomuon.experiment.TrainingEngine;
import picocli.CommandLine.Option;

/** Where a run takes place, and with what, as {@code train} and {@code sweep} take it. It changes no result. */
final class RunPlace {
    private static final double MOST_GIB = 1e6;

    @Option(
            names = "--devices",
            split = ",",
            paramLabel = "D",
            defaultValue = "cpu:0",
            description = "The devices to run on, such as cpu:0,cpu:1; cpu:0 by default. A sweep deals them out to its"
                    + " trials, one each. Never changes the result.")
    private List<String> devices = List.of();

    @Option(
            names = "--cluster",
            paramLabel = "C",
            description = "spark://HOST:PORT, local-cluster[N,CORES,MB] or spark: divide the clients of a run, or the"
                    + " trials of a sweep, among executors of Apache Spark; mpi: the clients of a run among the processes"
                    + " that mpirun has started; local, which is the default: among none but this one, or those that a"
                    + " sweep starts. Never changes the result.")
    private Optional<String> cluster = Optional.empty();

    @Option(
            names = "--cluster-timeout",
            paramLabel = "SECONDS",
            defaultValue = "120",
            description = "The time after which a cluster that cannot go on ends the run; 120 by default. Slow members,"
                    + " however slow, are waited for.")
    private int clusterTimeout;

    @Option(
            names = "--threads",
            paramLabel = "N",
            description =
                    "The number of threads of a run, all cores by default, or of a trial of a sweep, 1 by default."
                            + " Never changes the result.")
    private Optional<Integer> threads = Optional.empty();

    @Option(
            names = "--class-path",
            paramLabel = "JARS",
            description = "Jars and directories of classes, separated by colons, with methods, models, data sets,"
                    + " splits or objectives of your own.")
    private Optional<String> classPath = Optional.empty();

    @Option(names = "--data-dir", paramLabel = "DIR", description = "The directory of your own data files.")
    private Optional<Path> dataDirectory = Optional.empty();

    @Option(
            names = "--memory-limit",
            paramLabel = "GIB",
            description =
                    "Refuse a run that is estimated to take more memory; by default the available memory, of which"
                            + " each trial of a sweep has its share.")
    private Optional<Double> memoryLimit = Optional.empty();

    /** Returns a line for each option that is out of range. */
    List<String> mistakes() {
        var mistakes = new ArrayList<String>();
        if (threads.orElse(1) < 1) {
            mistakes.add("--threads %d: at least 1 is needed".formatted(threads.orElse(1)));
        }
        double gib = memoryLimit.orElse(1.0);
        if (!(gib > 0 && gib < MOST_GIB)) {
            mistakes.add("--memory-limit %s: a number of GiB is needed".formatted(gib));
        }
        if (clusterTimeout < 1) {
            mistakes.add("--cluster-timeout %d: at least 1 second is needed".formatted(clusterTimeout));
        }
        return mistakes;
    }

    List<String> devices() {
        return devices;
    }

    String cluster() {
        return cluster.orElse(TrainingEngine.LOCAL);
    }

    Duration timeout() {
        return Duration.ofSeconds(clusterTimeout);
    }

    OptionalInt threads() {
        return threads.map(OptionalInt::of).orElse(OptionalInt.empty());
    }

    Optional<String> classPath() {
        return classPath;
    }

    Optional<Path> dataDirectory() {
        return dataDirectory;
    }

    /** Returns the limit of the memory in bytes, if there is one. */
    OptionalLong memoryLimit() {
        return memoryLimit
                .map(gib -> OptionalLong.of((long) (gib * (1L << 30))))
                .orElse(OptionalLong.empty());
    }
}
