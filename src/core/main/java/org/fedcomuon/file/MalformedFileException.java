package org.fedcomuon.file;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;

/**
 * A file that could be read but has invalid contents. The message is one line with the file's name, what is wrong, and
 * what would be right. A failure of the file system is another {@link IOException}.
 */
public class MalformedFileException extends IOException {
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception with the message {@code file: problem}, where {@code problem} is what is wrong and what is
     * expected.
     */
    public MalformedFileException(Path file, String problem) {
        super(oneLine(file + ": " + problem));
    }

    /** Creates one with a cause. */
    public MalformedFileException(Path file, String problem, Exception cause) {
        super(oneLine(file + ": " + problem), cause);
    }

    /** Escapes control characters, so that a message stays on one line and does not control a terminal. */
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

    /**
     * Returns the reason why the file system refuses a file or a directory, because its own messages are often only the
     * path.
     */
    public static String reason(IOException error) {
        return switch (error) {
            case NoSuchFileException _ -> "no such file";
            case AccessDeniedException _ -> "permission denied";
            case FileAlreadyExistsException _, NotDirectoryException _ -> "there is a file of this name";
            case FileSystemException e -> e.getReason() == null ? e.toString() : e.getReason();
            default -> error.getMessage() == null ? error.toString() : error.getMessage();
        };
    }
}
