package org.fedcomuon.internal.vendor;

import java.lang.foreign.MemorySegment;
import org.fedcomuon.internal.bindings.cublas.CublasNative;

/**
 * A call of cuBLAS with all its arguments: column-major, with the library's own codes. A {@link CublasBinding} has
 * nothing left to do but pass it on, so that each binding computes the same.
 */
public sealed interface CublasCall {
    /** Returns the operation and its sizes, for messages. */
    String describe();

    /**
     * Returns the library's math mode for the call. Single and double precision are pedantic: in the default mode
     * environment variables such as {@code CUBLAS_EMULATE_SINGLE_PRECISION} change what they mean, and with it results.
     * A narrow precision is what the pedantic mode forbids.
     */
    default int mathMode() {
        return switch (this) {
            case GemmEx call -> mathMode(call.computeType());
            case GemmBatch call -> mathMode(call.computeType());
            case Gemm call -> CublasNative.CUBLAS_PEDANTIC_MATH();
            case Syrk call -> CublasNative.CUBLAS_PEDANTIC_MATH();
            case Symm call -> CublasNative.CUBLAS_PEDANTIC_MATH();
        };
    }

    private static int mathMode(int computeType) {
        return computeType == CublasNative.CUBLAS_COMPUTE_32F()
                ? CublasNative.CUBLAS_PEDANTIC_MATH()
                : CublasNative.CUBLAS_DEFAULT_MATH();
    }

    /** {@code C = alpha op(A) op(B) + beta C} with C m x n, all of floats or all of doubles. */
    record Gemm(
            boolean wide,
            int opA,
            int opB,
            int m,
            int n,
            int k,
            double alpha,
            MemorySegment a,
            int lda,
            MemorySegment b,
            int ldb,
            double beta,
            MemorySegment c,
            int ldc)
            implements CublasCall {
        @Override
        public String describe() {
            return "%s of %d x %d by %d x %d".formatted(wide ? "dgemm" : "sgemm", n, k, k, m);
        }
    }

    /** As {@link Gemm} of floats, computed in another precision. */
    record GemmEx(
            int computeType,
            int opA,
            int opB,
            int m,
            int n,
            int k,
            float alpha,
            MemorySegment a,
            int lda,
            MemorySegment b,
            int ldb,
            float beta,
            MemorySegment c,
            int ldc)
            implements CublasCall {
        @Override
        public String describe() {
            return "gemm of %d x %d by %d x %d".formatted(n, k, k, m);
        }
    }

    /** As {@link GemmEx}, {@code count} times, each matrix a stride of elements after the one before. */
    record GemmBatch(
            int computeType,
            int opA,
            int opB,
            int m,
            int n,
            int k,
            float alpha,
            MemorySegment a,
            int lda,
            long strideA,
            MemorySegment b,
            int ldb,
            long strideB,
            float beta,
            MemorySegment c,
            int ldc,
            long strideC,
            int count)
            implements CublasCall {
        @Override
        public String describe() {
            return "%d gemm of %d x %d by %d x %d".formatted(count, n, k, k, m);
        }
    }

    /** One triangle of {@code C = alpha op(A) op(A)^T + beta C} with C n x n. */
    record Syrk(
            boolean wide,
            int triangle,
            int op,
            int n,
            int k,
            double alpha,
            MemorySegment a,
            int lda,
            double beta,
            MemorySegment c,
            int ldc)
            implements CublasCall {
        @Override
        public String describe() {
            return "%s of %d x %d".formatted(wide ? "dsyrk" : "ssyrk", n, k);
        }
    }

    /** {@code C = alpha A B + beta C} or {@code alpha B A + beta C} with A symmetric and C m x n. */
    record Symm(
            boolean wide,
            int side,
            int triangle,
            int m,
            int n,
            double alpha,
            MemorySegment a,
            int lda,
            MemorySegment b,
            int ldb,
            double beta,
            MemorySegment c,
            int ldc)
            implements CublasCall {
        @Override
        public String describe() {
            return "%s of %d x %d".formatted(wide ? "dsymm" : "ssymm", n, m);
        }
    }
}
