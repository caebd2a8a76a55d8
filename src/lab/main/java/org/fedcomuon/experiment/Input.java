package org.fedcomuon.experiment;

import static java.util.stream.Collectors.joining;

import java.util.List;

/** The kind of an example: data and models with an equal input fit together. Immutable. */
public sealed interface Input {
    /** Returns the shape of an example; that of text is the number of words of a block. */
    List<Integer> shape();

    /**
     * Values of one shape.
     *
     * @param shape of an example: channels, rows and columns of an image, or the number of features
     */
    record Values(List<Integer> shape) implements Input {
        public Values {
            shape = List.copyOf(shape);
        }

        @Override
        public String toString() {
            String sizes = shape.stream().map(String::valueOf).collect(joining(" x "));
            return switch (shape.size()) {
                case 1 -> "rows of %s features".formatted(sizes);
                case 3 -> "images of %s values".formatted(sizes);
                default -> "examples of %s values".formatted(sizes);
            };
        }
    }

    /**
     * A block of words.
     *
     * @param length of a block
     */
    record Words(int length) implements Input {
        @Override
        public List<Integer> shape() {
            return List.of(length);
        }

        /** Blocks of any length are of one kind: a model is made for the length. */
        @Override
        public boolean equals(Object other) {
            return other instanceof Words;
        }

        @Override
        public int hashCode() {
            return Words.class.hashCode();
        }

        @Override
        public String toString() {
            return "text";
        }
    }
}
