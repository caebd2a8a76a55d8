package org.fedcomuon.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** Writes text so that nothing half-written is ever visible under its final name. */
final class WholeFile {
    private WholeFile() {}

    /** Writes {@code text}; {@code option} names what the user gave, for the message when it cannot be. */
    static void write(String option, Path file, String text) {
        Path absolute = file.toAbsolutePath();
        try {
            // Not createTempFile, whose files only the owner may read.
            Path part = absolute.resolveSibling(".%s.%d.part"
                    .formatted(absolute.getFileName(), ProcessHandle.current().pid()));
            try {
                Files.writeString(part, text);
                Files.move(part, absolute, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            } finally {
                Files.deleteIfExists(part);
            }
        } catch (IOException e) {
            throw new UsageException("%s %s cannot be written: %s".formatted(option, file, e), e);
        }
    }
}
