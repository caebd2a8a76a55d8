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
 * Reads PNG files, not interlaced, row by row, for sheets of images that are too large to hold in memory: grey and
 * palettes of up to 8 bits, and RGB of 8 bits, with or without an alpha channel.
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

    private static final String HEADER = "IHDR";
    private static final String PALETTE = "PLTE";
    private static final String DATA = "IDAT";
    private static final String END = "IEND";

    /** The largest row in bytes; two rows are kept in memory. */
    private static final long MOST_ROW = 1 << 24;

    private static final int LARGEST_PALETTE = 3 << 8;

    private static final int BUFFER = 1 << 16;

    private Png() {}

    /** What the header says about the samples of a row. */
    private enum Kind {
        GREY(0, 1, 1),
        RGB(2, 3, 3),
        PALETTE(3, 1, 3),
        GREY_ALPHA(4, 2, 2),
        RGB_ALPHA(6, 4, 4);

        /** The number in the header. */
        final int code;
        /** The samples per pixel in the file. */
        final int stored;
        /** The samples per pixel that a receiver gets. */
        final int channels;

        Kind(int code, int stored, int channels) {
            this.code = code;
            this.stored = stored;
            this.channels = channels;
        }

        boolean allows(int depth) {
            return depth == DEPTH || ((this == GREY || this == PALETTE) && (depth == 1 || depth == 2 || depth == 4));
        }

        static Optional<Kind> of(int code) {
            return Arrays.stream(values()).filter(kind -> kind.code == code).findFirst();
        }
    }

    /** The whole header: {@code depth} bits per sample. */
    private record Header(PixelSize size, Kind kind, int depth) {
        /** Returns the bytes of a row in the file. */
        int rowBytes() {
            return (int) (((long) size.cols() * kind.stored * depth + 7) / 8);
        }

        /** Returns the bytes of a pixel in the file, at least 1. */
        int step() {
            return Math.max(1, kind.stored * depth / 8);
        }
    }

    /** Restricts the size of the image. Called by the reading thread. */
    @FunctionalInterface
    public interface Rule {
        /**
         * Returns what is wrong with {@code size} and what is expected, or empty if it is accepted. Called before the
         * data is read.
         */
        Optional<String> refuse(PixelSize size);
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

    /**
     * Reads the size from the header of a file, and no more.
     *
     * @throws MalformedFileException when it does not begin as a PNG file that can be read
     */
    public static PixelSize size(Path name, byte[] content) throws IOException {
        try (var reader = new Reader(name, new ByteArrayInputStream(content), content.length)) {
            return reader.start().size();
        } catch (EOFException e) {
            throw truncated(name, e);
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
            throw truncated(file, e);
        } catch (DataFormatException e) {
            throw new MalformedFileException(
                    file, "the compressed data is damaged (%s); copy or fetch it again".formatted(e.getMessage()), e);
        }
    }

    private static MalformedFileException truncated(Path file, EOFException e) {
        return new MalformedFileException(file, "truncated: it ends too early; copy or fetch it again", e);
    }

    /** Parses one file from its beginning to its end: chunks, some of which contain a compressed stream of rows. */
    private static final class Reader implements AutoCloseable {
        private final Path file;
        private final InputStream in;
        private final long bytes;
        private final Inflater inflater = new Inflater();
        private final CRC32 checksum = new CRC32();
        private final byte[] buffer = new byte[BUFFER];

        /** Three bytes per colour; empty without a palette. */
        private byte[] palette = {};

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
            Header header = start();
            Optional<String> problem = rule.refuse(header.size());
            if (problem.isPresent()) {
                throw refused(problem.get());
            }
            findData();
            requirePalette(header);
            image(header, rows);
            end();
        }

        /** Reads the signature and the header. */
        Header start() throws IOException {
            requireSignature();
            Header header = header();
            requireRoom(header);
            return header;
        }

        /** Refuses a size that the file cannot hold, before memory is allocated for it. */
        private void requireRoom(Header header) throws MalformedFileException {
            PixelSize size = header.size();
            long needed = size.rows() * (1L + header.rowBytes());
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

        private Header header() throws IOException {
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
            Kind kind = Kind.of(color)
                    .filter(each -> each.allows(depth))
                    .orElseThrow(() -> refused(
                            ("color type %d with %d bits is not supported; grey, palettes, RGB and RGBA with 8 bits"
                                            + " are")
                                    .formatted(color, depth)));
            int compression = header.get();
            int filters = header.get();
            if (compression != 0 || filters != 0) {
                throw refused("an unknown way of compression or filtering; there is only one, 0");
            }
            if (header.get() != 0) {
                throw refused("interlaced, which is not supported; save it without");
            }
            if ((long) cols * kind.channels > MOST_ROW) {
                throw refused("rows of %d pixels; %d are possible".formatted(cols, MOST_ROW / kind.channels));
            }
            return new Header(new PixelSize(cols, rows, kind.channels), kind, depth);
        }

        /** Skips everything before the image data. */
        private void findData() throws IOException {
            for (startChunk(); !type.equals(DATA); startChunk()) {
                if (type.equals(END)) {
                    throw refused("it has no image data, %s".formatted(DATA));
                }
                if (type.equals(PALETTE) && left <= LARGEST_PALETTE) {
                    palette = new byte[(int) left];
                    take(palette, palette.length);
                    endChunk();
                } else {
                    skipChunk();
                }
            }
        }

        private void requirePalette(Header header) throws MalformedFileException {
            if (header.kind() == Kind.PALETTE && (palette.length == 0 || palette.length % 3 != 0)) {
                throw refused("a palette of %d bytes, %s; from 1 to 256 colours of three bytes are needed"
                        .formatted(palette.length, PALETTE));
            }
        }

        private void image(Header header, Rows rows) throws IOException, DataFormatException {
            PixelSize size = header.size();
            int step = header.step();
            int length = header.rowBytes();
            boolean asItIs = header.depth() == DEPTH && header.kind() != Kind.PALETTE;
            var samples = new byte[asItIs ? 0 : size.cols() * size.channels()];
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
                if (!asItIs) {
                    unpack(header, row, samples, i);
                }
                rows.row(i, asItIs ? row : samples);
                byte[] free = above;
                above = row;
                row = free;
            }
        }

        /** Converts numbers of fewer than 8 bits to bytes, and those of a palette to its colours. */
        private void unpack(Header header, byte[] row, byte[] samples, int number) throws MalformedFileException {
            int most = (1 << header.depth()) - 1;
            for (int i = 0; i < header.size().cols(); i++) {
                int bit = i * header.depth();
                int value = (Byte.toUnsignedInt(row[bit / 8]) >> (8 - header.depth() - bit % 8)) & most;
                if (header.kind() == Kind.GREY) {
                    samples[i] = (byte) (value * 255 / most); // exact: 1, 3 and 15 divide 255
                } else if (3 * value < palette.length) {
                    System.arraycopy(palette, 3 * value, samples, 3 * i, 3);
                } else {
                    throw refused("row %d has colour %d, but the palette has only %d"
                            .formatted(number, value, palette.length / 3));
                }
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
