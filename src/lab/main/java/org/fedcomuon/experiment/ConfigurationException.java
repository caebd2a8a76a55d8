package org.fedcomuon.experiment;

import java.util.List;

/**
 * Thrown for settings that are unknown, missing or out of range. Every mistake is one line with the setting and the
 * possible values; all that can be found at once are reported together.
 */
public final class ConfigurationException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient List<String> mistakes;

    /** Creates an exception with a message. */
    public ConfigurationException(String message) {
        super(line(message));
        mistakes = List.of();
    }

    /** Creates an exception with a message and its cause. */
    public ConfigurationException(String message, Throwable cause) {
        super(line(message), cause);
        mistakes = List.of();
    }

    private ConfigurationException(String message, List<String> mistakes) {
        super(message);
        this.mistakes = List.copyOf(mistakes);
    }

    /**
     * Returns an exception with all mistakes of a configuration; a single one is the message itself.
     *
     * @param where the file or preset that has them
     * @param mistakes at least one
     */
    public static ConfigurationException of(String where, List<String> mistakes) {
        List<String> lines =
                mistakes.stream().map(ConfigurationException::line).distinct().toList();
        String message = lines.size() == 1
                ? lines.getFirst()
                : "%s has %d mistakes: %s".formatted(line(where), lines.size(), String.join("; ", lines));
        return new ConfigurationException(message, lines);
    }

    /** Returns the mistakes, a line each, where there are several; otherwise the message is the only one. */
    public List<String> mistakes() {
        return mistakes;
    }

    /** Returns every mistake, a line each, also where there is only one. */
    public List<String> lines() {
        return mistakes.isEmpty() ? List.of(String.valueOf(getMessage())) : mistakes;
    }

    /** Replaces line breaks, which values that are quoted may have. */
    private static String line(String message) {
        return message.replaceAll("\\R", " ");
    }
}
