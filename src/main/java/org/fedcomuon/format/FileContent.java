package org.fedcomuon.format;

import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.ZipException;

/** All that is in a file, as it is or compressed with gzip; the content tells which. Thread-safe. */
public final class FileContent {
    private FileContent() {}

    /**
     * Reads a whole file.
     *
     * @param kind what the file should be, as "a text file"
     * @param most bytes that it may have, without compression
     * @throws MalformedFileException when it has more, or what is compressed is damaged
     * @throws IOException when it cannot be read; like all messages here, this one is a line that names the file
     */
    public static byte[] read(Path file, String kind, int most) throws IOException {
        FileTransfer.requireRegular(file, kind);
        try (InputStream in = Files.newInputStream(file)) {
            return read(file, in, most);
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
    }

    /** Takes the content of a file, which for messages is called {@code name}, as {@link #read(Path, String, int)}. */
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
        byte[] content = in.readNBytes(most); // in pieces, as they come
        if (in.read() >= 0) {
            throw new MalformedFileException(file, "larger than the %d bytes that are possible".formatted(most));
        }
        return content;
    }
}
