package org.fedcomuon.experiment;

import java.util.Arrays;
import java.util.Random;
import org.fedcomuon.device.Blas;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Matrix;

/** Matrices that are made for a comparison: with known singular values, and singular vectors as random as any. */
final class MadeMatrix {
    private MadeMatrix() {}

    /** Returns singular values from 1 down to 1 / condition, evenly spaced on a logarithmic scale. */
    static double[] spectrum(int count, double condition) {
        var values = new double[count];
        for (int i = 0; i < count; i++) {
            values[i] = Math.pow(condition, count == 1 ? 0 : -(double) i / (count - 1));
        }
        return values;
    }

    /** Returns {@code U diag(s) V^T} in double precision, U and V those of a matrix of normal numbers. */
    static double[] of(Device device, Compare.Shape shape, double[] spectrum) {
        int rows = shape.rows();
        int cols = shape.cols();
        int side = spectrum.length;
        var random = new Random(42);
        var normal = new double[rows * cols];
        Arrays.setAll(normal, ignored -> random.nextGaussian());
        try (Buffer a = device.allocate("A", ElementType.FLOAT64, normal.length);
                Buffer s = device.allocate("s", ElementType.FLOAT64, side);
                Buffer u = device.allocate("U", ElementType.FLOAT64, (long) rows * side);
                Buffer vt = device.allocate("V^T", ElementType.FLOAT64, (long) side * cols)) {
            a.copyIn(0, normal);
            Matrix left = Matrix.of(u, 0, rows, side);
            Matrix right = Matrix.of(vt, 0, side, cols);
            device.solver().svd(Matrix.of(a, 0, rows, cols), s, 0, left, right);
            double[] scaled = u.toDoubles(0, rows * side);
            for (int i = 0; i < scaled.length; i++) {
                scaled[i] *= spectrum[i % side];
            }
            u.copyIn(0, scaled);
            device.blas().gemm(Blas.Op.NONE, Blas.Op.NONE, 1, left, right, 0, Matrix.of(a, 0, rows, cols));
            return a.toDoubles(0, normal.length);
        }
    }

    /** Returns the nearest floats. */
    static float[] floats(double[] values) {
        var floats = new float[values.length];
        for (int i = 0; i < floats.length; i++) {
            floats[i] = (float) values[i];
        }
        return floats;
    }
}
