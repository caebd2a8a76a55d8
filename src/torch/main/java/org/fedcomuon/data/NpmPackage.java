package org.fedcomuon.data;

import static java.util.stream.Collectors.joining;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.fedcomuon.file.MalformedFileException;

/**
 * Fetches a package with the npm client of this machine, from the registry that npm is configured for.
 *
 * @param npm the program
 * @param name of the package, with its version
 * @param patience before the program is stopped
 */
record NpmPackage(String npm, String name, Duration patience) {
    private static final int LONGEST_QUOTE = 240;

    /** Fetches the archive of a package into an empty directory. */
    @FunctionalInterface
    interface Source {
        Path fetch(Path directory) throws IOException, InterruptedException;
    }

    /** Fetches the archive of the package into {@code directory}, which is empty, and returns its path. */
    Path fetch(Path directory) throws IOException, InterruptedException {
        Path errors = directory.resolve("npm.err");
        // Otherwise npm would use a package.json in a parent directory, and the settings of a foreign .npmrc beside it.
        Files.writeString(directory.resolve("package.json"), "{}");
        var builder = new ProcessBuilder(npm, "pack", name, "--ignore-scripts", "--loglevel=error")
                .directory(directory.toFile())
                .redirectInput(ProcessBuilder.Redirect.PIPE)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(errors.toFile());
        Process process;
        try {
            process = builder.start();
        } catch (IOException e) {
            throw new FetchException(
                    "%s is missing or cannot be run; install it: sudo apt-get install npm".formatted(npm), e);
        }
        try {
            process.getOutputStream().close(); // npm must not wait for an answer
            if (!process.waitFor(patience.toMillis(), TimeUnit.MILLISECONDS)) {
                throw new FetchException("npm pack %s took longer than %d s and was stopped; check the network"
                        .formatted(name, patience.toSeconds()));
            }
        } finally {
            // npm is a script that starts other processes.
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly();
        }
        if (process.exitValue() != 0) {
            throw new FetchException("npm pack %s failed with exit code %d (%s); check the network, and npm's settings"
                    .formatted(name, process.exitValue(), quote(errors)));
        }
        try (Stream<Path> files = Files.list(directory)) {
            List<Path> archives =
                    files.filter(file -> file.toString().endsWith(".tgz")).toList();
            if (archives.size() != 1) {
                throw new FetchException("npm pack %s left %d archives instead of one; check npm with: npm pack %s"
                        .formatted(name, archives.size(), name));
            }
            return archives.getFirst();
        }
    }

    /** Returns the reason of a failure, from the lines that npm marks as errors. */
    private static String quote(Path errors) throws IOException {
        String said = new String(Files.readAllBytes(errors), StandardCharsets.UTF_8)
                .lines()
                .filter(line -> line.matches("npm (error|ERR!) .*"))
                .map(line -> line.replaceFirst("npm (error|ERR!) +", "").strip())
                .filter(line -> !line.isEmpty() && !line.matches("(errno|syscall|type|at|A complete log) .*"))
                .distinct()
                .limit(2)
                .collect(joining(", "));
        String line = MalformedFileException.oneLine(said.isEmpty() ? "without a message" : said);
        return line.length() <= LONGEST_QUOTE ? line : line.substring(0, LONGEST_QUOTE) + "...";
    }
}
