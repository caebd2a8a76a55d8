package org.fedcomuon.experiment;

import java.nio.file.Path;
import org.fedcomuon.file.MalformedFileException;

/**
 * Thrown by {@link RunRecord#read} when the directory of a run cannot be read. The message is one line for the user:
 * the file, what is wrong with it, and what is expected.
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
