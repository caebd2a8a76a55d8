package org.fedcomuon.device;

/**
 * A matrix in a buffer, row-major: element (i, j) is at {@code offset + i * stride + j}. Bounds are checked here, once.
 *
 * <p>Immutable, except for the elements, which are the buffer's.
 *
 * @param stride elements from one row to the next, at least {@code cols}
 */
public record Matrix(Buffer buffer, long offset, int rows, int cols, int stride) {
    public Matrix {
        buffer.requireFloatingPoint();
        if (offset < 0 || rows < 0 || cols < 0 || stride < Math.max(1, cols)) {
            throw new DeviceException.InvalidOperand("%s: a %d x %d matrix at %d with rows %d apart"
                    .formatted(buffer.label(), rows, cols, offset, stride));
        }
        if (rows > 0 && cols > 0 && (rows - 1L) * stride + cols > buffer.length() - offset) {
            throw new DeviceException.InvalidOperand(
                    "%s: a %d x %d matrix at %d with rows %d apart needs more than its %d elements"
                            .formatted(buffer.label(), rows, cols, offset, stride, buffer.length()));
        }
    }

    /** Returns a matrix without gaps between the rows. */
    public static Matrix of(Buffer buffer, long offset, int rows, int cols) {
        return new Matrix(buffer, offset, rows, cols, Math.max(1, cols));
    }

    /**
     * Returns whether an element of this one is an element of {@code other}; with different strides, whether it may be.
     */
    boolean overlaps(Matrix other) {
        if (buffer != other.buffer || rows == 0 || cols == 0 || other.rows == 0 || other.cols == 0) {
            return false;
        }
        boolean first = offset <= other.offset;
        Matrix low = first ? this : other;
        Matrix high = first ? other : this;
        if (high.offset >= low.offset + (low.rows - 1L) * low.stride + low.cols) {
            return false;
        }
        long phase = (high.offset - low.offset) % low.stride;
        return low.stride != high.stride || phase < low.cols || phase + high.cols > low.stride;
    }
}
