package org.fedcomuon.data;

import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.zip.CRC32;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.file.FileTransfer;

/**
 * Reads PNG files of 8-bit RGB or RGBA, not interlaced, row by row, for sheets of images that are too large to hold in
 * memory.
 *
 * <p>Files are not trusted. Every checksum is verified, the caller may refuse the size before anything else is read,
 * only two rows are kept in memory, and a file with data after its last row is refused.
 *
 * <p>Thread-safe.
 */
final class Png {
    private static final long SIGNATURE = 0x89504e47_0d0a1a0aL;
    private static final int HEADER_LENGTH = 13;
    private static final int DEPTH = 8;
    private static final int RGB = 2;
    private static final int RGBA = 6;

    private static final String HEADER = "IHDR";
    private static final String PALETTE = "PLTE";
    private static final String DATA = "IDAT";
    private static final String END = "IEND";

    /** The largest row in bytes; two rows are kept in memory. */
    private static final long MOST_ROW = 1 << 24;

    private static final int BUFFER = 1 << 16;

    private Png() {}

    /**
     * The size in the header.
     *
     * @param cols pixels per row
     * @param rows at least 1, as cols
     * @param channels 3 for RGB, 4 with the alpha channel
     */
    public record Size(int cols, int rows, int channels) {}

    /** Restricts the size of the image. Called by the reading thread. */
    @FunctionalInterface
    public interface Rule {
        /**
         * Returns what is wrong with {@code size} and what is expected, or empty if it is accepted. Called before the
         * data is read.
         */
        Optional<String> refuse(Size size);
    }

    /** Receives rows in order. Called by the reading thread. */
    @FunctionalInterface
    public interface Rows {
        /**
         * Receives a row.
         *
         * @param number of the row, from 0
         * @param samples the samples in the order pixels, channels; valid during the call only, and not to be changed
         */
        void row(int number, byte[] samples) throws IOException;
    }

