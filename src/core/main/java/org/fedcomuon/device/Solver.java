package org.fedcomuon.device;

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
}
