package org.fedcomuon.internal.vendor;

import java.lang.foreign.MemorySegment;

/**
 * A decomposition by cuSOLVER with all its arguments: column-major, economy size. A {@link CusolverBinding} only passes
 * it on. {@code vectors} false leaves U and V alone, whatever they are.
 */
public sealed interface CusolverCall {
    /** Returns the library's name of the routine, without the letter of the precision. */
    String function();

    int m();

    int n();

    /** Returns whether the matrices hold doubles, not floats. */
    boolean wide();

    /** Returns whether singular vectors are wanted too. */
    boolean vectors();

    /** Returns the operation and its sizes, for messages. */
    default String describe() {
        return "%s of %d x %d".formatted(function(), n(), m());
    }

    /** By QR iteration, m >= n; VT is V^T. */
    record Gesvd(
            boolean wide,
            boolean vectors,
            int m,
            int n,
            MemorySegment a,
            int lda,
            MemorySegment s,
            MemorySegment u,
            int ldu,
            MemorySegment vt,
            int ldvt)
            implements CusolverCall {
        @Override
        public String function() {
            return "gesvd";
        }
    }

    /** By Jacobi rotations. */
    record Gesvdj(
            boolean wide,
            boolean vectors,
            int m,
            int n,
            MemorySegment a,
            int lda,
            MemorySegment s,
            MemorySegment u,
            int ldu,
            MemorySegment v,
            int ldv)
            implements CusolverCall {
        @Override
        public String function() {
            return "gesvdj";
        }
    }

    /** By Jacobi rotations, {@code batch} matrices of floats up to 32 x 32 without gaps; U is m x m and V n x n. */
    record GesvdjBatched(
            int m,
            int n,
            MemorySegment a,
            int lda,
            MemorySegment s,
            MemorySegment u,
            int ldu,
            MemorySegment v,
            int ldv,
            int batch)
            implements CusolverCall {
        @Override
        public boolean wide() {
            return false;
        }

        @Override
        public boolean vectors() {
            return true;
        }

        @Override
        public String function() {
            return "gesvdjBatched";
        }

        @Override
        public String describe() {
            return "%d %s of %d x %d".formatted(batch, function(), n, m);
        }
    }

    /** By polar decomposition. */
    record Gesvdp(
            boolean wide,
            boolean vectors,
            int m,
            int n,
            MemorySegment a,
            int lda,
            MemorySegment s,
            MemorySegment u,
            int ldu,
            MemorySegment v,
            int ldv)
            implements CusolverCall {
        @Override
        public String function() {
            return "gesvdp";
        }
    }

    /**
     * Eigenvectors, in place of A, and eigenvalues, ascending, of {@code batch} symmetric matrices without gaps; of
     * each the triangle below the diagonal is read.
     */
    record SyevBatched(boolean wide, int n, MemorySegment a, MemorySegment w, int batch) implements CusolverCall {
        @Override
        public int m() {
            return n;
        }

        @Override
        public boolean vectors() {
            return true;
        }

        @Override
        public String function() {
            return "syevBatched";
        }

        @Override
        public String describe() {
            return "%d %s of %d x %d".formatted(batch, function(), n, n);
        }
    }

    /** {@code A = U H}, m >= n, with U in place of A. */
    record Polar(boolean wide, int m, int n, MemorySegment a, int lda, MemorySegment h, int ldh)
            implements CusolverCall {
        @Override
        public boolean vectors() {
            return true;
        }

        @Override
        public String function() {
            return "polar";
        }
    }
}
