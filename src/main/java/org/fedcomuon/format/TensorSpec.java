package org.fedcomuon.format;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * A tensor that is going to be written: the layout of a safetensors file is fixed before its data is there, so
 * {@link SafetensorsWriter} is told all of them first.
 *
 * @param name any text but {@code __metadata__}, which the format keeps for itself
 * @param dtype what an element is
 * @param shape how many elements along each dimension, the last index running fastest; empty for a single number
 */
public record TensorSpec(String name, Dtype dtype, List<Long> shape) {
    /**
     * Checks that such a tensor can be.
     *
     * @throws IllegalArgumentException when the name is taken or not Unicode, a dimension is negative, or the size
     *     overflows
     */
    public TensorSpec {
        Objects.requireNonNull(dtype);
        shape = List.copyOf(shape);
        if (name.equals(SafetensorsHeader.METADATA)) {
            throw new IllegalArgumentException(
                    "no tensor can be called %s; this is where the metadata is".formatted(name));
        }
        SafetensorsHeader.requireUnicode(name, "the name of a tensor");
        byteSize(name, dtype, shape);
    }

    /** The same, for shapes written out. */
    public static TensorSpec of(String name, Dtype dtype, long... shape) {
        return new TensorSpec(name, dtype, Arrays.stream(shape).boxed().toList());
    }

    /** How long the data is. */
    public long bytes() {
        return byteSize(name, dtype, shape);
    }

    static long byteSize(String name, Dtype dtype, List<Long> shape) {
        return Shapes.byteSize(
                dtype.bytes(),
                shape,
                () -> "tensor '%s' with shape %s of %s".formatted(FileTransfer.clip(name), Shapes.list(shape), dtype));
    }
}
