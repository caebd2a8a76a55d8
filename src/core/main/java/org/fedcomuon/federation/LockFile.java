package org.fedcomuon.federation;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Optional;

/**
 * The file that says who holds a {@link RunLock}. Every look and every change opens it anew, because only then NFS asks
 * its server, and tells it. Immutable.
 */
record LockFile(Path path) {
    private static final int MOST_BYTES = 4096;

    /**
     * Makes the file. Of several processes, also of several hosts, one alone succeeds.
     *
     * @throws java.nio.file.FileAlreadyExistsException when it is there
     */
    void create(String text) throws IOException {
        Files.createFile(path);
        try {
            write(text);
        } catch (IOException e) {
            Files.deleteIfExists(path); // on a full disk it is empty
            throw e;
        }
    }

    /** Replaces the text in place, which needs no room on a full disk. */
    void write(String text) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
        try (FileChannel now = FileChannel.open(path, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
            while (bytes.hasRemaining()) {
                now.write(bytes);
            }
            now.truncate(bytes.limit()); // of a longer text before
        }
    }

    /** Returns the text; empty if there is no file. An interrupt does not disturb it. */
    Optional<String> read() throws IOException {
        if (Files.exists(path, LinkOption.NOFOLLOW_LINKS) && !Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS)) {
            throw new FileSystemException(path.toString(), null, "it is a link, or not a regular file");
        }
        boolean interrupted = Thread.interrupted(); // it would close the channel
        try {
            while (true) {
                try (FileChannel now = FileChannel.open(path, StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS)) {
                    ByteBuffer bytes = ByteBuffer.allocate(MOST_BYTES);
                    int count = now.read(bytes, 0);
                    return Optional.of(new String(bytes.array(), 0, Math.max(count, 0), StandardCharsets.UTF_8));
                } catch (ClosedByInterruptException e) {
                    interrupted |= Thread.interrupted();
                } catch (NoSuchFileException e) {
                    return Optional.empty();
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Returns who wrote it; empty if there is no file, or none of an owner. */
    Optional<RunOwner> owner() throws IOException {
        return read().flatMap(RunOwner::of);
    }

    void delete() throws IOException {
        Files.deleteIfExists(path);
    }
}
