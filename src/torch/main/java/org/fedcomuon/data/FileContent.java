package org.fedcomuon.data;

import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.ZipException;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.file.FileTransfer;

/** Reads whole files, uncompressed or compressed with gzip, which is detected from the content. Thread-safe. */
final class FileContent {
    private FileContent() {}

    /**
     * Reads a whole file.
     *
     * @param kind what the file should be, such as "a text file"
     * @param most the largest permitted number of bytes, uncompressed
     * @throws MalformedFileException when the file is larger, or its compressed data is damaged
     * @throws IOException when the file cannot be read; every message is one line that names the file
     */
    public static byte[] read(Path file, String kind, int most) throws IOException {
        FileTransfer.requireRegular(file, kind);
        try (InputStream in = Files.newInputStream(file)) {
            return read(file, in, most);
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
    }

    /** Reads the content of a file like {@link #read(Path, String, int)}; messages call it {@code name}. */
    public static byte[] read(Path name, byte[] content, int most) throws IOException {
        return read(name, new ByteArrayInputStream(content), most);
    }

    private static byte[] read(Path file, InputStream whole, int most) throws IOException {
        var buffered = new BufferedInputStream(whole);
        if (!Gunzip.isGzip(buffered)) {
            return limited(file, buffered, most);
        }
        try (var in = new Gunzip(buffered)) {
            return limited(file, in, most);
        } catch (EOFException | ZipException e) {
            throw new MalformedFileException(file, Gunzip.explain(e), e);
        }
    }

    private static byte[] limited(Path file, InputStream in, int most) throws IOException {
        byte[] content = in.readNBytes(most); // grows as the data arrives
        if (in.read() >= 0) {
            throw new MalformedFileException(file, "larger than the limit of %d bytes".formatted(most));
        }
        return content;
    }
}
