package org.fedcomuon.device;

import java.util.Optional;

/**
 * Matrix decompositions on one device, in the precision of the buffers. Not thread-safe; confined to the device thread.
 */
public interface Solver {
    /**
     * Computes the compact singular value decomposition {@code A = U diag(s) V^T}, with r = min(rows, cols).
     *
     * @param a rows x cols; destroyed
     * @param s receives r singular values, largest first, from element {@code sOffset} on
     * @param u receives rows x r
     * @param vt receives r x cols
     * @throws DeviceException.NotFinite when {@code a} holds NaN
     * @throws DeviceException.Fault when the iteration does not converge
     */
    void svd(Matrix a, Buffer s, long sOffset, Matrix u, Matrix vt);

    /**
     * Computes the singular values alone, largest first, from element {@code sOffset} of {@code s} on.
     *
     * @param a destroyed
     * @throws DeviceException.NotFinite when {@code a} holds NaN
     */
    void singularValues(Matrix a, Buffer s, long sOffset);

    /**
     * Returns the library's routine that decomposes a rows x cols matrix, such as {@code gesdd}; for logs and reports.
     */
    String routine(int rows, int cols);

    /**
     * Returns why {@link #orthogonalFactors} cannot be called: an obstacle such as a library that is too old; empty
     * when it can.
     */
    Optional<String> factorObstacle();

    /**
     * Computes {@code O = U V^T} of every matrix from the eigenvectors of its Gram matrix on the short side, in double
     * precision. Directions that are left out are zero in O. A GPU does not wait: what did not converge is found by the
     * device, which refuses operations from there on, and the next call that waits throws.
     *
     * @param a row-major without gaps, of floats, finite; kept
     * @param tolerance a direction is left out if its singular value is at most this part of the largest
     * @param o row-major without gaps; may be {@code a}
     * @param workspace doubles, as many as {@link #factorWorkspace} says
     * @param kept receives how many directions of each matrix were kept; INT64
     * @throws DeviceException.Unsupported when there is a {@link #factorObstacle}
     * @throws DeviceException.Fault when the iteration does not converge on a CPU
     */
    void orthogonalFactors(MatrixBatch a, double tolerance, MatrixBatch o, Buffer workspace, Buffer kept);

    /**
     * Returns the number of doubles that {@link #orthogonalFactors} needs as a workspace for up to {@code count}
     * matrices.
     */
    long factorWorkspace(int count, int rows, int cols);
}
