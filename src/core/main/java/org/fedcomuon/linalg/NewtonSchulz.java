package org.fedcomuon.linalg;

import java.util.List;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.MatrixBatch;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.Precision;

/**
 * {@code X = M / ||M||}, then {@code X = a X + b (X X^T) X + c (X X^T)^2 X} for each tuple. The iteration of a small
 * matrix is one kernel; larger ones are products that use symmetry, those of all clients together.
 *
 * @param precision of the products
 * @param products what multiplies large matrices; small ones have their kernel with each
 */
public record NewtonSchulz(Coefficients coefficients, Precision precision, Products products)
        implements Orthogonalizer {
    /** Creates one that computes by our kernels. */
    public NewtonSchulz(Coefficients coefficients, Precision precision) {
        this(coefficients, precision, Products.KERNELS);
    }

    /** Creates one that computes in fp32. */
    public NewtonSchulz(Coefficients coefficients) {
        this(coefficients, Precision.FP32);
    }

    @Override
    public String name() {
        return "newton-schulz " + coefficients + AbstractPlan.inWords(precision, products);
    }

    @Override
    public Orthogonalizer.Plan plan(Device device, int count, int rows, int cols, ElementType type, ScaleRule scale) {
        AbstractPlan.requireFp32(type, precision);
        if (type == ElementType.FLOAT64) {
            return new DoubleSchulz(device, count, rows, cols, scale, coefficients);
        }
        AbstractPlan.requireProducts(device, products);
        return products == Products.CUBLAS && Math.min(rows, cols) > NewtonSchulzSpec.longestSide()
                ? new Multiplied(device, count, rows, cols, scale, coefficients, precision)
                : new OneCall(device, count, rows, cols, scale, coefficients, List.of(), precision, false);
    }

    /** Three products a step by a library, sums folded in. */
    private static final class Multiplied extends DirectionPlan {
        private final Coefficients coefficients;
        private final Precision precision;
        private final MatrixBatch roomX;
        private final MatrixBatch roomY;
        private final MatrixBatch roomGram;
        private final MatrixBatch roomPoly;

        Multiplied(
                Device device,
                int count,
                int rows,
                int cols,
                ScaleRule scale,
                Coefficients coefficients,
                Precision precision) {
            super(device, count, rows, cols, ElementType.FLOAT32, scale);
            this.coefficients = coefficients;
            this.precision = precision;
            roomX = matrices("X");
            roomY = matrices("Y");
            roomGram = squares("X X^T");
            roomPoly = squares("b A + c A A");
        }

        @Override
        MatrixBatch direction(Batch m) {
            MatrixBatch x = first(m.clients(), roomX);
            MatrixBatch y = first(m.clients(), roomY);
            MatrixBatch gram = first(m.clients(), roomGram);
            MatrixBatch poly = first(m.clients(), roomPoly);
            device.normalize(coefficients.divisor(), m, batch(x));
            for (NewtonSchulzSpec.Step step : coefficients.steps()) {
                boolean wide = rows <= cols;
                device.multiply(precision, 1, wide ? x : x.transpose(), wide ? x.transpose() : x, true, gram);
                MatrixBatch b = gram;
                double factor = step.b();
                if (step.c() != 0) {
                    device.multiply(precision, step.c(), gram, gram, step.b(), gram, true, poly);
                    b = poly;
                    factor = 1;
                }
                device.multiply(precision, factor, wide ? b : x, wide ? x : b, step.a(), x, false, y);
                MatrixBatch swap = x;
                x = y;
                y = swap;
            }
            device.requireFinite(batch(x), m); // coefficients may drive it out of range
            return x;
        }

        @Override
        public String path() {
            return productsBy(precision);
        }
    }
}
