package org.fedcomuon.format;

import static org.fedcomuon.internal.file.FileTransfer.clip;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.SequencedMap;
import java.util.stream.Collectors;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.file.FileTransfer;
import org.fedcomuon.internal.file.SteadyChannel;

/**
 * Reads safetensors files: weights from elsewhere, and what {@link SafetensorsWriter} wrote. Opening checks the whole
 * header against the exact length of the file; the data stays in the file until it is read.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="safetensors"}
 *
 * <p>Files are not trusted: no more memory is allocated than the file itself fills. {@link #verify} checks that the
 * data is unchanged.
 *
 * <p>Thread-safe: any number of threads may read at once, and interrupts do not close the file.
 */
public final class SafetensorsFile implements AutoCloseable {
    static final String KIND = "a safetensors file";

    private static final long CONVERTED_AT_ONCE = 1 << 16;
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfDouble DOUBLE =
            ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfShort SHORT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final int LONGEST_ARRAY = Integer.MAX_VALUE - 8;

    private final Path file;
    private final SteadyChannel channel;
    private final SafetensorsHeader header;

    private SafetensorsFile(Path file, SteadyChannel channel, SafetensorsHeader header) {
        this.file = file;
        this.channel = channel;
        this.header = header;
    }

    /**
     * Opens a file after checking its header.
     *
     * @throws MalformedFileException when the file is not a safetensors file, is damaged, or has a tensor of a type
     *     that is not in {@link Dtype}
     * @throws IOException when it cannot be read; like all messages here, this one is a line that names the file
     */
    public static SafetensorsFile open(Path file) throws IOException {
        FileTransfer.requireRegular(file, KIND);
        SteadyChannel channel = null;
        try {
            channel = SteadyChannel.read(file);
            var opened = new SafetensorsFile(file, channel, channel.on(now -> SafetensorsHeader.read(file, now)));
            channel = null; // now another's to close
            return opened;
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        } finally {
            if (channel != null) {
                channel.close();
            }
        }
    }

    /** Returns the path by which the file was opened. */
    public Path path() {
        return file;
    }

    /** Returns the metadata of the file, in its order; empty if there is none. */
    public SequencedMap<String, String> metadata() {
        return header.metadata();
    }

    /** Returns the tensors by name, in the order of the data. */
    public SequencedMap<String, Tensor> tensors() {
        return header.tensors();
    }

    /**
     * Fills {@code into} with bytes of a tensor, from {@code offsetBytes} on; in pieces, if the tensor is larger than
     * memory. They are little-endian, as they are in the file.
     *
     * @throws MalformedFileException when the file has no such tensor
     * @throws IndexOutOfBoundsException when the tensor ends before {@code into} is full
     */
    public void read(String name, long offsetBytes, MemorySegment into) throws IOException {
        read(tensor(name), offsetBytes, into);
    }

    /**
     * Returns all elements of a small tensor.
     *
     * @throws MalformedFileException when the file has no such tensor of {@link Dtype#F32}, or when it is longer than
     *     an array can be
     */
    public float[] floats(String name) throws IOException {
        Tensor tensor = tensor(name, Dtype.F32);
        var values = new float[length(tensor)];
        read(tensor, 0, MemorySegment.ofArray(values));
        return values;
    }

