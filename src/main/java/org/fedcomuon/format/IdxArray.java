package org.fedcomuon.format;

import static java.util.stream.Collectors.joining;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * What an IDX file holds, of the one element type that is read.
 *
 * <p>Immutable, as far as the memory is that it views.
 *
 * @param shape dimensions, the last of which varies fastest
 * @param data unsigned bytes, read-only
 */
public record IdxArray(List<Integer> shape, MemorySegment data) {
    /** Refuses data that does not fill the shape. */
    public IdxArray {
        shape = List.copyOf(shape);
        data = data.asReadOnly();
        long bytes = 1;
        for (int dimension : shape) {
            if (dimension < 1) {
                throw new IllegalArgumentException("the shape %s has an empty dimension".formatted(text(shape)));
            }
            bytes = Math.multiplyExact(bytes, dimension);
        }
        if (shape.isEmpty() || shape.size() > 255 || bytes != data.byteSize()) {
            throw new IllegalArgumentException(
                    "the shape %s does not fit %d bytes".formatted(text(shape), data.byteSize()));
        }
    }

    /** What precedes the data in a file: together they are the whole of it. */
    public byte[] header() {
        ByteBuffer header = ByteBuffer.allocate(Integer.BYTES * (1 + shape.size()));
        header.putInt(Idx.UNSIGNED_BYTE << 8 | shape.size());
        shape.forEach(header::putInt);
        return header.array();
    }

    static String text(List<?> shape) {
        return shape.stream().map(String::valueOf).collect(joining(" x "));
    }
}
