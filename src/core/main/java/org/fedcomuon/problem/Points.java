package org.fedcomuon.problem;

/**
 * The points of several clients in one memory, the first of each at the same distance from that of the client before:
 * what a library needs in order to compute with all of them in one call.
 *
 * <p>Not thread-safe, unless all threads only read.
 *
 * @param layout of the blocks of every client
 * @param values from the first value of the first client to the last one of the last client
 * @param count of clients
 * @param stride from the point of a client to that of the next; 0 if all of them read the same point
 */
public record Points(Layout layout, Floats values, int count, long stride) {
    public Points {
        if (count < 1 || (stride != 0 && stride < layout.length())) {
            throw new IllegalArgumentException("%d points of %d values, one every %d: at least one is needed, and they"
                            .formatted(count, layout.length(), stride)
                    + " must not overlap");
        }
        long needed = (count - 1) * stride + layout.length();
        if (values.length() != needed) {
            throw new IllegalArgumentException("%d values; %d points of %d, one every %d, have %d"
                    .formatted(values.length(), count, layout.length(), stride, needed));
        }
    }

    /** Returns the point of client {@code i} of these, as a view. */
    public Point of(int i) {
        return new Point(layout, values.slice(i * stride, layout.length()));
    }
}
