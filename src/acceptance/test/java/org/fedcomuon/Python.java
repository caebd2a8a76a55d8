package org.fedcomuon;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/** Programs in Python, which need NumPy and nothing else; without it a test is skipped, with the reason. */
final class Python {
    private Python() {}

    /** Runs a program in a directory, and returns what it prints. */
    static String run(Path directory, String program) throws IOException, InterruptedException {
        Path out = Files.createTempFile("python", ".out");
        try {
            try {
                Assumptions.assumeTrue(
                        exitCode(directory, "import numpy", out) == 0, "python3 has no NumPy: pip install numpy");
            } catch (IOException e) {
                Assumptions.abort("python3 is not installed");
            }
            int exitCode = exitCode(directory, program, out);
            String printed = Files.readString(out);
            assertThat(exitCode).as(printed).isZero();
            return printed;
        } finally {
            Files.delete(out);
        }
    }

    private static int exitCode(Path directory, String program, Path out) throws IOException, InterruptedException {
        Process process = new ProcessBuilder("python3", "-c", program)
                .directory(directory.toFile())
                .redirectErrorStream(true)
                .redirectOutput(out.toFile())
                .start();
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
        return process.exitValue();
    }
}
