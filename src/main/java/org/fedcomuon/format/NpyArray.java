package org.fedcomuon.format;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import org.fedcomuon.device.ElementType;

/**
 * An array as an NPY file holds it: for exchanging matrices and datasets with NumPy, through {@link Npy}. Any number of
 * dimensions is possible, none at all being a single number; whoever needs a matrix checks for two.
 *
 * <p>Two arrays are equal if they share their memory; contents are not compared. Immutable, as far as that memory is.
 *
 * @param type what an element is
 * @param shape how many elements along each dimension
 * @param fortranOrder whether the first index runs fastest; otherwise the last one does
 * @param data the elements, little-endian and without gaps; read-only here, and alive as long as the memory it views
 */
public record NpyArray(ElementType type, List<Long> shape, boolean fortranOrder, MemorySegment data) {
    /**
     * Checks that the data is as long as the shape says.
     *
     * @throws IllegalArgumentException when it is not, or when no data could be
     */
    public NpyArray {
        shape = List.copyOf(shape);
        long bytes = byteSize(type, shape);
        if (data.byteSize() != bytes) {
            throw new IllegalArgumentException("shape %s of %s needs %d bytes of data, not %d"
                    .formatted(Npy.tuple(shape), Npy.name(type), bytes, data.byteSize()));
        }
        data = data.asReadOnly();
    }

    /** How many elements, in all dimensions together. */
    public long elements() {
        return data.byteSize() / type.bytes();
    }

    /** How long the data of such an array is. */
    static long byteSize(ElementType type, List<Long> shape) {
        Objects.requireNonNull(type);
        return Shapes.byteSize(type.bytes(), shape, () -> "shape %s of %s".formatted(Npy.tuple(shape), Npy.name(type)));
    }
}
