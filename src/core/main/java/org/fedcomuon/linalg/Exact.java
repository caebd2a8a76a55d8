package org.fedcomuon.linalg;

import java.util.Arrays;
import java.util.List;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.MatrixBatch;
import org.fedcomuon.device.Precision;

/**
 * {@code U V^T} of the compact singular value decomposition, from the eigenvectors of the Gram matrix on the short side
 * in double precision. For matrices of floats this is more accurate than an SVD in single precision by up to four
 * orders of magnitude, because products of floats are exact in double, and faster, because the long side is only
 * multiplied ({@link ExactSvd} is there to compare with).
 *
 * <p>Directions whose singular value is at most {@code tolerance} times the largest are left out instead of being
 * rotated anywhere: the result has the rank of what is kept, and zero gives zero. {@link Orthogonalizer.Plan#kept}
 * tells how many were kept.
 *
 * <p>Matrices of doubles, and devices whose library has no eigenvectors, are done as {@link ExactSvd} does them;
 * {@link Orthogonalizer.Plan#path} says why.
 *
 * @param tolerance relative to the largest singular value
 */
public record Exact(double tolerance) implements Orthogonalizer {
    /**
     * What cannot be told from the rounding of a matrix of floats: rounding of its elements moves singular values by at
     * most 6e-8 of the largest.
     */
    public static final double TOLERANCE = 1e-7;

    /** Creates one with {@link #TOLERANCE}. */
    public Exact() {
        this(TOLERANCE);
    }

    public Exact {
        if (!(tolerance >= 0 && tolerance < 1)) {
            throw new IllegalArgumentException(
                    "a tolerance of %s: from 0 to less than 1 is needed".formatted(tolerance));
        }
    }

    @Override
    public String name() {
        return "exact";
    }

    /** Always fp32: what is computed in double precision is rounded once. */
    @Override
    public Precision precision() {
        return Precision.FP32;
    }

    @Override
    public Orthogonalizer.Plan plan(Device device, int count, int rows, int cols, ElementType type, ScaleRule scale) {
        if (type != ElementType.FLOAT32) {
            return ExactSvd.plan(device, count, rows, cols, type, scale, "matrices are of doubles");
        }
        return device.solver()
                .factorObstacle()
                .map(obstacle -> ExactSvd.plan(device, count, rows, cols, type, scale, obstacle))
                .orElseGet(() -> new Factors(device, count, rows, cols, scale, tolerance));
    }

    private static final class Factors extends DirectionPlan {
        private final double tolerance;
        private final Buffer workspace;
        private final Buffer result;
        private final Buffer kept;
        private int last; // the matrices of the last call

        Factors(Device device, int count, int rows, int cols, ScaleRule scale, double tolerance) {
            super(device, count, rows, cols, ElementType.FLOAT32, scale);
            this.tolerance = tolerance;
            workspace =
                    buffer("eigenvectors", ElementType.FLOAT64, device.solver().factorWorkspace(count, rows, cols));
            result = buffer("U V^T", count * size());
            kept = buffer("kept directions", ElementType.INT64, count);
        }

        @Override
        MatrixBatch direction(Batch m) {
            device.requireFinite(m);
            last = Math.toIntExact(m.clients());
            MatrixBatch all = MatrixBatch.of(result.batch(m.clients(), size()), rows, cols);
            device.solver().orthogonalFactors(MatrixBatch.of(m, rows, cols), tolerance, all, workspace, kept);
            return all;
        }

        /** The counts are on the device, which has to be waited for. */
        @Override
        public List<Integer> kept() {
            return Arrays.stream(kept.toLongs(0, last))
                    .mapToObj(Math::toIntExact)
                    .toList();
        }

        @Override
        public String path() {
            return "eigenvectors of the Gram matrix in double precision";
        }
    }
}
