package org.fedcomuon.device;

/**
 * Matrix products on one device, in the precision of the buffers, which all operands share. Row-major; the result must
 * not overlap an operand. Not thread-safe; confined to the device thread.
 */
public interface Blas {
    /** Whether an operand is used as it is or transposed. */
    enum Op {
        /** The matrix itself. */
        NONE,
        /** Transposed. */
        TRANSPOSE
    }

    /** Which triangle of a symmetric matrix, including the diagonal, is read or written. */
    enum Triangle {
        /** Elements with {@code column >= row}. */
        UPPER,
        /** Elements with {@code column <= row}. */
        LOWER
    }

    /** The side of a product that the symmetric matrix is on. */
    enum Side {
        /** A B. */
        LEFT,
        /** B A. */
        RIGHT
    }

    /** Computes {@code C = alpha op(A) op(B) + beta C}. */
    void gemm(Op opA, Op opB, double alpha, Matrix a, Matrix b, double beta, Matrix c);

    /**
     * Computes one triangle of {@code C = alpha A A^T + beta C}, or of {@code alpha A^T A + beta C} with
     * {@link Op#TRANSPOSE}.
     */
    void syrk(Triangle triangle, Op op, double alpha, Matrix a, double beta, Matrix c);

    /**
     * Computes {@code C = alpha A B + beta C} or {@code alpha B A + beta C} with A symmetric, one triangle of it read.
     */
    void symm(Side side, Triangle triangle, double alpha, Matrix a, Matrix b, double beta, Matrix c);
}
