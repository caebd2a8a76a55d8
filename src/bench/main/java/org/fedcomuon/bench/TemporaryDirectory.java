package org.fedcomuon.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/** A directory for the files of a measurement, deleted with all that is in it. */
record TemporaryDirectory(Path path) implements AutoCloseable {
    static TemporaryDirectory create() throws IOException {
        return new TemporaryDirectory(Files.createTempDirectory("fedcomuon-bench"));
    }

    @Override
    public void close() throws IOException {
        try (Stream<Path> files = Files.walk(path)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
