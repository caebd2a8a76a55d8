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
import org.fedcomuon.format.MalformedFileException;

/**
 * Gets a package with the npm client of this machine, from wherever that is set up to get packages.
 *
 * @param npm the program
 * @param name of the package, with its version
 * @param patience before the program is stopped
 */
record NpmPackage(String npm, String name, Duration patience) {
    private static final int LONGEST_QUOTE = 240;

    /** A way to get the archive of a package into an empty directory. */
    @FunctionalInterface
    interface Source {
        Path fetch(Path directory) throws IOException, InterruptedException;
    }

    /** The archive of the package, in {@code directory}, which is empty. */
    Path fetch(Path directory) throws IOException, InterruptedException {
        Path errors = directory.resolve("npm.err");
        // Or npm would look above for one, and take settings from the .npmrc beside it, whoever wrote that.
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
                    "%s is not there, or cannot be run; install it: sudo apt-get install npm".formatted(npm), e);
        }
        try {
            process.getOutputStream().close(); // nobody is there to answer a question
            if (!process.waitFor(patience.toMillis(), TimeUnit.MILLISECONDS)) {
                throw new FetchException("npm pack %s took longer than %d s and was stopped; check the network"
                        .formatted(name, patience.toSeconds()));
            }
        } finally {
            // npm is a script that starts others.
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

    /** What npm says in the lines that it marks as errors, as far as they say why. */
    private static String quote(Path errors) throws IOException {
        String said = new String(Files.readAllBytes(errors), StandardCharsets.UTF_8)
                .lines()
                .filter(line -> line.matches("npm (error|ERR!) .*"))
                .map(line -> line.replaceFirst("npm (error|ERR!) +", "").strip())
                .filter(line -> !line.isEmpty() && !line.matches("(errno|syscall|type|at|A complete log) .*"))
                .distinct()
                .limit(2)
                .collect(joining(", "));
        String line = MalformedFileException.oneLine(said.isEmpty() ? "it says nothing" : said);
        return line.length() <= LONGEST_QUOTE ? line : line.substring(0, LONGEST_QUOTE) + "...";
    }
}
