package org.fedcomuon.problem;

/**
 * A model's parameters, or a gradient with respect to them: one flat vector that knows its blocks.
 *
 * <p>Not thread-safe, unless all threads only read.
 *
 * @param layout of the blocks
 * @param values of all blocks
 */
public record Point(Layout layout, Floats values) {
    public Point {
        if (values.length() != layout.length()) {
            throw new IllegalArgumentException(
                    "%d values for a layout of %d".formatted(values.length(), layout.length()));
        }
    }

    /** Returns the block called {@code name}, as a view; a matrix is row-major. */
    public Floats block(String name) {
        return block(layout.position(name));
    }

    /** Returns block number {@code position}, as a view; a matrix is row-major. */
    public Floats block(int position) {
        return values.slice(
                layout.offset(position), layout.blocks().get(position).size());
    }
}
