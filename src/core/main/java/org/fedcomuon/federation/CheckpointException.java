package org.fedcomuon.federation;

import java.nio.file.Path;
import java.util.Optional;
import org.fedcomuon.file.MalformedFileException;
import org.jspecify.annotations.Nullable;

/**
 * A checkpoint that cannot be read or written. The message is one line with the file's name, what is wrong with it, and
 * which checkpoint to resume from instead, if there is one. Thrown by {@link CheckpointStore} only.
 */
public class CheckpointException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient @Nullable Path previous;

    CheckpointException(String message) {
        super(MalformedFileException.oneLine(message));
        previous = null;
    }

    CheckpointException(String message, Throwable cause) {
        super(MalformedFileException.oneLine(message), cause);
        previous = null;
    }

    CheckpointException(CheckpointException refusal, Path previous) {
        super(
                MalformedFileException.oneLine(
                        "%s; the one before it is whole: %s".formatted(refusal.getMessage(), previous)),
                refusal);
        this.previous = previous;
    }

    /**
     * A checkpoint cannot be written: the disk is full, or the directory is not writable. Earlier checkpoints are
     * unchanged.
     */
    public static final class Unwritten extends CheckpointException {
        private static final long serialVersionUID = 1L;

        Unwritten(String message, Throwable cause) {
            super("no checkpoint can be written: " + message, cause);
        }
    }

    /**
     * Returns the newest complete checkpoint that is older than the one that cannot be read, to resume from instead.
     */
    public Optional<Path> previous() {
        return Optional.ofNullable(previous);
    }
}
