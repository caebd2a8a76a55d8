package org.fedcomuon.data;

import static java.util.stream.Collectors.joining;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * The content of an IDX file of unsigned bytes.
 *
 * <p>Immutable, provided that the viewed memory is not changed.
 *
 * @param shape dimensions, the last of which varies fastest
 * @param data unsigned bytes, read-only
 */
record IdxArray(List<Integer> shape, MemorySegment data) {
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

    /** Returns the header of the file, which consists of the header and the data. */
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
