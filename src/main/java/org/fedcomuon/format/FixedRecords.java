package org.fedcomuon.format;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Reads files that are nothing but records of one length, one after the other, as those of CIFAR-10 are. Thread-safe.
 */
public final class FixedRecords {
    private static final int BUFFER = 1 << 16;

    private FixedRecords() {}

    /** Takes records as they come. Called by the thread that reads. */
    @FunctionalInterface
    public interface Sink {
        /** Record {@code number}, from 0; {@code bytes} is valid during the call only. */
        void record(int number, byte[] bytes) throws IOException;
    }

    /**
     * How many records a file has, by its length.
     *
     * @param length of a record, in bytes
     * @param most records that may be there
     * @throws MalformedFileException when there are none, more, or a part of one
     * @throws IOException when it cannot be read; like all messages here, this one is a line that names the file
     */
    public static int count(Path file, int length, int most) throws IOException {
        FileTransfer.requireRegular(file, "a file of records");
        long size;
        try {
            size = Files.size(file);
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
        if (size == 0) {
            throw new MalformedFileException(
                    file, "the file is empty; records of %d bytes are needed".formatted(length));
        }
        if (size % length != 0) {
            throw new MalformedFileException(
                    file,
                    "%d bytes are %d records of %d bytes and a part of one; copy or fetch it again"
                            .formatted(size, size / length, length));
        }
        if (size / length > most) {
            throw new MalformedFileException(
                    file, "%d records of %d bytes; %d are possible".formatted(size / length, length, most));
        }
        return (int) (size / length);
    }

    /**
     * Reads a whole file.
     *
     * @param sink is told every record, in order
     * @throws MalformedFileException as {@link #count}
     * @throws IOException as {@link #count}
     */
    public static void read(Path file, int length, int most, Sink sink) throws IOException {
        int count = count(file, length, most);
        var bytes = new byte[length];
        try (InputStream in = new BufferedInputStream(Files.newInputStream(file), BUFFER)) {
            for (int i = 0; i < count; i++) {
                if (in.readNBytes(bytes, 0, length) < length) {
                    throw new IOException("the file became shorter while it was read");
                }
                sink.record(i, bytes);
            }
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
    }
}
