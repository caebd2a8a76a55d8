package org.fedcomuon.format;

import java.util.List;

/**
 * A tensor in a {@link SafetensorsFile}: what to allocate before it is read, and what to check it against.
 *
 * @param name its key in the file
 * @param dtype what an element is
 * @param shape how many elements along each dimension, the last index running fastest; empty for a single number
 * @param offset where its data starts, counted from the end of the header
 * @param bytes how long its data is
 */
public record TensorInfo(String name, Dtype dtype, List<Long> shape, long offset, long bytes) {
    /** Takes a copy of the shape; the rest was checked where the file was read. */
    public TensorInfo {
        shape = List.copyOf(shape);
    }

    /** Where the data of the next tensor starts. */
    long end() {
        return offset + bytes;
    }

    /** Whether so many bytes from {@code from} on are of this tensor, which nobody may leave. */
    void requireWithin(long from, long length) {
        if (from < 0 || length > bytes || from > bytes - length) {
            throw new IndexOutOfBoundsException("%d bytes from %d on are not within the %d bytes of tensor '%s'"
                    .formatted(length, from, bytes, FileTransfer.clip(name)));
        }
    }
}
