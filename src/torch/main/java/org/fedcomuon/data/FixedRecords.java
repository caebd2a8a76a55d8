package org.fedcomuon.data;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.file.FileTransfer;

/** Reads files that consist of records of one length, such as those of CIFAR-10. Thread-safe. */
final class FixedRecords {
    private static final int BUFFER = 1 << 16;

    private FixedRecords() {}

    /** Receives records in order. Called by the reading thread. */
    @FunctionalInterface
    public interface Sink {
        /** Receives record {@code number}, counted from 0; {@code bytes} is valid during the call only. */
        void record(int number, byte[] bytes) throws IOException;
    }

    /**
     * Returns the number of records in a file, computed from its length.
     *
     * @param length of a record, in bytes
     * @param most the largest permitted number of records
     * @throws MalformedFileException when there are no records, too many, or an incomplete one
     * @throws IOException when the file cannot be read; every message is one line that names the file
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
                    file, "%d records of %d bytes; at most %d are possible".formatted(size / length, length, most));
        }
        return (int) (size / length);
    }

    /**
     * Reads a whole file.
     *
     * @param sink receives every record, in order
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