    /**
     * Reads a tensor of floating-point numbers of any precision as floats. A {@link Dtype#F64} is rounded to the
     * nearest float; the others are converted exactly.
     *
     * @param into as many floats as the tensor has elements
     * @throws MalformedFileException when the file has no such tensor, or one of whole numbers
     */
    public void readAsFloats(String name, MemorySegment into) throws IOException {
        Tensor tensor = tensor(name);
        int size = tensor.dtype().bytes();
        long count = tensor.bytes() / size;
        if (into.byteSize() != count * Float.BYTES) {
            throw new IllegalArgumentException(
                    "%d floats for the %d elements of '%s'".formatted(into.byteSize() / Float.BYTES, count, name));
        }
        MemorySegment piece = MemorySegment.ofArray(new byte[(int) Math.min(count, CONVERTED_AT_ONCE) * size]);
        for (long from = 0; from < count; from += CONVERTED_AT_ONCE) {
            long some = Math.min(count - from, CONVERTED_AT_ONCE);
            read(tensor, from * size, piece.asSlice(0, some * size));
            for (long i = 0; i < some; i++) {
                into.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, from + i, toFloat(tensor, piece, i));
            }
        }
    }

    private float toFloat(Tensor tensor, MemorySegment piece, long i) throws MalformedFileException {
        return switch (tensor.dtype()) {
            case F32 -> piece.get(FLOAT, i * Float.BYTES);
            case F64 -> (float) piece.get(DOUBLE, i * Double.BYTES);
            case F16 -> Float.float16ToFloat(piece.get(SHORT, i * Short.BYTES));
            case BF16 -> Float.intBitsToFloat(piece.get(SHORT, i * Short.BYTES) << 16);
            case I64, I32, U8 ->
                throw new MalformedFileException(
                        file,
                        "tensor '%s' is %s; F32, F16, BF16 or F64 is expected"
                                .formatted(clip(tensor.name()), tensor.dtype()));
        };
    }

    /**
     * Returns all elements of a small tensor.
     *
     * @throws MalformedFileException when the file has no such tensor of {@link Dtype#I64}, or when it is longer than
     *     an array can be
     */
    public long[] longs(String name) throws IOException {
        Tensor tensor = tensor(name, Dtype.I64);
        var values = new long[length(tensor)];
        read(tensor, 0, MemorySegment.ofArray(values));
        return values;
    }

    /** Returns whether there is a checksum, which {@link #verify} needs. */
    public boolean hasChecksum() {
        return header.sealAt() != SafetensorsHeader.UNSEALED;
    }

    /**
     * Checks that the file is bit-identical to what {@link SafetensorsWriter} wrote, by reading all of it.
     *
     * @throws MalformedFileException when it has changed, or when the file has no checksum; only files that
     *     {@link SafetensorsWriter} wrote have one
     */
    public void verify() throws IOException {
        String claimed = header.metadata().get(SafetensorsHeader.SEAL);
        if (claimed == null) {
            throw new MalformedFileException(
                    file,
                    "no checksum: the metadata has no '%s' to verify the file by".formatted(SafetensorsHeader.SEAL));
        }
        if (!hasChecksum()) {
            throw new MalformedFileException(
                    file,
                    "no checksum: the metadata '%s' is '%s'; right would be 64 small hexadecimal digits"
                            .formatted(SafetensorsHeader.SEAL, clip(claimed)));
        }
        requireOpen();
        String actual;
        try {
            actual = channel.on(header::seal);
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
        if (!actual.equals(claimed)) {
            throw new MalformedFileException(
                    file,
                    "the checksum is wrong: the file is no longer what was written; its sha256 is %s, right would be %s"
                            .formatted(actual, claimed));
        }
    }

    /** Closes the file; reading is no longer possible, {@link #tensors} and {@link #metadata} remain valid. */
    @Override
    public void close() throws IOException {
        channel.close();
    }

    private void read(Tensor tensor, long offset, MemorySegment into) throws IOException {
        tensor.requireWithin(offset, into.byteSize());
        requireOpen();
        try {
            channel.on(now -> {
                FileTransfer.read(now, header.dataAt() + tensor.offset() + offset, into);
                return into;
            });
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
    }

    private void requireOpen() {
        if (!channel.isOpen()) {
            throw new IllegalStateException(file + " is closed");
        }
    }

    private int length(Tensor tensor) throws MalformedFileException {
        long elements = tensor.bytes() / tensor.dtype().bytes();
        if (elements > LONGEST_ARRAY) {
            throw new MalformedFileException(
                    file,
                    "tensor '%s' has %d elements, more than an array can have"
                            .formatted(clip(tensor.name()), elements));
        }
        return (int) elements;
    }

    private Tensor tensor(String name) throws MalformedFileException {
        Tensor tensor = header.tensors().get(name);
        if (tensor == null) {
            String there = header.tensors().keySet().stream()
                    .limit(8)
                    .map("'%s'"::formatted)
                    .collect(Collectors.joining(", "));
            throw new MalformedFileException(
                    file,
                    "no tensor '%s'; of %d there are %s"
                            .formatted(clip(name), header.tensors().size(), clip(there, 200)));
        }
        return tensor;
    }

    private Tensor tensor(String name, Dtype wanted) throws MalformedFileException {
        Tensor tensor = tensor(name);
        if (tensor.dtype() != wanted) {
            throw new MalformedFileException(
                    file, "tensor '%s' is of %s; right would be %s".formatted(clip(name), tensor.dtype(), wanted));
        }
        return tensor;
    }

    /**
     * A tensor of a {@link SafetensorsFile}.
     *
     * @param name its key in the file
     * @param dtype of the elements
     * @param shape the number of elements along each dimension, the last index running fastest; empty for a single
     *     number
     * @param offset where its data starts, counted from the end of the header
     * @param bytes the length of its data
     */
    public record Tensor(String name, Dtype dtype, List<Long> shape, long offset, long bytes) {
        /** Copies the shape; the rest was checked where the file was read. */
        public Tensor {
            shape = List.copyOf(shape);
        }

        /** Returns where the data of the next tensor starts. */
        long end() {
            return offset + bytes;
        }

        /** Requires {@code length} bytes from {@code from} on to be within this tensor. */
        void requireWithin(long from, long length) {
            if (from < 0 || length > bytes || from > bytes - length) {
                throw new IndexOutOfBoundsException("%d bytes from %d on are not within the %d bytes of tensor '%s'"
                        .formatted(length, from, bytes, FileTransfer.clip(name)));
            }
        }
    }
}
