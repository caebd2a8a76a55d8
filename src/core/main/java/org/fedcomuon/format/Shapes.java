package org.fedcomuon.format;

import static java.util.stream.Collectors.joining;

import java.util.List;
import java.util.function.Supplier;

/** Shapes of arrays in all formats. */
final class Shapes {
    private Shapes() {}

    /**
     * Returns the length of the data of an array.
     *
     * @throws IllegalArgumentException when no data could be that long; {@code array} names it in the message
     */
    static long byteSize(int elementBytes, List<Long> shape, Supplier<String> array) {
        // Zeros are left out at first: with (n, m, 0), products of the leading dimensions should not overflow either.
        long bytes = elementBytes;
        boolean empty = false;
        for (long dimension : shape) {
            if (dimension < 0) {
                throw new IllegalArgumentException(
                        array.get() + " has a negative dimension; every dimension is 0 or more");
            }
            empty |= dimension == 0;
            try {
                bytes = Math.multiplyExact(bytes, Math.max(dimension, 1));
            } catch (ArithmeticException e) {
                throw new IllegalArgumentException(
                        array.get() + " overflows; the product of the dimensions has to stay below 2^63 bytes", e);
            }
        }
        return empty ? 0 : bytes;
    }

    /** Returns a shape as JSON, abbreviated if it is long. */
    static String list(List<Long> shape) {
        int shown = 8;
        return shape.stream()
                .limit(shown)
                .map(String::valueOf)
                .collect(joining(", ", "[", shape.size() > shown ? ", ...]" : "]"));
    }
}
