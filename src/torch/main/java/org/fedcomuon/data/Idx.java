package org.fedcomuon.data;

import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.zip.ZipException;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.file.FileTransfer;

/**
 * Reads IDX files of unsigned bytes, the format of MNIST, uncompressed or compressed with gzip, which is detected from
 * the content.
 *
 * <p>Files are not trusted. The header determines how much data follows: it is refused if the file could not hold that
 * much, the caller may refuse the shape before anything else is read, no more than that is ever decompressed, and a
 * file with trailing bytes is refused.
 *
 * <p>Thread-safe.
 */
final class Idx {
    /** The format's code of the element type, unsigned bytes. */
    static final int UNSIGNED_BYTE = 8;

    /** The length of the longest possible array. */
    private static final long MOST = Integer.MAX_VALUE - 8;

    private static final String KIND = "an IDX file";

    private Idx() {}

    /** Restricts the shape of the array. Called by the reading thread. */
    @FunctionalInterface
    public interface Rule {
        /**
         * Returns what is wrong with {@code shape} and what is expected, or empty if it is accepted. Called before the
         * data is read.
         */
        Optional<String> refuse(List<Integer> shape);
    }

    /**
     * Reads a whole file.
     *
     * @param rank the required number of dimensions: 1 for labels, 3 for images
     * @param rule accepts or refuses the shape
     * @throws MalformedFileException when the file is not an IDX file, is damaged, or has another type or shape
     * @throws IOException when the file cannot be read; every message is one line that names the file
     */
    public static IdxArray read(Path file, int rank, Rule rule) throws IOException {
        FileTransfer.requireRegular(file, KIND);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            return read(file, Channels.newInputStream(channel), channel.size(), rank, rule);
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
    }

    /** Reads the content of a file like {@link #read(Path, int, Rule)}; messages call it {@code name}. */
    public static IdxArray read(Path name, byte[] content, int rank, Rule rule) throws IOException {
        return read(name, new ByteArrayInputStream(content), content.length, rank, rule);
    }

    private static IdxArray read(Path file, InputStream whole, long size, int rank, Rule rule) throws IOException {
        var buffered = new BufferedInputStream(whole);
        if (!Gunzip.isGzip(buffered)) {
            return new Reader(file, buffered, size, false, rank, rule).array();
        }
        try (var in = new Gunzip(buffered)) {
            return new Reader(file, in, size, true, rank, rule).array();
        } catch (EOFException | ZipException e) {
            throw new MalformedFileException(file, Gunzip.explain(e), e);
        }
    }

    /** Parses one file from its beginning to its end. */
    private record Reader(Path file, InputStream in, long size, boolean compressed, int rank, Rule rule) {
        IdxArray array() throws IOException {
            requireMagic();
            List<Integer> shape = shape();
            long needed = elements(shape);
            long headerBytes = Integer.BYTES * (1L + rank);
            if (compressed) {
                if (needed > size * Gunzip.RATIO) {
                    throw refused(
                            "the shape %s in the header needs %d bytes; a compressed file of %d bytes cannot hold them"
                                    .formatted(IdxArray.text(shape), needed, size));
                }
            } else {
                requireData(shape, size - headerBytes, needed);
            }
            // The array grows as the data arrives, so a false header takes no memory.
            byte[] data = in.readNBytes((int) needed);
            if (data.length < needed) {
                requireData(shape, data.length, needed);
            }
            if (in.read() >= 0) {
                throw refused("trailing bytes after the data; shape %s needs %d bytes, and there the file has to end"
                        .formatted(IdxArray.text(shape), needed));
            }
            return new IdxArray(shape, MemorySegment.ofArray(data));
        }

        private void requireMagic() throws IOException {
            byte[] magic = in.readNBytes(Integer.BYTES);
            if (magic.length == 0) {
                throw refused("%s; an IDX file starts with two zero bytes"
                        .formatted(compressed ? "nothing is compressed in it" : "the file is empty"));
            }
            if (magic[0] != 0 || (magic.length > 1 && magic[1] != 0)) {
                throw refused("not an IDX file, nor one compressed with gzip; an IDX file starts with two zero bytes");
            }
            if (magic.length < Integer.BYTES) {
                throw truncatedHeader();
            }
            int type = Byte.toUnsignedInt(magic[2]);
            if (type != UNSIGNED_BYTE) {
                throw refused("element type 0x%02x (%s) is not supported; unsigned bytes, 0x%02x, are"
                        .formatted(type, typeName(type), UNSIGNED_BYTE));
            }
            int found = Byte.toUnsignedInt(magic[3]);
            if (found != rank) {
                boolean swapped = (found == 1 && rank == 3) || (found == 3 && rank == 1);
                throw refused("%s, but %s needed%s"
                        .formatted(
                                rankName(found),
                                rankName(rank) + (rank == 1 ? " is" : " are"),
                                swapped ? "; is it the other file of the two?" : ""));
            }
        }

        private static String typeName(int type) {
            return switch (type) {
                case 0x09 -> "signed bytes";
                case 0x0b -> "16-bit integers";
                case 0x0c -> "32-bit integers";
                case 0x0d -> "float32";
                case 0x0e -> "float64";
                default -> "unknown";
            };
        }

        private static String rankName(int rank) {
            return switch (rank) {
                case 1 -> "1 dimension, as labels have,";
                case 3 -> "3 dimensions, as images have,";
                default -> "%d dimensions".formatted(rank);
            };
        }

        private List<Integer> shape() throws IOException {
            byte[] dimensions = in.readNBytes(Integer.BYTES * rank);
            if (dimensions.length < Integer.BYTES * rank) {
                throw truncatedHeader();
            }
            ByteBuffer buffer = ByteBuffer.wrap(dimensions);
            var shape = new ArrayList<Integer>();
            for (int i = 0; i < rank; i++) {
                int dimension = buffer.getInt();
                if (dimension < 1) {
                    throw refused("dimension %d of %d is %d; from 1 to %d is possible"
                            .formatted(i + 1, rank, Integer.toUnsignedLong(dimension), MOST));
                }
                shape.add(dimension);
            }
            return shape;
        }

        private long elements(List<Integer> shape) throws MalformedFileException {
            long elements = 1;
            for (int dimension : shape) {
                elements = Math.multiplyExact(elements, dimension); // two numbers below 2^31
                if (elements > MOST) {
                    throw refused("the shape %s in the header is too large; %d bytes are possible"
                            .formatted(IdxArray.text(shape), MOST));
                }
            }
            Optional<String> problem = rule.refuse(List.copyOf(shape));
            if (problem.isPresent()) {
                throw refused(problem.get());
            }
            return elements;
        }

        private void requireData(List<Integer> shape, long present, long needed) throws MalformedFileException {
            if (present < needed) {
                throw refused("truncated data: %d bytes are there, %d are needed for shape %s"
                        .formatted(present, needed, IdxArray.text(shape)));
            }
            if (present > needed) {
                throw refused("%d trailing bytes after the data; shape %s needs %d bytes, and there the file has to end"
                        .formatted(present - needed, IdxArray.text(shape), needed));
            }
        }

        private MalformedFileException truncatedHeader() {
            return refused("truncated header: the whole file is %d bytes; copy or fetch it again".formatted(size));
        }

        private MalformedFileException refused(String problem) {
            return new MalformedFileException(file, problem);
        }
    }
}
