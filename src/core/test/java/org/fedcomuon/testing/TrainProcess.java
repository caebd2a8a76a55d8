package org.fedcomuon.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** {@code train} as a process of its own, for tests that kill it. */
public final class TrainProcess {
    public static final long PATIENCE_SECONDS = 120;

    private TrainProcess() {}

    /** What runs {@code train} with these arguments. */
    public static List<String> command(List<String> arguments) {
        var all = new ArrayList<>(List.of("train"));
        all.addAll(arguments);
        return ChildJvm.command(List.of(), "org.fedcomuon.cli.Main", all);
    }

    /** Starts a command, with all that it says in a file. */
    public static Process start(Path log, List<String> command) throws IOException {
        var builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
        builder.environment().put("OPENBLAS_NUM_THREADS", "1");
        return builder.start();
    }

    /** Waits, and says how it ended. */
    public static int end(Process process) throws InterruptedException {
        assertThat(process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)).isTrue();
        return process.exitValue();
    }

    public static JsonNode summary(Path run) throws IOException {
        return JsonMapper.shared().readTree(Files.readString(run.resolve("summary.json")));
    }

    public static String sha256(Path run) throws IOException {
        return summary(run).get("sha256").asString();
    }

    /** Until the run has written another checkpoint than {@code before}. */
    public static List<String> awaitCheckpoint(Process train, Path run, List<String> before) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        List<String> now = checkpoints(run);
        while ((now.isEmpty() || now.equals(before)) && train.isAlive() && System.nanoTime() < deadline) {
            Thread.sleep(10);
            now = checkpoints(run);
        }
        return now;
    }

    /** The names of the complete checkpoints of a run. */
    public static List<String> checkpoints(Path run) throws IOException {
        Path directory = run.resolve("checkpoints");
        if (!Files.isDirectory(directory)) {
            return List.of();
        }
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(file -> String.valueOf(file.getFileName()))
                    .filter(name -> name.endsWith(".safetensors"))
                    .sorted()
                    .toList();
        }
    }
}
