package org.fedcomuon.data;

import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32;
import java.util.zip.Inflater;
import java.util.zip.InflaterInputStream;
import java.util.zip.ZipException;

/**
 * Decompresses a single gzip stream. The JDK's own reader ignores bytes that follow the stream; here they are an error
 * like any other damage: {@link ZipException}, or {@link EOFException} where something is missing.
 */
final class Gunzip extends InflaterInputStream {
    /** The largest number of bytes that Deflate can produce from one. */
    static final long RATIO = 1032;

    private static final int MAGIC = 0x1f8b;
    private static final int DEFLATE = 8;
    private static final int BUFFER = 1 << 16;

    private static final int HEADER_CHECKSUM = 2;
    private static final int EXTRA = 4;
    private static final int NAME = 8;
    private static final int COMMENT = 16;
    private static final int RESERVED = 0xe0;

    private final CRC32 checksum = new CRC32();
    private boolean ended;

    /** Reads the header; closing this closes {@code in}. */
    Gunzip(InputStream in) throws IOException {
        super(in, new Inflater(true), BUFFER);
        try {
            readHeader();
        } catch (IOException | RuntimeException | Error e) {
            close();
            throw e;
        }
    }

    /** Returns whether a gzip stream begins here; the position of {@code in} does not change. */
    static boolean isGzip(InputStream in) throws IOException {
        in.mark(Short.BYTES);
        byte[] start = in.readNBytes(Short.BYTES);
        in.reset();
        return start.length == Short.BYTES
                && Short.toUnsignedInt(ByteBuffer.wrap(start).getShort()) == MAGIC;
    }

    /** Describes the damage in a message for the user. */
    static String explain(IOException error) {
        return error instanceof EOFException
                ? "truncated: the compressed data ends too early; copy or fetch it again"
                : "the compressed data is damaged (%s); copy or fetch it again".formatted(error.getMessage());
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
        if (ended) {
            return -1;
        }
        int count = super.read(into, offset, length);
        if (count >= 0) {
            checksum.update(into, offset, count);
            return count;
        }
        ended = true;
        requireTrailer();
        return -1;
    }

    @Override
    public void close() throws IOException {
        inf.end(); // the superclass ends only an inflater that it created itself
        super.close();
    }

    private void readHeader() throws IOException {
        ByteBuffer header = ByteBuffer.wrap(bytes(in, 10));
        if (Short.toUnsignedInt(header.getShort(0)) != MAGIC) {
            throw new ZipException("not in gzip format");
        }
        int flags = Byte.toUnsignedInt(header.get(3));
        if (header.get(2) != DEFLATE || (flags & RESERVED) != 0) {
            throw new ZipException("unknown kind of gzip stream");
        }
        if ((flags & EXTRA) != 0) {
            bytes(in, Short.toUnsignedInt(littleEndian(bytes(in, Short.BYTES)).getShort()));
        }
        for (int text : new int[] {NAME, COMMENT}) {
            while ((flags & text) != 0 && bytes(in, 1)[0] != 0) {
                // The file name is not used.
            }
        }
        if ((flags & HEADER_CHECKSUM) != 0) {
            bytes(in, Short.BYTES);
        }
    }

    /**
     * Checks that exactly a checksum and a length follow, beginning with the bytes that the inflater has read ahead.
     */
    private void requireTrailer() throws IOException {
        if (!inf.finished()) {
            throw new ZipException("needs a dictionary");
        }
        int left = inf.getRemaining();
        var rest = new SequenceInputStream(new ByteArrayInputStream(buf, len - left, left), in);
        ByteBuffer trailer = littleEndian(bytes(rest, 2 * Integer.BYTES));
        if (trailer.getInt() != (int) checksum.getValue()) {
            throw new ZipException("wrong checksum");
        }
        if (trailer.getInt() != (int) inf.getBytesWritten()) {
            throw new ZipException("wrong length");
        }
        if (rest.read() >= 0) {
            throw new ZipException("trailing bytes after it");
        }
    }

    private static ByteBuffer littleEndian(byte[] bytes) {
        return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static byte[] bytes(InputStream from, int count) throws IOException {
        byte[] bytes = from.readNBytes(count);
        if (bytes.length < count) {
            throw new EOFException("unexpected end");
        }
        return bytes;
    }
}