    /**
     * Reads a whole file.
     *
     * @param rule accepts or refuses the size
     * @param rows receives every row, in order, including rows that precede damage
     * @throws MalformedFileException when the file is not a PNG file, is damaged, or is of another kind
     * @throws IOException when the file cannot be read; every message is one line that names the file
     */
    public static void read(Path file, Rule rule, Rows rows) throws IOException {
        FileTransfer.requireRegular(file, "a PNG file");
        try (InputStream in = Files.newInputStream(file)) {
            read(file, in, Files.size(file), rule, rows);
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
    }

    /** Reads the content of a file like {@link #read(Path, Rule, Rows)}; messages call it {@code name}. */
    public static void read(Path name, byte[] content, Rule rule, Rows rows) throws IOException {
        read(name, new ByteArrayInputStream(content), content.length, rule, rows);
    }

    private static void read(Path file, InputStream in, long bytes, Rule rule, Rows rows) throws IOException {
        try (var reader = new Reader(file, new BufferedInputStream(in), bytes)) {
            reader.read(rule, rows);
        } catch (EOFException e) {
            throw new MalformedFileException(file, "truncated: it ends too early; copy or fetch it again", e);
        } catch (DataFormatException e) {
            throw new MalformedFileException(
                    file, "the compressed data is damaged (%s); copy or fetch it again".formatted(e.getMessage()), e);
        }
    }

    /** Parses one file from its beginning to its end: chunks, some of which contain a compressed stream of rows. */
    private static final class Reader implements AutoCloseable {
        private final Path file;
        private final InputStream in;
        private final long bytes;
        private final Inflater inflater = new Inflater();
        private final CRC32 checksum = new CRC32();
        private final byte[] buffer = new byte[BUFFER];

        /** The current chunk, and the number of bytes of its data that have not been read. */
        private String type = "";

        private long left;

        Reader(Path file, InputStream in, long bytes) {
            this.file = file;
            this.in = in;
            this.bytes = bytes;
        }

        @Override
        public void close() {
            inflater.end();
        }

        void read(Rule rule, Rows rows) throws IOException, DataFormatException {
            requireSignature();
            Size size = header();
            Optional<String> problem = rule.refuse(size);
            if (problem.isPresent()) {
                throw refused(problem.get());
            }
            requireRoom(size);
            findData();
            image(size, rows);
            end();
        }

        /** Refuses a size that the file cannot hold, before memory is allocated for it. */
        private void requireRoom(Size size) throws MalformedFileException {
            long needed = size.rows() * (1 + (long) size.cols() * size.channels());
            if (needed > bytes * Gunzip.RATIO) {
                throw refused("%d x %d pixels need %d bytes; a compressed file of %d bytes cannot hold them"
                        .formatted(size.cols(), size.rows(), needed, bytes));
            }
        }

        private void requireSignature() throws IOException {
            byte[] signature = in.readNBytes(Long.BYTES);
            if (signature.length == 0) {
                throw refused("the file is empty; a PNG image is needed");
            }
            byte[] right = ByteBuffer.allocate(Long.BYTES).putLong(SIGNATURE).array();
            if (!Arrays.equals(signature, Arrays.copyOf(right, signature.length))) {
                throw refused("not a PNG file, which starts with the bytes 89 50 4e 47 0d 0a 1a 0a");
            }
            if (signature.length < Long.BYTES) {
                throw new EOFException();
            }
        }

        private Size header() throws IOException {
            startChunk();
            if (!type.equals(HEADER) || left != HEADER_LENGTH) {
                throw refused("it does not start with a header of %d bytes, %s".formatted(HEADER_LENGTH, HEADER));
            }
            var bytes = new byte[HEADER_LENGTH];
            take(bytes, HEADER_LENGTH);
            endChunk();
            ByteBuffer header = ByteBuffer.wrap(bytes);
            int cols = header.getInt();
            int rows = header.getInt();
            int depth = Byte.toUnsignedInt(header.get());
            int color = Byte.toUnsignedInt(header.get());
            if (cols < 1 || rows < 1) {
                throw refused("%d x %d pixels; from 1 to %d are possible each way"
                        .formatted(Integer.toUnsignedLong(cols), Integer.toUnsignedLong(rows), Integer.MAX_VALUE));
            }
            if (depth != DEPTH || (color != RGB && color != RGBA)) {
                throw refused("color type %d with %d bits is not supported; RGB, %d, and RGBA, %d, with %d bits are"
                        .formatted(color, depth, RGB, RGBA, DEPTH));
            }
            int compression = header.get();
            int filters = header.get();
            if (compression != 0 || filters != 0) {
                throw refused("an unknown way of compression or filtering; there is only one, 0");
            }
            if (header.get() != 0) {
                throw refused("interlaced, which is not supported; save it without");
            }
            int channels = color == RGB ? 3 : 4;
            if ((long) cols * channels > MOST_ROW) {
                throw refused("rows of %d pixels; %d are possible".formatted(cols, MOST_ROW / channels));
            }
            return new Size(cols, rows, channels);
        }

        /** Skips everything before the image data. */
        private void findData() throws IOException {
            for (startChunk(); !type.equals(DATA); startChunk()) {
                if (type.equals(END)) {
                    throw refused("it has no image data, %s".formatted(DATA));
                }
                skipChunk();
            }
        }

        private void image(Size size, Rows rows) throws IOException, DataFormatException {
            int step = size.channels();
            int length = size.cols() * step;
            var filter = new byte[1];
            var above = new byte[length];
            var row = new byte[length];
            for (int i = 0; i < size.rows(); i++) {
                inflate(filter, i);
                inflate(row, i);
                switch (filter[0]) {
                    case 0 -> {}
                    case 1 -> sub(row, step);
                    case 2 -> up(row, above);
                    case 3 -> average(row, above, step);
                    case 4 -> paeth(row, above, step);
                    default ->
                        throw refused("row %d has filter %d; from 0 to 4 are possible"
                                .formatted(i, Byte.toUnsignedInt(filter[0])));
                }
                rows.row(i, row);
                byte[] free = above;
                above = row;
                row = free;
            }
        }

        private static void sub(byte[] row, int step) {
            for (int i = step; i < row.length; i++) {
                row[i] += row[i - step];
            }
        }

        private static void up(byte[] row, byte[] above) {
            for (int i = 0; i < row.length; i++) {
                row[i] += above[i];
            }
        }

        private static void average(byte[] row, byte[] above, int step) {
            for (int i = 0; i < row.length; i++) {
                int left = i < step ? 0 : Byte.toUnsignedInt(row[i - step]);
                row[i] += (byte) ((left + Byte.toUnsignedInt(above[i])) / 2);
            }
        }

        private static void paeth(byte[] row, byte[] above, int step) {
            for (int i = 0; i < row.length; i++) {
                int a = i < step ? 0 : Byte.toUnsignedInt(row[i - step]);
                int b = Byte.toUnsignedInt(above[i]);
                int c = i < step ? 0 : Byte.toUnsignedInt(above[i - step]);
                // The one of left, above and upper left that is nearest to a + b - c, the first of equal ones.
                int toA = Math.abs(b - c);
                int toB = Math.abs(a - c);
                int toC = Math.abs(a + b - 2 * c);
                row[i] += (byte) (toA <= toB && toA <= toC ? a : toB <= toC ? b : c);
            }
        }

        /** Reads the end of the stream, with its checksum, and of the file, and refuses further image data. */
        private void end() throws IOException, DataFormatException {
            var more = new byte[1];
            while (!inflater.finished()) {
                if (inflater.inflate(more) > 0) {
                    throw refused("more image data than its header specifies");
                }
                if (!inflater.finished()) {
                    feed("it ends before its checksum");
                }
            }
            if (inflater.getRemaining() > 0) {
                throw refused("trailing bytes after the image data");
            }
            while (!type.equals(END)) {
                if (type.equals(DATA) && left > 0) {
                    throw refused("trailing bytes after the image data");
                }
                skipChunk();
                startChunk();
            }
            if (left > 0) {
                throw refused("the last chunk, %s, has data".formatted(END));
            }
            endChunk();
            if (in.read() >= 0) {
                throw refused("trailing bytes after the last chunk, %s".formatted(END));
            }
        }

        private void inflate(byte[] into, int row) throws IOException, DataFormatException {
            int at = 0;
            while (at < into.length) {
                int count = inflater.inflate(into, at, into.length - at);
                at += count;
                if (count == 0) {
                    if (inflater.finished()) {
                        throw refused("the image data ends in row %d".formatted(row));
                    }
                    feed("it ends in row %d".formatted(row));
                }
            }
        }

        /** Gives the inflater, whose input is used up, the next piece of the data. */
        private void feed(String otherwise) throws IOException {
            if (inflater.needsDictionary()) {
                throw refused("the image data needs a dictionary, which PNG does not have");
            }
            while (left == 0) {
                endChunk();
                startChunk();
                if (!type.equals(DATA)) {
                    throw refused("the image data is incomplete: %s".formatted(otherwise));
                }
            }
            int count = (int) Math.min(left, buffer.length);
            take(buffer, count);
            inflater.setInput(buffer, 0, count);
        }

        // ---- chunks

        private void startChunk() throws IOException {
            var bytes = new byte[2 * Integer.BYTES];
            if (in.readNBytes(bytes, 0, bytes.length) < bytes.length) {
                throw new EOFException();
            }
            left = Integer.toUnsignedLong(ByteBuffer.wrap(bytes).getInt());
            type = new String(bytes, Integer.BYTES, Integer.BYTES, StandardCharsets.ISO_8859_1);
            if (left > Integer.MAX_VALUE || !type.matches("[A-Za-z]{4}")) {
                throw refused("a chunk of type '%s' with %d bytes is not possible".formatted(type, left));
            }
            checksum.reset();
            checksum.update(bytes, Integer.BYTES, Integer.BYTES);
        }

        /** Skips a chunk that is not needed: only chunks whose names begin with a capital letter are critical. */
        private void skipChunk() throws IOException {
            if (Character.isUpperCase(type.charAt(0)) && !type.equals(PALETTE) && !type.equals(DATA)) {
                throw refused("a chunk of type '%s', which is unknown or in the wrong place".formatted(type));
            }
            while (left > 0) {
                take(buffer, (int) Math.min(left, buffer.length));
            }
            endChunk();
        }

        private void take(byte[] into, int count) throws IOException {
            if (in.readNBytes(into, 0, count) < count) {
                throw new EOFException();
            }
            checksum.update(into, 0, count);
            left -= count;
        }

        private void endChunk() throws IOException {
            var bytes = new byte[Integer.BYTES];
            if (in.readNBytes(bytes, 0, bytes.length) < bytes.length) {
                throw new EOFException();
            }
            if (ByteBuffer.wrap(bytes).getInt() != (int) checksum.getValue()) {
                throw refused("a chunk of type '%s' has a wrong checksum; copy or fetch it again".formatted(type));
            }
        }

        private MalformedFileException refused(String problem) {
            return new MalformedFileException(file, problem);
        }
    }
}
