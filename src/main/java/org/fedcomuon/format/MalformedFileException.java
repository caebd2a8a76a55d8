package org.fedcomuon.format;

import java.io.IOException;
import java.nio.file.Path;

/**
 * A file that could be read but does not hold what it should. Somebody has to correct or replace the file, so the
 * message is written for that person: one line with the file's name, what is wrong, and what would be right. Trouble of
 * the file system itself is another {@link IOException}.
 */
public class MalformedFileException extends IOException {
    private static final long serialVersionUID = 1L;

    /** {@code problem} says what is wrong and what would be right; the file's name is put before it. */
    public MalformedFileException(Path file, String problem) {
        super(oneLine(file + ": " + problem));
    }

    MalformedFileException(Path file, String problem, Exception cause) {
        super(oneLine(file + ": " + problem), cause);
    }

    /** Whatever a file or its name contains, a message stays on one line and a terminal is not controlled by it. */
    public static String oneLine(String text) {
        var line = new StringBuilder(text.length());
        text.codePoints().forEach(c -> {
            switch (Character.getType(c)) {
                case Character.CONTROL,
                        Character.FORMAT,
                        Character.LINE_SEPARATOR,
                        Character.PARAGRAPH_SEPARATOR,
                        Character.SURROGATE -> line.append("\\u%04x".formatted(c));
                default -> line.appendCodePoint(c);
            }
        });
        return line.toString();
    }
}
