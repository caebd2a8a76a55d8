package org.fedcomuon.format;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.concurrent.ThreadLocalRandom;

/** Text files of which nothing half-written is ever visible under the final name. Thread-safe. */
public final class AtomicFile {
    private AtomicFile() {}

    /** Writes all of {@code text}, or leaves what was there. */
    public static void write(Path file, String text) throws IOException {
        Path absolute = file.toAbsolutePath();
        // Not createTempFile, whose files only the owner may read.
        Path part = absolute.resolveSibling(".%s.%016x.part"
                .formatted(absolute.getFileName(), ThreadLocalRandom.current().nextLong()));
        try {
            Files.writeString(part, text);
            Files.move(part, absolute, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } finally {
            Files.deleteIfExists(part);
        }
    }
}
