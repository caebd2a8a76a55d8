package org.fedcomuon.problem;

import java.util.List;
import java.util.Objects;

/**
 * A named parameter of a model: a matrix, a convolution kernel treated as a matrix, or something else.
 *
 * @param name unique within its {@link Layout}
 * @param shape the dimensions, outermost first; elements are in row-major order
 * @param update how Muon methods update it
 */
public record Block(String name, List<Integer> shape, Update update) {
    /** How a method with orthogonalized momentum updates a block. Other methods treat all blocks alike. */
    public enum Update {
        /** Along {@code U V^T} of its momentum, as a matrix of {@link Block#rows} x {@link Block#cols}. */
        ORTHOGONAL,
        /** Along its momentum, by the rule and the learning rate for what is not a matrix. */
        VECTOR
    }

    public Block {
        Objects.requireNonNull(update);
        shape = List.copyOf(shape);
        if (name.isBlank()) {
            throw new IllegalArgumentException("a block has no name");
        }
        if (shape.isEmpty() || shape.stream().anyMatch(side -> side < 1)) {
            throw new IllegalArgumentException(
                    "block '%s' has the shape %s; every side is at least 1".formatted(name, shape));
        }
        if (update == Update.ORTHOGONAL && shape.size() < 2) {
            throw new IllegalArgumentException(
                    "block '%s' is a vector, which has no orthogonal factor".formatted(name));
        }
        long size = 1;
        long cols = 1;
        for (int i = 0; i < shape.size(); i++) {
            try {
                size = Math.multiplyExact(size, shape.get(i));
            } catch (ArithmeticException e) {
                throw new IllegalArgumentException("block '%s' is too large: %s".formatted(name, shape), e);
            }
            cols = i == 0 ? 1 : cols * shape.get(i);
        }
        if (cols > Integer.MAX_VALUE) {
            throw new IllegalArgumentException("block '%s' has %d columns; 2^31-1 are possible".formatted(name, cols));
        }
    }

    /** Creates a matrix. */
    public static Block matrix(String name, int rows, int cols) {
        return new Block(name, List.of(rows, cols), Update.ORTHOGONAL);
    }

    /** Creates a convolution kernel, updated as the matrix {@code out x (in * height * width)}. */
    public static Block kernel(String name, int out, int in, int height, int width) {
        return new Block(name, List.of(out, in, height, width), Update.ORTHOGONAL);
    }

    /** Creates a block that is not a matrix, such as a bias. */
    public static Block vector(String name, int length) {
        return new Block(name, List.of(length), Update.VECTOR);
    }

    /** Returns the same block updated like a vector, as some prefer for embeddings and heads. */
    public Block asVector() {
        return new Block(name, shape, Update.VECTOR);
    }

    /** Returns the number of elements. */
    public long size() {
        return (long) rows() * cols();
    }

    /** Returns the rows of the block as a matrix: its first dimension. */
    public int rows() {
        return shape.getFirst();
    }

    /** Returns the columns of the block as a matrix: all other dimensions together; 1 for a vector. */
    public int cols() {
        return shape.stream().skip(1).reduce(1, (a, b) -> a * b);
    }
}
