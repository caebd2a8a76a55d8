package org.fedcomuon.format;

import static java.util.stream.Collectors.joining;

import java.util.List;
import java.util.function.Supplier;

/** What arrays of all formats have in common. */
final class Shapes {
    private Shapes() {}

    /**
     * How long the data of an array is.
     *
     * @throws IllegalArgumentException when no data could be; {@code array} says for the message what it is
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

    /** As JSON writes it, but not to the end if that is far. */
    static String list(List<Long> shape) {
        int shown = 8;
        return shape.stream()
                .limit(shown)
                .map(String::valueOf)
                .collect(joining(", ", "[", shape.size() > shown ? ", ...]" : "]"));
    }
}
