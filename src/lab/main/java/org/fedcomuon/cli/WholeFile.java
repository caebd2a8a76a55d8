package org.fedcomuon.cli;

import java.io.IOException;
import java.nio.file.Path;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.format.AtomicFile;

/** Writes files that the user has named by an option; error messages name the option. */
public final class WholeFile {
    private WholeFile() {}

    /** Writes {@code text} to a file, which is complete or unchanged. */
    public static void write(String option, Path file, String text) {
        try {
            AtomicFile.write(file, text);
        } catch (IOException e) {
            throw new UsageException(
                    "%s %s cannot be written: %s".formatted(option, file, MalformedFileException.reason(e)), e);
        }
    }
}
