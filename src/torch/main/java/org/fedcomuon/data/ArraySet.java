package org.fedcomuon.data;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.fedcomuon.internal.NativeHeap;

/**
 * Examples of any shape as floats in memory outside the heap, for data of your own. Images as bytes take a quarter of
 * that in an {@link ImageSet}.
 *
 * <p>Immutable.
 */
public final class ArraySet implements ExampleSet {
    private final List<Integer> shape;
    private final int classes;
    private final int size;
    private final MemorySegment values;
    private final int[] labels;
    /** One per example, or none at all. */
    private final List<String> groups;

    /**
     * Creates a set with a copy of the data.
     *
     * @param shape of one example
     * @param classes labels are from 0 to one less
     * @param values all examples one after the other, the last index of the shape running fastest
     * @param labels one per example
     * @throws IllegalArgumentException when these do not fit together
     */
    public ArraySet(List<Integer> shape, int classes, float[] values, int[] labels) {
        this(shape, classes, copy(MemorySegment.ofArray(values)), labels.clone(), List.of());
    }

    /** Creates a set that owns the given memory, without a copy; {@code groups} has one name per example, or none. */
    ArraySet(List<Integer> shape, int classes, MemorySegment values, int[] labels, List<String> groups) {
        this.shape = List.copyOf(shape);
        long product = 1;
        for (int dimension : shape) {
            product = dimension < 1 ? 0 : Math.multiplyExact(product, dimension);
            if (product < 1 || product > Integer.MAX_VALUE) {
                throw new IllegalArgumentException("examples of shape %s are not possible".formatted(shape));
            }
        }
        size = (int) product;
        if (values.byteSize() != (long) labels.length * size * Float.BYTES) {
            throw new IllegalArgumentException("%d labels and %d values do not fit together: an example has %d values"
                    .formatted(labels.length, values.byteSize() / Float.BYTES, size));
        }
        Labels.require(labels, classes, "example");
        if (!groups.isEmpty() && groups.size() != labels.length) {
            throw new IllegalArgumentException("%d groups for %d examples; every example has one, or none has"
                    .formatted(groups.size(), labels.length));
        }
        this.classes = classes;
        this.values = values.asReadOnly();
        this.labels = labels;
        this.groups = List.copyOf(groups);
    }

    private static MemorySegment copy(MemorySegment values) {
        return NativeHeap.allocate(values.byteSize()).copyFrom(values);
    }

    /**
     * Returns the same examples with the name of the group that each belongs to.
     *
     * @throws IllegalArgumentException when there are more or fewer names than examples
     */
    public ArraySet withGroups(List<String> names) {
        return new ArraySet(shape, classes, values, labels, names);
    }

    @Override
    public int count() {
        return labels.length;
    }

    @Override
    public List<Integer> shape() {
        return shape;
    }

    @Override
    public int classes() {
        return classes;
    }

    @Override
    public int label(int example) {
        return labels[example];
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public Optional<String> group(int example) {
        Objects.checkIndex(example, count());
        return groups.isEmpty() ? Optional.empty() : Optional.of(groups.get(example));
    }

    @Override
    public void copyTo(int example, MemorySegment into, long offset) {
        long from = (long) Objects.checkIndex(example, count()) * size * Float.BYTES;
        MemorySegment to = into.asSlice(offset * Float.BYTES, (long) size * Float.BYTES);
        MemorySegment.copy(
                values, ValueLayout.JAVA_FLOAT_UNALIGNED, from, to, ValueLayout.JAVA_FLOAT_UNALIGNED, 0, size);
    }

    /** Returns a description for messages. */
    @Override
    public String toString() {
        return ExampleSet.describe(this);
    }
}
