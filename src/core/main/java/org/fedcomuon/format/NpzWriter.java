package org.fedcomuon.format;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.ThreadLocalRandom;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.fedcomuon.internal.file.FileTransfer;

/**
 * Writes an NPZ file, arrays by name in a zip archive that is not compressed, as {@code numpy.savez} does. The arrays
 * are written one after the other, so that only one of them need be in memory. The file gets its name with
 * {@link #commit}; without it nothing is left.
 *
 * <p>Not thread-safe.
 */
public final class NpzWriter implements AutoCloseable {
    private static final int CHUNK = 1 << 16;

    private final Path file;
    private final Path part;
    private final ZipOutputStream zip;
    private boolean open = true;

    private NpzWriter(Path file, Path part, ZipOutputStream zip) {
        this.file = file;
        this.part = part;
        this.zip = zip;
    }

    /**
     * Begins a file.
     *
     * @throws IOException when it cannot be written; as of all messages here, this one names the file
     */
    public static NpzWriter create(Path file) throws IOException {
        FileTransfer.refuseDirectory(file, "an NPZ file");
        Path part = file.resolveSibling(
                ".npz-%016x.part".formatted(ThreadLocalRandom.current().nextLong()));
        try {
            var zip = new ZipOutputStream(
                    new BufferedOutputStream(Files.newOutputStream(part, StandardOpenOption.CREATE_NEW), CHUNK));
            zip.setMethod(ZipOutputStream.STORED);
            return new NpzWriter(file, part, zip);
        } catch (IOException e) {
            throw FileTransfer.explainWrite(file, e);
        }
    }

    /** Adds an array, which {@code numpy.load} finds by this name. */
    public void add(String name, Npy.Array array) throws IOException {
        byte[] header = Npy.header(array);
        var crc = new CRC32();
        crc.update(header);
        inPieces(array.data(), (bytes, length) -> crc.update(bytes, 0, length));
        var entry = new ZipEntry(name + ".npy");
        entry.setSize(header.length + array.data().byteSize());
        entry.setCrc(crc.getValue());
        entry.setTime(0); // or else equal arrays would not make equal files
        try {
            zip.putNextEntry(entry);
            zip.write(header);
            inPieces(array.data(), (bytes, length) -> zip.write(bytes, 0, length));
            zip.closeEntry();
        } catch (IOException e) {
            throw FileTransfer.explainWrite(file, e);
        }
    }

    private interface Sink {
        void take(byte[] bytes, int length) throws IOException;
    }

    private static void inPieces(MemorySegment data, Sink sink) throws IOException {
        var piece = new byte[CHUNK];
        for (long at = 0; at < data.byteSize(); at += CHUNK) {
            int length = (int) Math.min(CHUNK, data.byteSize() - at);
            MemorySegment.copy(data, ValueLayout.JAVA_BYTE, at, piece, 0, length);
            sink.take(piece, length);
        }
    }

    /** Completes the file and gives it its name. */
    public void commit() throws IOException {
        try {
            open = false;
            zip.close();
            Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw FileTransfer.explainWrite(file, e);
        }
    }

    @Override
    public void close() throws IOException {
        try {
            if (open) {
                open = false;
                zip.close();
            }
        } finally {
            Files.deleteIfExists(part);
        }
    }
}
