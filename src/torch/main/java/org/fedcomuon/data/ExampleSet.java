package org.fedcomuon.data;

import static java.util.stream.Collectors.joining;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;

/**
 * Examples of one shape, each with its class: images, or rows of features. {@link Partition} deals them out by their
 * classes and groups, and a model reads their values as floats.
 *
 * <p>Immutable: an implementation of your own must be too, because several threads read from it.
 */
public interface ExampleSet {
    /** Returns the number of examples. */
    int count();

    /**
     * Returns the shape of one example: {@code channels, rows, cols} for an image, one number for a row of features.
     */
    List<Integer> shape();

    /** Returns the number of classes. */
    int classes();

    /** Returns the class of an example, from 0. */
    int label(int example);

    /** Writes the values of an example to {@code into}, from its float number {@code offset} on. */
    void copyTo(int example, MemorySegment into, long offset);

    /** Writes the values of an example to {@code into}, from its element {@code offset} on. */
    default void copyTo(int example, float[] into, int offset) {
        copyTo(example, MemorySegment.ofArray(into), offset);
    }

    /** Returns the number of values of an example, the product of its {@link #shape}. */
    default int size() {
        return shape().stream().reduce(1, Math::multiplyExact);
    }

    /** Returns the name of the group that an example belongs to, if the data say so: that of its client. */
    default Optional<String> group(int example) {
        return Optional.empty();
    }

    /**
     * Returns a description of a set for messages, such as {@code 100 examples of 1 x 28 x 28 values in 10 classes}.
     */
    static String describe(ExampleSet set) {
        return "%d examples of %s values in %d classes"
                .formatted(
                        set.count(), set.shape().stream().map(String::valueOf).collect(joining(" x ")), set.classes());
    }
}
