package org.fedcomuon.experiment;

/** A setting that is unknown or out of range; the message is a line that names it and says what would be right. */
public final class ConfigurationException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Creates one. */
    public ConfigurationException(String message) {
        super(line(message));
    }

    /** Creates one with what made it known. */
    public ConfigurationException(String message, Throwable cause) {
        super(line(message), cause);
    }

    /** What it quotes may be the user's, with line breaks in it. */
    private static String line(String message) {
        return message.replaceAll("\\R", " ");
    }
}
