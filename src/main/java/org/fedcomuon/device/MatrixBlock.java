package org.fedcomuon.device;

/**
 * One matrix of every client, row-major and contiguous. Offsets count elements from the client's start in the momentum,
 * the result and the weights.
 *
 * @param scale the block's learning-rate scale, 1 for none
 */
public record MatrixBlock(
        long rows, long cols, long momentumOffset, long resultOffset, long weightOffset, double scale) {
    /** At the same place in the momentum, the result and the weights, without a scale. */
    public static MatrixBlock at(long offset, long rows, long cols) {
        return new MatrixBlock(rows, cols, offset, offset, offset, 1.0);
    }
}
