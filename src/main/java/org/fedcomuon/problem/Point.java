package org.fedcomuon.problem;

/**
 * A model's parameters, or a gradient with respect to them: one flat vector that knows its blocks.
 *
 * <p>Of one thread at a time, unless all only read.
 *
 * @param layout where the blocks are
 * @param values all of them
 */
public record Point(Layout layout, Floats values) {
    public Point {
        if (values.length() != layout.length()) {
            throw new IllegalArgumentException(
                    "%d values for a layout of %d".formatted(values.length(), layout.length()));
        }
    }

    /** The block called {@code name}, as a view; a matrix is row-major. */
    public Floats block(String name) {
        return block(layout.position(name));
    }

    /** Block number {@code position}, as a view; a matrix is row-major. */
    public Floats block(int position) {
        return values.slice(
                layout.offset(position), layout.blocks().get(position).size());
    }
}
