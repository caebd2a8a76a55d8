package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.fedcomuon.internal.bindings.openblas.OpenBlasNative;

/**
 * Orthogonal factors on a CPU from the eigenvectors of Gram matrices, by OpenBLAS: matrices side by side, each on one
 * thread, so that the bits do not depend on the number of threads.
 *
 * <p>With the short side n, {@code G = A A^T} is the sum of exact products of floats in double precision. From its
 * eigenvectors V, one in a row, and eigenvalues w follows {@code V^T w^-1/2 V A}. Rounding in G is relative to its
 * largest eigenvalue, so small directions are only roughly right. Where there are any, A is rotated into {@code B = V
 * A}, whose rows are as good as orthogonal, each with its own scale and with the digits that belong to it. In {@code B
 * B^T} nothing large hides what is small, so its inverse root S, to first order in what is beside the diagonal, has
 * twice as many digits as V, and the factor is {@code V^T S B}.
 *
 * <p>Not thread-safe; confined to the device thread.
 */
final class GramFactors implements AutoCloseable {
    /** Eigenvalues below this, relative to the largest, leave an error of more than the rounding of a float. */
    private static final double SMALL = 1e-10;

    private static final int ORDER = OpenBlasNative.CblasRowMajor();
    private static final int UPPER = OpenBlasNative.CblasUpper();

    private final int threads;
    private final ExecutorService workers;

    GramFactors(int threads) {
        this.threads = threads;
        workers = Executors.newFixedThreadPool(
                Math.max(1, threads - 1),
                Thread.ofPlatform().daemon().name("exact-factors-", 0).factory());
    }

    /**
     * Matrices one after the other in memory.
     *
     * @param a the first one, of floats
     * @param o the first result
     * @param stride elements from one to the next of a
     * @param strideO the same of o
     */
    record Operands(MemorySegment a, long stride, MemorySegment o, long strideO, int count, int rows, int cols) {
        int side() {
            return Math.min(rows, cols);
        }

        long size() {
            return (long) rows * cols;
        }
    }

    /** Returns the doubles that {@link #compute} needs as a workspace. */
    static long workspace(int threads, int count, int rows, int cols) {
        return Math.min(threads, count) * perThread(rows, cols);
    }

    private static long perThread(int rows, int cols) {
        long side = Math.min(rows, cols);
        return 2L * rows * cols + 2 * side * side + side + lapackLength(side) + integersLength(side);
    }

    private static long lapackLength(long side) {
        return 1 + 6 * side + 2 * side * side;
    }

    /** In doubles, which hold two integers each. */
    private static long integersLength(long side) {
        return (3 + 5 * side) / 2 + 1;
    }

