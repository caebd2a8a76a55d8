package org.fedcomuon.linalg;

import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Matrix;

/**
 * The quality of an orthogonal factor, measured in double precision on a CPU device.
 *
 * @param orthogonalityError {@code ||O O^T - I||_F / sqrt(r)} on the shorter side r; 0 is exact, and a rank lost counts
 * @param alignment {@code <M, O> / ||M||_*}; 1 is the exact factor, the most that any matrix of spectral norm 1
 *     reaches; 0 for a zero matrix
 * @param smallestSingularValue of O
 * @param largestSingularValue of O
 */
public record Quality(
        double orthogonalityError, double alignment, double smallestSingularValue, double largestSingularValue) {
    /** Measures {@code o} against {@code m}, both rows x cols and row-major. */
    public static Quality of(Device device, int rows, int cols, double[] m, double[] o) {
        double nuclear = 0;
        for (double s : singularValues(device, rows, cols, m)) {
            nuclear += s;
        }
        return of(device, rows, cols, m, nuclear, o);
    }

    /** Measures the same with a known {@code ||M||_*}. */
    public static Quality of(Device device, int rows, int cols, double[] m, double nuclearNorm, double[] o) {
        double[] values = singularValues(device, rows, cols, o);
        double squares = 0;
        for (double s : values) {
            squares += (s * s - 1) * (s * s - 1);
        }
        double inner = 0;
        for (int i = 0; i < m.length; i++) {
            inner += m[i] * o[i];
        }
        return new Quality(
                Math.sqrt(squares / values.length),
                nuclearNorm == 0 ? 0 : inner / nuclearNorm,
                values[values.length - 1],
                values[0]);
    }

    private static double[] singularValues(Device device, int rows, int cols, double[] matrix) {
        int side = Math.min(rows, cols);
        try (Buffer work = device.allocate("matrix to judge", ElementType.FLOAT64, matrix.length);
                Buffer s = device.allocate("its singular values", ElementType.FLOAT64, side)) {
            work.copyIn(0, matrix);
            device.solver().singularValues(Matrix.of(work, 0, rows, cols), s, 0);
            return s.toDoubles(0, side);
        }
    }
}
