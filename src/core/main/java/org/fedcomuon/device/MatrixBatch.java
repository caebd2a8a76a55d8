package org.fedcomuon.device;

/**
 * One matrix of every client: element (i, j) of client k is at {@code offset + k * stride + i * rowStride + j *
 * colStride}. Bounds are checked here, once.
 *
 * <p>Immutable, except for the elements, which are the buffer's.
 *
 * @param stride elements from one client's matrix to the next one's
 */
public record MatrixBatch(
        Buffer buffer, long offset, long clients, long stride, int rows, int cols, long rowStride, long colStride) {
    public MatrixBatch {
        if (offset < 0 || clients < 0 || stride < 0 || rows < 0 || cols < 0 || rowStride < 1 || colStride < 1) {
            throw new DeviceException.InvalidOperand("%s: %d matrices of %d x %d at %d with strides %d, %d and %d"
                    .formatted(buffer.label(), clients, rows, cols, offset, stride, rowStride, colStride));
        }
        if (clients > 0 && rows > 0 && cols > 0) {
            long end;
            try {
                long reach = Math.addExact(
                        Math.multiplyExact(rows - 1L, rowStride), Math.multiplyExact(cols - 1L, colStride));
                end = Math.addExact(
                        Math.addExact(offset, reach), Math.addExact(Math.multiplyExact(clients - 1, stride), 1));
            } catch (ArithmeticException e) {
                end = Long.MAX_VALUE;
            }
            if (end > buffer.length()) {
                throw new DeviceException.InvalidOperand(
                        "%s: %d matrices of %d x %d from %d on do not fit its %d elements"
                                .formatted(buffer.label(), clients, rows, cols, offset, buffer.length()));
            }
        }
    }

    /** Returns the vectors of {@code batch} seen as row-major matrices without gaps. */
    public static MatrixBatch of(Batch batch, int rows, int cols) {
        if (batch.length() != (long) rows * cols) {
            throw new DeviceException.InvalidOperand("%s has %d elements per client, not %d x %d"
                    .formatted(batch.buffer().label(), batch.length(), rows, cols));
        }
        return new MatrixBatch(
                batch.buffer(), batch.offset(), batch.clients(), batch.stride(), rows, cols, Math.max(1, cols), 1);
    }

    /** Returns the transposed matrices, of the same elements. */
    public MatrixBatch transpose() {
        return new MatrixBatch(buffer, offset, clients, stride, cols, rows, colStride, rowStride);
    }

    /** Returns whether the matrices are row-major without gaps, as the result of a product has to be. */
    public boolean isPlain() {
        return colStride == 1 && rowStride == Math.max(1, cols);
    }
}
