package org.fedcomuon.experiment;

/**
 * Thrown for a setting that is unknown or out of range; the message is one line with the setting and the possible
 * values.
 */
public final class ConfigurationException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Creates an exception with a message. */
    public ConfigurationException(String message) {
        super(line(message));
    }

    /** Creates an exception with a message and its cause. */
    public ConfigurationException(String message, Throwable cause) {
        super(line(message), cause);
    }

    /** Replaces line breaks, which values that are quoted may have. */
    private static String line(String message) {
        return message.replaceAll("\\R", " ");
    }
}
