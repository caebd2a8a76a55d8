package org.fedcomuon.cluster.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.testing.Repository;
import org.fedcomuon.testing.TrainProcess;

/** Processes of {@code ./fedcomuon train --cluster}, with all that they say in files of a directory. */
final class SparkDrivers implements AutoCloseable {
    private static final Path LAUNCHER = Repository.root().resolve("fedcomuon");

    private final Path directory;
    private final List<Process> started = new ArrayList<>();

    SparkDrivers(Path directory) {
        this.directory = directory;
    }

    /** @param options of the JVM */
    Process train(String log, String cluster, String options, List<String> arguments) throws IOException {
        var all = new ArrayList<>(List.of("train"));
        all.addAll(arguments);
        all.addAll(List.of("--cluster", cluster));
        return launch(log, options, all);
    }

    /** @param options of the JVM */
    Process launch(String log, String options, List<String> arguments) throws IOException {
        var command = new ArrayList<>(List.of("env", "FEDCOMUON_JAVA_OPTS=" + options, LAUNCHER.toString()));
        command.addAll(arguments);
        return start(log, command);
    }

    Process start(String log, List<String> command) throws IOException {
        Process process = TrainProcess.start(directory.resolve(log), command);
        started.add(process);
        return process;
    }

    String log(String name) throws IOException {
        return Files.readString(directory.resolve(name));
    }

    /** By SIGKILL, with its executors if it has started them. */
    static void kill(Process driver) {
        List<ProcessHandle> executors = driver.descendants().toList();
        driver.destroyForcibly();
        executors.forEach(ProcessHandle::destroyForcibly);
    }

    @Override
    public void close() {
        started.forEach(SparkDrivers::kill);
    }
}
