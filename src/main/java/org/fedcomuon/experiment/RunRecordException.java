package org.fedcomuon.experiment;

import java.nio.file.Path;
import org.fedcomuon.format.MalformedFileException;

/**
 * A run's directory that cannot be read. The message is one line for whoever named the directory: the file, what is
 * wrong with it, and what would be right. Thrown by {@link RunRecord#read} only.
 */
public final class RunRecordException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    RunRecordException(Path file, String problem) {
        super(message(file, problem));
    }

    RunRecordException(Path file, String problem, Throwable cause) {
        super(message(file, problem), cause);
    }

    private static String message(Path file, String problem) {
        return MalformedFileException.oneLine(file + ": " + problem.replaceAll("\\s+", " "));
    }
}
