package org.fedcomuon.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/**
 * Writes text so that nothing half-written is ever visible under its final name. An option names what the user gave.
 */
final class WholeFile {
    private WholeFile() {}

    /** Makes a directory to write to, before long work whose results would otherwise have no place. */
    static void makeDirectory(String option, Path directory) {
        try {
            Files.createDirectories(directory);
        } catch (IOException e) {
            throw new UsageException("%s %s cannot be made: %s".formatted(option, directory, e), e);
        }
        if (!Files.isWritable(directory)) {
            throw new UsageException(
                    "%s %s is not yours to write to; name another directory".formatted(option, directory));
        }
    }

    /** Writes {@code text}. */
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
