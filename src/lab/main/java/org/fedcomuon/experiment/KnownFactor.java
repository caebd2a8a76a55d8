package org.fedcomuon.experiment;

import java.util.Arrays;
import org.fedcomuon.device.Blas;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Matrix;
import org.fedcomuon.linalg.Exact;

/**
 * The singular value decomposition of a matrix of floats in double precision, and with it the polar factor of these
 * very floats: what every way to orthogonalize them is judged by.
 *
 * <p>Only directions above {@link Exact#TOLERANCE} count: the others cannot be told from the rounding of the matrix, so
 * that nobody knows where they point.
 */
final class KnownFactor {
    private final int rows;
    private final int cols;
    private final double[] singularValues;
    private final int directions;
    private final double norm;
    /** U of the matrix, or of its transpose if it is tall, row-major. */
    private final double[] left;
    /** V^T of the same. */
    private final double[] right;

    private KnownFactor(int rows, int cols, double[] singularValues, double[] left, double[] right) {
        this.rows = rows;
        this.cols = cols;
        this.singularValues = singularValues;
        this.left = left;
        this.right = right;
        directions = (int) Arrays.stream(singularValues)
                .filter(s -> s > Exact.TOLERANCE * singularValues[0])
                .count();
        norm = Math.sqrt(Arrays.stream(singularValues).map(s -> s * s).sum());
    }

    /**
     * Decomposes a matrix.
     *
     * @param host a CPU
     * @param values row-major
     */
    static KnownFactor of(Device host, int rows, int cols, float[] values) {
        var wide = new double[values.length];
        for (int i = 0; i < values.length; i++) {
            wide[i] = values[i];
        }
        int side = Math.min(rows, cols);
        int length = Math.max(rows, cols);
        try (Buffer a = host.allocate("A", ElementType.FLOAT64, wide.length);
                Buffer s = host.allocate("s", ElementType.FLOAT64, side);
                Buffer u = host.allocate("U", ElementType.FLOAT64, (long) side * side);
                Buffer vt = host.allocate("V^T", ElementType.FLOAT64, wide.length)) {
            a.copyIn(0, lying(rows, cols, wide));
            host.solver()
                    .svd(
                            Matrix.of(a, 0, side, length),
                            s,
                            0,
                            Matrix.of(u, 0, side, side),
                            Matrix.of(vt, 0, side, length));
            return new KnownFactor(
                    rows, cols, s.toDoubles(0, side), u.toDoubles(0, side * side), vt.toDoubles(0, wide.length));
        }
    }

    /** Returns the matrix, or its transpose if it has more rows than columns. */
    private static double[] lying(int rows, int cols, double[] values) {
        if (rows <= cols) {
            return values;
        }
        var turned = new double[values.length];
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < cols; j++) {
                turned[j * rows + i] = values[i * cols + j];
            }
        }
        return turned;
    }

    /** Returns all singular values, largest first. */
    double[] singularValues() {
        return singularValues.clone();
    }

    /** Returns how many directions can be told from rounding; 0 of a zero matrix. */
    int directions() {
        return directions;
    }

    /** Returns the Frobenius norm. */
    double norm() {
        return norm;
    }

    /** Returns the sum of the singular values. */
    double nuclearNorm() {
        return Arrays.stream(singularValues).sum();
    }

    /**
     * Returns how far a result O is from the polar factor in each direction, that of the largest singular value first:
     * the norm of {@code u^T O - v^T}, which is the distance of a singular value from 1 where the directions are right.
     *
     * @param host a CPU
     * @param o row-major
     */
    double[] errors(Device host, double[] o) {
        int side = Math.min(rows, cols);
        int length = Math.max(rows, cols);
        try (Buffer u = host.allocate("U", ElementType.FLOAT64, left.length);
                Buffer result = host.allocate("O", ElementType.FLOAT64, o.length);
                Buffer product = host.allocate("U^T O", ElementType.FLOAT64, o.length)) {
            u.copyIn(0, left);
            result.copyIn(0, lying(rows, cols, o));
            host.blas()
                    .gemm(
                            Blas.Op.TRANSPOSE,
                            Blas.Op.NONE,
                            1,
                            Matrix.of(u, 0, side, side),
                            Matrix.of(result, 0, side, length),
                            0,
                            Matrix.of(product, 0, side, length));
            double[] rotated = product.toDoubles(0, o.length);
            var errors = new double[directions];
            for (int i = 0; i < directions; i++) {
                double squares = 0;
                for (int j = 0; j < length; j++) {
                    double difference = rotated[i * length + j] - right[i * length + j];
                    squares += difference * difference;
                }
                errors[i] = Math.sqrt(squares);
            }
            return errors;
        }
    }
}
