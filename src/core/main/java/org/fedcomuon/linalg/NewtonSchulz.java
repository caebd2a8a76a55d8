package org.fedcomuon.linalg;

import java.util.List;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.MatrixBatch;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.Precision;

/**
 * {@code X = M / ||M||}, then {@code X = a X + b (X X^T) X + c (X X^T)^2 X} for each tuple. Small matrices go to the
 * kernel that does it all in one call, larger ones to products that use symmetry.
 *
 * @param precision of the products of large matrices; the kernel for small ones computes in fp32 always
 */
public record NewtonSchulz(Coefficients coefficients, Precision precision) implements Orthogonalizer {
    /** Creates one that computes in fp32. */
    public NewtonSchulz(Coefficients coefficients) {
        this(coefficients, Precision.FP32);
    }

    @Override
    public String name() {
        return "newton-schulz " + coefficients + AbstractPlan.inWords(precision);
    }

    @Override
    public Orthogonalizer.Plan plan(Device device, int count, int rows, int cols, ElementType type, ScaleRule scale) {
        AbstractPlan.requirePrecision(device, type, precision);
        if (type == ElementType.FLOAT64) {
            return new DoubleSchulz(device, count, rows, cols, scale, coefficients);
        }
        return Math.min(rows, cols) <= NewtonSchulzSpec.longestSide()
                ? new OneCall(device, count, rows, cols, scale, coefficients)
                : new Products(device, count, rows, cols, scale, coefficients, precision);
    }

    /** The whole iteration of all matrices in one native call, the step fused. */
    private static final class OneCall extends AbstractPlan {
        private final NewtonSchulzSpec.Plan plan;

        OneCall(Device device, int count, int rows, int cols, ScaleRule scale, Coefficients coefficients) {
            super(device, count, rows, cols, ElementType.FLOAT32, scale);
            var block = new NewtonSchulzSpec.Block(rows, cols, 0, 0, 0, scale());
            plan = own(device.plan(
                    new NewtonSchulzSpec(List.of(block), coefficients.steps(), coefficients.divisor()), count));
        }

        @Override
        public void orthogonalize(Batch m, Batch o) {
            requireShape(m);
            requireShape(o);
            plan.orthogonalize(m, o);
        }

        @Override
        public void step(Batch m, double eta, Batch w) {
            requireShape(m);
            requireShape(w);
            plan.step(m, eta, w);
        }

        @Override
        public String path() {
            return "one-call kernel";
        }
    }

    /** Three products a step, one triangle of the two that are symmetric, sums folded in. */
    private static final class Products extends DirectionPlan {
        private final Coefficients coefficients;
        private final Precision precision;
        private final MatrixBatch roomX;
        private final MatrixBatch roomY;
        private final MatrixBatch roomGram;
        private final MatrixBatch roomPoly;

        Products(
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
            return products(precision);
        }
    }
}
