package org.fedcomuon.linalg;

import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Blas;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Matrix;
import org.fedcomuon.device.MatrixBatch;
import org.fedcomuon.device.NewtonSchulzSpec;

/** Newton-Schulz in double precision, for reference work: plain products, a matrix at a time. */
final class DoubleSchulz extends DirectionPlan {
    /** Elements that are looked at together: no kernel looks at doubles. */
    private static final int PIECE = 1 << 16;

    private final Coefficients coefficients;
    private final Buffer x;
    private final Buffer y;
    private final Buffer gram;
    private final Buffer poly;
    private final Buffer result;

    DoubleSchulz(Device device, int count, int rows, int cols, ScaleRule scale, Coefficients coefficients) {
        super(device, count, rows, cols, ElementType.FLOAT64, scale);
        this.coefficients = coefficients;
        x = buffer("X", size());
        y = buffer("Y", size());
        gram = buffer("A", (long) side() * side());
        poly = buffer("B", (long) side() * side());
        result = buffer("O", count * size());
    }

    /** The first NaN or infinity of {@code count} matrices is an error that names it. */
    static void requireFinite(Buffer values, long count, long size) {
        long all = count * size;
        for (long from = 0; from < all; from += PIECE) {
            double[] piece = values.toDoubles(from, (int) Math.min(PIECE, all - from));
            for (int i = 0; i < piece.length; i++) {
                if (!Double.isFinite(piece[i])) {
                    long at = from + i;
                    throw new DeviceException.NotFinite(
                            "matrix %d is not finite at element %d".formatted(at / size, at % size),
                            new Device.Position(at / size, -1, at % size));
                }
            }
        }
    }

    @Override
    MatrixBatch direction(Batch m) {
        MatrixBatch all = MatrixBatch.of(result.batch(m.clients(), size()), rows, cols);
        device.rearrange(MatrixBatch.of(m, rows, cols), all);
        requireFinite(result, m.clients(), size());
        for (int k = 0; k < m.clients() && size() > 0; k++) {
            iterate(k);
        }
        requireFinite(result, m.clients(), size());
        return all;
    }

    private void iterate(int k) {
        Blas blas = device.blas();
        normalize(k);
        Matrix a = Matrix.of(gram, 0, side(), side());
        Matrix b = Matrix.of(poly, 0, side(), side());
        Buffer from = x;
        Buffer to = y;
        for (NewtonSchulzSpec.Step step : coefficients.steps()) {
            Matrix in = Matrix.of(from, 0, rows, cols);
            Matrix out = Matrix.of(to, 0, rows, cols);
            boolean wide = rows <= cols;
            blas.gemm(
                    wide ? Blas.Op.NONE : Blas.Op.TRANSPOSE, wide ? Blas.Op.TRANSPOSE : Blas.Op.NONE, 1, in, in, 0, a);
            poly.copyFrom(gram, 0, 0, gram.length());
            blas.gemm(Blas.Op.NONE, Blas.Op.NONE, step.c(), a, a, step.b(), b);
            to.copyFrom(from, 0, 0, size());
            blas.gemm(Blas.Op.NONE, Blas.Op.NONE, 1, wide ? b : in, wide ? in : b, step.a(), out);
            Buffer swap = from;
            from = to;
            to = swap;
        }
        result.copyFrom(from, 0, k * size(), size());
    }

    /** Scaled by the largest element first: squares of 1e300 leave the range. */
    private void normalize(int k) {
        double[] values = result.toDoubles(k * size(), Math.toIntExact(size()));
        double largest = 0;
        for (double value : values) {
            largest = Math.max(largest, Math.abs(value));
        }
        double sum = 0;
        for (int i = 0; i < values.length && largest > 0; i++) {
            values[i] /= largest;
            sum += values[i] * values[i];
        }
        double norm = Math.sqrt(sum) * coefficients.divisor();
        for (int i = 0; i < values.length && norm > 0; i++) {
            values[i] /= norm;
        }
        x.copyIn(0, values);
    }

    @Override
    public String path() {
        return "double-precision products";
    }
}
