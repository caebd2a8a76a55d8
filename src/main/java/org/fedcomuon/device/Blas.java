package org.fedcomuon.device;

/**
 * Matrix products on one device, in the precision of the buffers, which all operands share. Row-major; the result must
 * not overlap an operand. Of the device's thread.
 */
public interface Blas {
    /** Whether an operand is used as it is or transposed. */
    enum Op {
        /** As it is. */
        NONE,
        /** Transposed. */
        TRANSPOSE
    }

    /** Which half of a symmetric matrix, with the diagonal, is read or written. */
    enum Triangle {
        /** Elements with {@code column >= row}. */
        UPPER,
        /** Elements with {@code column <= row}. */
        LOWER
    }

    /** On which side of a product the symmetric matrix stands. */
    enum Side {
        /** A B. */
        LEFT,
        /** B A. */
        RIGHT
    }

    /** {@code C = alpha op(A) op(B) + beta C}. */
    void gemm(Op opA, Op opB, double alpha, Matrix a, Matrix b, double beta, Matrix c);

    /**
     * One triangle of {@code C = alpha A A^T + beta C}, or of {@code alpha A^T A + beta C} with {@link Op#TRANSPOSE}.
     */
    void syrk(Triangle triangle, Op op, double alpha, Matrix a, double beta, Matrix c);

    /** {@code C = alpha A B + beta C} or {@code alpha B A + beta C} with A symmetric, one triangle of it read. */
    void symm(Side side, Triangle triangle, double alpha, Matrix a, Matrix b, double beta, Matrix c);
}