    /** What one thread works in. */
    private record Workspace(
            MemorySegment x,
            MemorySegment y,
            MemorySegment gram,
            MemorySegment square,
            MemorySegment w,
            MemorySegment lapack,
            MemorySegment integers) {
        static Workspace of(MemorySegment memory, int rows, int cols) {
            long side = Math.min(rows, cols);
            long[] lengths = {
                (long) rows * cols,
                (long) rows * cols,
                side * side,
                side * side,
                side,
                lapackLength(side),
                integersLength(side)
            };
            var parts = new MemorySegment[lengths.length];
            long from = 0;
            for (int i = 0; i < parts.length; i++) {
                parts[i] = memory.asSlice(from * Double.BYTES, lengths[i] * Double.BYTES);
                from += lengths[i];
            }
            return new Workspace(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]);
        }
    }

    /**
     * Computes all factors.
     *
     * @param tolerance directions whose singular value is at most this part of the largest are left out
     * @param kept receives how many directions each matrix has kept
     */
    void compute(Operands all, double tolerance, MemorySegment workspace, long[] kept) {
        int together = Math.min(threads, all.count());
        long bytes = perThread(all.rows(), all.cols()) * Double.BYTES;
        var next = new AtomicInteger();
        var others = new ArrayList<Future<?>>();
        for (int thread = 1; thread < together; thread++) {
            MemorySegment mine = workspace.asSlice(thread * bytes, bytes);
            others.add(workers.submit(() -> take(all, tolerance, mine, next, kept)));
        }
        RuntimeException failure = null;
        try {
            take(all, tolerance, workspace.asSlice(0, bytes), next, kept);
        } catch (RuntimeException e) {
            failure = e;
        }
        for (Future<?> other : others) { // all of them, because they write to the operands
            try {
                other.get();
            } catch (ExecutionException e) {
                failure = e.getCause() instanceof RuntimeException known ? known : new IllegalStateException(e);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                failure = new IllegalStateException("interrupted while matrices are orthogonalized", e);
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    private static void take(Operands all, double tolerance, MemorySegment memory, AtomicInteger next, long[] kept) {
        Workspace workspace = Workspace.of(memory, all.rows(), all.cols());
        for (int k = next.getAndIncrement(); k < all.count(); k = next.getAndIncrement()) {
            kept[k] = factor(all, k, tolerance, workspace);
        }
    }

    /** Computes the factor of matrix k and returns its rank. */
    private static int factor(Operands all, int k, double tolerance, Workspace work) {
        int rows = all.rows();
        int cols = all.cols();
        int n = all.side();
        boolean wide = rows <= cols;
        MemorySegment x = work.x();
        MemorySegment a = all.a().asSlice(k * all.stride() * Float.BYTES, all.size() * Float.BYTES);
        for (long i = 0; i < all.size(); i++) {
            x.setAtIndex(ValueLayout.JAVA_DOUBLE, i, a.getAtIndex(ValueLayout.JAVA_FLOAT, i));
        }
        gram(wide, n, wide ? cols : rows, x, cols, work.gram());
        int info = OpenBlasNative.LAPACKE_dsyevd_work(
                OpenBlasNative.LAPACK_COL_MAJOR(),
                (byte) 'V',
                (byte) 'L', // the upper triangle of a row-major matrix
                n,
                work.gram(),
                n,
                work.w(),
                work.lapack(),
                Math.toIntExact(lapackLength(n)),
                work.integers(),
                3 + 5 * n);
        if (info != 0) {
            throw new DeviceException.Fault(
                    "eigenvectors of matrix %d (%d x %d): dsyevd answered %d".formatted(k, rows, cols, info));
        }
        double largest = work.w().getAtIndex(ValueLayout.JAVA_DOUBLE, n - 1);
        int dropped = 0; // eigenvalues ascend
        while (dropped < n
                && !(work.w().getAtIndex(ValueLayout.JAVA_DOUBLE, dropped) > tolerance * tolerance * largest)) {
            dropped++;
        }
        MemorySegment result = work.y();
        if (dropped == n) {
            result.fill((byte) 0);
        } else if (work.w().getAtIndex(ValueLayout.JAVA_DOUBLE, dropped) < SMALL * largest) {
            rotateAndBack(wide, rows, cols, dropped, work);
            result = x;
        } else {
            root(n, dropped, work);
            apply(wide, rows, cols, work.square(), x, result);
        }
        MemorySegment o = all.o().asSlice(k * all.strideO() * Float.BYTES, all.size() * Float.BYTES);
        for (long i = 0; i < all.size(); i++) {
            o.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) result.getAtIndex(ValueLayout.JAVA_DOUBLE, i));
        }
        return n - dropped;
    }

    /** Computes one triangle of X X^T, n x n with X n x length, or of X^T X where X is tall. */
    private static void gram(boolean wide, int n, int length, MemorySegment x, int stride, MemorySegment gram) {
        OpenBlasNative.cblas_dsyrk(
                ORDER,
                UPPER,
                wide ? OpenBlasNative.CblasNoTrans() : OpenBlasNative.CblasTrans(),
                n,
                length,
                1,
                x,
                stride,
                0,
                gram,
                n);
    }

    /** Computes one triangle of V w^-1/2 V^T over the directions that are kept; eigenvectors are rows of V^T. */
    private static void root(int n, int dropped, Workspace work) {
        MemorySegment vectors = work.gram();
        for (int i = dropped; i < n; i++) {
            double scale = 1 / Math.sqrt(Math.sqrt(work.w().getAtIndex(ValueLayout.JAVA_DOUBLE, i)));
            for (long j = (long) i * n; j < (i + 1L) * n; j++) {
                vectors.setAtIndex(ValueLayout.JAVA_DOUBLE, j, scale * vectors.getAtIndex(ValueLayout.JAVA_DOUBLE, j));
            }
        }
        OpenBlasNative.cblas_dsyrk(
                ORDER,
                UPPER,
                OpenBlasNative.CblasTrans(),
                n,
                n - dropped,
                1,
                vectors.asSlice((long) dropped * n * Double.BYTES),
                n,
                0,
                work.square(),
                n);
    }

    /** Computes {@code out = S X}, or X S where X is tall. */
    private static void apply(boolean wide, int rows, int cols, MemorySegment s, MemorySegment x, MemorySegment out) {
        OpenBlasNative.cblas_dsymm(
                ORDER,
                wide ? OpenBlasNative.CblasLeft() : OpenBlasNative.CblasRight(),
                UPPER,
                rows,
                cols,
                1,
                s,
                Math.min(rows, cols),
                x,
                cols,
                0,
                out,
                cols);
    }

    /** Replaces x by its factor from the eigenvectors that are kept: {@code V^T (B B^T)^-1/2 B} of {@code B = V A}. */
    private static void rotateAndBack(boolean wide, int rows, int cols, int dropped, Workspace work) {
        int n = Math.min(rows, cols);
        int length = Math.max(rows, cols);
        int kept = n - dropped;
        int plain = OpenBlasNative.CblasNoTrans();
        int flipped = OpenBlasNative.CblasTrans();
        MemorySegment vectors = work.gram().asSlice((long) dropped * n * Double.BYTES);
        MemorySegment rotated = work.y(); // kept x length, or length x kept where A is tall
        MemorySegment root = work.square();
        MemorySegment back = work.lapack(); // kept x n
        if (wide) {
            gemm(plain, plain, kept, cols, n, vectors, n, work.x(), cols, rotated, cols);
        } else {
            gemm(plain, flipped, rows, kept, n, work.x(), cols, vectors, n, rotated, kept);
        }
        gram(wide, kept, length, rotated, wide ? cols : kept, root);
        invertRoot(kept, root);
        apply(true, kept, n, root, vectors, back);
        if (wide) {
            gemm(flipped, plain, n, cols, kept, back, n, rotated, cols, work.x(), cols);
        } else {
            gemm(plain, plain, rows, n, kept, rotated, kept, back, n, work.x(), cols);
        }
    }

    private static void gemm(
            int opA,
            int opB,
            int m,
            int n,
            int k,
            MemorySegment a,
            int strideA,
            MemorySegment b,
            int strideB,
            MemorySegment c,
            int strideC) {
        OpenBlasNative.cblas_dgemm(ORDER, opA, opB, m, n, k, 1, a, strideA, b, strideB, 0, c, strideC);
    }

    /** Replaces the upper triangle of a nearly diagonal matrix by that of its inverse root, to first order. */
    private static void invertRoot(int n, MemorySegment c) {
        var roots = new double[n];
        for (int i = 0; i < n; i++) {
            roots[i] = Math.sqrt(c.getAtIndex(ValueLayout.JAVA_DOUBLE, i * (n + 1L)));
        }
        for (int i = 0; i < n; i++) {
            long row = (long) i * n;
            c.setAtIndex(ValueLayout.JAVA_DOUBLE, row + i, 1 / roots[i]);
            for (int j = i + 1; j < n; j++) {
                double here = c.getAtIndex(ValueLayout.JAVA_DOUBLE, row + j);
                c.setAtIndex(ValueLayout.JAVA_DOUBLE, row + j, -here / (roots[i] * roots[j] * (roots[i] + roots[j])));
            }
        }
    }

    @Override
    public void close() {
        workers.close();
    }
}
