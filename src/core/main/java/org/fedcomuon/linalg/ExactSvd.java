package org.fedcomuon.linalg;

import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Blas;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Matrix;
import org.fedcomuon.device.MatrixBatch;
import org.fedcomuon.device.Precision;

/**
 * {@code U V^T} of the compact singular value decomposition, computed in the precision of the matrix: to compare with
 * {@link Exact}, for matrices of doubles, and for devices without eigenvectors. Directions whose singular value is
 * zero, up to rounding, are left out instead of being rotated anywhere: the result of a rank-deficient matrix has that
 * rank, and zero gives zero.
 */
public record ExactSvd() implements Orthogonalizer {
    @Override
    public String name() {
        return "exact-svd";
    }

    /** Always fp32. */
    @Override
    public Precision precision() {
        return Precision.FP32;
    }

    @Override
    public Orthogonalizer.Plan plan(Device device, int count, int rows, int cols, ElementType type, ScaleRule scale) {
        return new Decomposition(device, count, rows, cols, type, scale, "");
    }

    /** Prepares it in place of {@link Exact}, for a reason that its path tells. */
    static Orthogonalizer.Plan plan(
            Device device, int count, int rows, int cols, ElementType type, ScaleRule scale, String reason) {
        return new Decomposition(device, count, rows, cols, type, scale, ", because " + reason);
    }

    private static final class Decomposition extends DirectionPlan {
        private final Buffer work;
        private final Buffer u;
        private final Buffer vt;
        private final Buffer s;
        private final Buffer result;
        private final List<Integer> kept = new ArrayList<>();
        private final String reason;

        Decomposition(Device device, int count, int rows, int cols, ElementType type, ScaleRule scale, String reason) {
            super(device, count, rows, cols, type, scale);
            this.reason = reason;
            work = buffer("M", count * size());
            u = buffer("U", (long) rows * side());
            vt = buffer("V^T", (long) side() * cols);
            s = buffer("singular values", side());
            result = buffer("U V^T", count * size());
        }

        @Override
        MatrixBatch direction(Batch m) {
            if (type == ElementType.FLOAT32) {
                device.normalize(
                        1, m, work.batch(m.clients(), size())); // also finds NaN, and keeps tiny ones from vanishing
            } else {
                device.rearrange(
                        MatrixBatch.of(m, rows, cols), MatrixBatch.of(work.batch(m.clients(), size()), rows, cols));
                DoubleSchulz.requireFinite(work, m.clients(), size());
            }
            kept.clear();
            for (int k = 0; k < m.clients(); k++) {
                decompose(k);
            }
            return MatrixBatch.of(result.batch(m.clients(), size()), rows, cols);
        }

        private void decompose(int k) {
            if (size() == 0) {
                kept.add(0);
                return;
            }
            device.solver()
                    .svd(
                            Matrix.of(work, k * size(), rows, cols),
                            s,
                            0,
                            Matrix.of(u, 0, rows, side()),
                            Matrix.of(vt, 0, side(), cols));
            int rank = rank();
            kept.add(rank);
            var out = Matrix.of(result, k * size(), rows, cols);
            if (rank == 0) {
                device.blas()
                        .gemm(
                                Blas.Op.NONE,
                                Blas.Op.NONE,
                                0,
                                Matrix.of(u, 0, rows, side()),
                                Matrix.of(vt, 0, side(), cols),
                                0,
                                out);
            } else if (type == ElementType.FLOAT32) {
                device.multiply(
                        1,
                        new MatrixBatch(u, 0, 1, 0, rows, rank, side(), 1),
                        new MatrixBatch(vt, 0, 1, 0, rank, cols, cols, 1),
                        false,
                        MatrixBatch.of(new Batch(result, k * size(), 1, size(), size()), rows, cols));
            } else {
                device.blas()
                        .gemm(
                                Blas.Op.NONE,
                                Blas.Op.NONE,
                                1,
                                new Matrix(u, 0, rows, rank, side()),
                                new Matrix(vt, 0, rank, cols, cols),
                                0,
                                out);
            }
        }

        /**
         * Returns how many singular values are more than rounding. What is zero comes out as a few units of rounding of
         * the largest, growing like the root of the side; the usual bound grows like the side itself and would call a
         * singular value of 1e-4 zero in a float32 matrix of side 1024.
         */
        private int rank() {
            double epsilon = type == ElementType.FLOAT32 ? Math.ulp(1.0f) : Math.ulp(1.0);
            double[] values = s.toDoubles(0, side());
            double tolerance = 4 * Math.sqrt((double) Math.max(rows, cols)) * epsilon * values[0];
            int rank = 0;
            while (rank < values.length && values[rank] > tolerance) {
                rank++;
            }
            return rank;
        }

        @Override
        public List<Integer> kept() {
            return List.copyOf(kept);
        }

        @Override
        public String path() {
            return device.solver().routine(rows, cols) + reason;
        }
    }
}
