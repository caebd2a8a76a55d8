package org.fedcomuon.cli;

/**
 * Thrown for input that the user has to correct: exit code 2. Only the message is shown, so it names the option, file
 * or value, what is wrong with it and what is expected.
 */
public final class UsageException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Creates an exception with the message that is shown. */
    public UsageException(String message) {
        super(message);
    }

    /** Creates an exception with the message that is shown and the cause, which {@code --verbose} shows. */
    public UsageException(String message, Throwable cause) {
        super(message, cause);
    }
}
