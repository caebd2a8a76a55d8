package org.fedcomuon.format;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.SecureRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.fedcomuon.internal.file.FileTransfer;
import org.fedcomuon.internal.file.SteadyChannel;

/**
 * Text files of which nothing half-written is ever visible under the final name, not even after a crash. Thread-safe.
 */
public final class AtomicFile {
    /** The name of a temporary file that a killed process left, which contains the final name. */
    private static final Pattern PART = Pattern.compile("\\.(.+)\\.[0-9a-f]{16}\\.part");

    private static final SecureRandom NAMES = new SecureRandom();

    private AtomicFile() {}

    /**
     * Writes all of {@code text}, or leaves what was there. A symbolic link is replaced, not followed. Interrupts do
     * not disturb it.
     *
     * @throws IOException when it cannot be written; its message is a line that names the file
     */
    public static void write(Path file, String text) throws IOException {
        Path absolute = file.toAbsolutePath();
        // Not createTempFile, whose files only the owner may read. A name that cannot be guessed: there may be links in
        // its place.
        Path part = absolute.resolveSibling(".%s.%016x.part".formatted(absolute.getFileName(), NAMES.nextLong()));
        try {
            ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            try {
                try (SteadyChannel channel = SteadyChannel.create(part)) {
                    channel.on(now -> {
                        FileTransfer.write(now, 0, MemorySegment.ofBuffer(bytes));
                        return bytes;
                    });
                    channel.force(); // or else a crash may leave the new name without the text
                }
                Files.move(part, absolute, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            } finally {
                Files.deleteIfExists(part);
            }
        } catch (IOException e) {
            throw FileTransfer.explainWrite(file, e);
        }
    }

    /** Deletes what processes that were killed have left of a file. No other process may be writing it. */
    public static void deleteAbandoned(Path file) throws IOException {
        Path absolute = file.toAbsolutePath();
        try (Stream<Path> siblings = Files.list(absolute.resolveSibling(""))) {
            for (Path sibling : (Iterable<Path>) siblings::iterator) {
                Matcher name = PART.matcher("" + sibling.getFileName());
                if (name.matches() && name.group(1).equals("" + absolute.getFileName())) {
                    Files.deleteIfExists(sibling);
                }
            }
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
    }
}
