package org.fedcomuon.format;

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

/**
 * Reads PNG files of 8-bit RGB or RGBA, not interlaced, row by row: sheets of images, larger than memory should have to
 * hold.
 *
 * <p>Files come from anywhere. Every checksum is checked, whoever reads may refuse the size before anything else is
 * read, two rows are all that is kept, and a file that does not end with its last row is refused.
 *
 * <p>Thread-safe.
 */
public final class Png {
    private static final long SIGNATURE = 0x89504e47_0d0a1a0aL;
    private static final int HEADER_LENGTH = 13;
    private static final int DEPTH = 8;
    private static final int RGB = 2;
    private static final int RGBA = 6;

    private static final String HEADER = "IHDR";
    private static final String PALETTE = "PLTE";
    private static final String DATA = "IDAT";
    private static final String END = "IEND";

    /** Of a row, in bytes; two of them are kept. */
    private static final long MOST_ROW = 1 << 24;

    private static final int BUFFER = 1 << 16;

    private Png() {}

    /**
     * What the header says.
     *
     * @param cols pixels a row
     * @param rows at least 1, as cols
     * @param channels 3 for RGB, 4 with the alpha channel
     */
    public record Size(int cols, int rows, int channels) {}

    /** Whoever reads knows more about the size than the format does. Called by the thread that reads. */
    @FunctionalInterface
    public interface Rule {
        /** What is wrong with {@code size} and what would be right, or nothing; asked before the data is read. */
        Optional<String> refuse(Size size);
    }

    /** Takes what is in a file as it comes. Called by the thread that reads. */
    @FunctionalInterface
    public interface Rows {
        /**
         * A row.
         *
         * @param number of the row, from 0
         * @param samples pixel by pixel, in each channel by channel; valid, and not to be changed, during the call
         */
        void row(int number, byte[] samples) throws IOException;
    }

    /**
     * Reads a whole file.
     *
     * @param rule says which sizes are right
     * @param rows is told every row, in order; those before damage that is found later, too
     * @throws MalformedFileException when the file is no PNG file, is damaged, or is of another kind
     * @throws IOException when it cannot be read; like all messages here, this one is a line that names the file
     */
    public static void read(Path file, Rule rule, Rows rows) throws IOException {
        FileTransfer.requireRegular(file, "a PNG file");
        try (InputStream in = Files.newInputStream(file)) {
            read(file, in, Files.size(file), rule, rows);
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
    }

    /** Reads the content of a file, which for messages is called {@code name}, as {@link #read(Path, Rule, Rows)}. */
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

    /** Takes one file apart, from its beginning to its end: chunks, in some of them a stream, and in that rows. */
    private static final class Reader implements AutoCloseable {
        private final Path file;
        private final InputStream in;
        private final long bytes;
        private final Inflater inflater = new Inflater();
        private final CRC32 checksum = new CRC32();
        private final byte[] buffer = new byte[BUFFER];

        /** The chunk that is being read, and how much of its data is still to come. */
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

        /** What a header claims in vain takes no memory. */
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

        /** Passes over everything before the data. */
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
                // Of left, above and upper left the one nearest to a + b - c, the first among equals.
                int toA = Math.abs(b - c);
                int toB = Math.abs(a - c);
                int toC = Math.abs(a + b - 2 * c);
                row[i] += (byte) (toA <= toB && toA <= toC ? a : toB <= toC ? b : c);
            }
        }

        /** The rest of the stream, which is its own checksum, and of the file: nothing more of the image. */
        private void end() throws IOException, DataFormatException {
            var more = new byte[1];
            while (!inflater.finished()) {
                if (inflater.inflate(more) > 0) {
                    throw refused("more image data than its header says");
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

        /** Hands the inflater, which has used up everything, the next piece of the data. */
        private void feed(String otherwise) throws IOException {
            if (inflater.needsDictionary()) {
                throw refused("the image data needs a dictionary, which PNG does not have");
            }
            while (left == 0) {
                endChunk();
                startChunk();
                if (!type.equals(DATA)) {
                    throw refused("the image data is not whole: %s".formatted(otherwise));
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

        /** What is of no interest here: only chunks whose names begin with a capital letter change the meaning. */
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
