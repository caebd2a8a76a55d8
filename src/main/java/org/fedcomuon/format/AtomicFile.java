package org.fedcomuon.format;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;

/** Text files of which nothing half-written is ever visible under the final name. Thread-safe. */
public final class AtomicFile {
    private static final SecureRandom NAMES = new SecureRandom();

    private AtomicFile() {}

    /** Writes all of {@code text}, or leaves what was there. A symbolic link is replaced, not followed. */
    public static void write(Path file, String text) throws IOException {
        Path absolute = file.toAbsolutePath();
        // Not createTempFile, whose files only the owner may read. New, and of a name that nobody can guess: where
        // others
        // write too there may be links in its place.
        Path part = absolute.resolveSibling(".%s.%016x.part".formatted(absolute.getFileName(), NAMES.nextLong()));
        try {
            Files.writeString(part, text, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
            Files.move(part, absolute, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } finally {
            Files.deleteIfExists(part);
        }
    }
}
