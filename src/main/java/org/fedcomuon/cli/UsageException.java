package org.fedcomuon.cli;

/**
 * Input that somebody has to correct: exit code 2. The message is all that is shown, so it names the option, file or
 * value, says what is wrong with it and what would be right.
 */
public final class UsageException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Creates an exception whose {@code message} is the line that is shown. */
    public UsageException(String message) {
        super(message);
    }

    /** Creates an exception that keeps its {@code cause} for {@code --verbose}. */
    public UsageException(String message, Throwable cause) {
        super(message, cause);
    }
}
