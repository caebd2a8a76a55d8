package org.fedcomuon;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.fedcomuon.testing.Repository;

/**
 * Starts the launcher as a user does.
 *
 * @param root the directory that it is in
 * @param work the directory that it is started in
 * @param environment what is added to that of this process
 */
record Launcher(Path root, Path work, Map<String, String> environment) {
    /** How it ended, and what it printed. */
    record Run(int exitCode, String out, String err) {
        /** Returns the run, which must have ended well. */
        Run done() {
            assertThat(exitCode).as(out + err).isZero();
            return this;
        }
    }

    /** Returns that of this repository, which is not to build inside the build. */
    static Launcher in(Path work) {
        return new Launcher(Repository.root(), work, Map.of("FEDCOMUON_BUILD", "no"));
    }

    Launcher with(String name, String value) {
        var all = new HashMap<>(environment);
        all.put(name, value);
        return new Launcher(root, work, Map.copyOf(all));
    }

    Run run(String... arguments) throws IOException, InterruptedException {
        return run(Stream.concat(Stream.of(root.resolve("fedcomuon").toString()), Stream.of(arguments)));
    }

    /** Runs a line of a shell, where {@code ./fedcomuon} is found in the directory of the launcher. */
    Run shell(String line) throws IOException, InterruptedException {
        return run(Stream.of("bash", "-ec", line));
    }

    private Run run(Stream<String> command) throws IOException, InterruptedException {
        Path out = Files.createTempFile("fedcomuon", ".out");
        Path err = Files.createTempFile("fedcomuon", ".err");
        try {
            var builder = new ProcessBuilder(command.toList());
            builder.environment().remove("FEDCOMUON_BUILD");
            builder.environment().putAll(environment);
            Process process = builder.directory(work.toFile())
                    .redirectOutput(out.toFile())
                    .redirectError(err.toFile())
                    .start();
            assertThat(process.waitFor(300, TimeUnit.SECONDS)).isTrue();
            return new Run(process.exitValue(), Files.readString(out), Files.readString(err));
        } finally {
            Files.delete(out);
            Files.delete(err);
        }
    }
}
