package org.fedcomuon.cli;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.fedcomuon.format.AtomicFile;

/** Writes what the user asked for where the user said; what goes wrong names the option that said it. */
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

    private static String reason(IOException error) {
        return error instanceof FileSystemException e && e.getReason() != null ? e.getReason() : error.toString();
    }

    /** Writes {@code text}. */
    static void write(String option, Path file, String text) {
        try {
            AtomicFile.write(file, text);
        } catch (IOException e) {
            throw new UsageException("%s %s cannot be written: %s".formatted(option, file, reason(e)), e);
        }
    }
}
