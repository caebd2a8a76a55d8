package org.fedcomuon.linalg;

import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.MatrixBatch;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.Precision;

/**
 * Newton-Schulz on the square {@code R = X X^T} alone: the long side is touched only at restarts and at the end, which
 * wins from twice as long as wide on. It squares the condition number, so that small singular directions lose digits
 * with every step; a restart, {@code X = Q X}, takes them back. Schedules with more than {@value #LONGEST_RUN} steps
 * between restarts are refused.
 *
 * @param restarts after which steps, counted from 1 and ascending
 * @param precision of the products
 * @param products what multiplies
 */
public record GramNewtonSchulz(
        Coefficients coefficients, List<Integer> restarts, Precision precision, Products products)
        implements Orthogonalizer {
    /** The number of steps that rounding allows between two restarts in single precision. */
    public static final int LONGEST_RUN = 3;

    public GramNewtonSchulz {
        restarts = List.copyOf(restarts);
        int from = 0;
        for (int restart : restarts) {
            if (restart <= from || restart >= coefficients.steps().size()) {
                throw new IllegalArgumentException("restarts %s do not ascend within %d steps"
                        .formatted(restarts, coefficients.steps().size()));
            }
            requireShort(restart - from);
            from = restart;
        }
        requireShort(coefficients.steps().size() - from);
    }

    /** Creates one that computes in fp32. */
    public GramNewtonSchulz(Coefficients coefficients, List<Integer> restarts) {
        this(coefficients, restarts, Precision.FP32, Products.KERNELS);
    }

    /** Creates one with a restart after step 2 and every three steps from there. */
    public GramNewtonSchulz(Coefficients coefficients, Precision precision, Products products) {
        this(coefficients, usualRestarts(coefficients.steps().size()), precision, products);
    }

    /** Creates the same that computes by our kernels. */
    public GramNewtonSchulz(Coefficients coefficients, Precision precision) {
        this(coefficients, precision, Products.KERNELS);
    }

    /** Creates the same in fp32. */
    public GramNewtonSchulz(Coefficients coefficients) {
        this(coefficients, Precision.FP32);
    }

    private static void requireShort(int run) {
        if (run > LONGEST_RUN) {
            throw new IllegalArgumentException(
                    "%d steps without a restart: the Gram form bears %d".formatted(run, LONGEST_RUN));
        }
    }

    private static List<Integer> usualRestarts(int steps) {
        var restarts = new ArrayList<Integer>();
        for (int at = 2; at < steps; at += LONGEST_RUN) {
            restarts.add(at);
        }
        return restarts;
    }

    @Override
    public String name() {
        return "gram " + coefficients + AbstractPlan.inWords(precision, products);
    }

    @Override
    public Orthogonalizer.Plan plan(Device device, int count, int rows, int cols, ElementType type, ScaleRule scale) {
        if (type != ElementType.FLOAT32) {
            throw new IllegalArgumentException("the Gram form is for float32; exact and newton-schulz take float64");
        }
        AbstractPlan.requireProducts(device, products);
        return products == Products.CUBLAS
                ? new Squares(device, count, rows, cols, scale)
                : new OneCall(device, count, rows, cols, scale, coefficients, restarts, precision, true);
    }

    /** The products by a library. */
    private final class Squares extends DirectionPlan {
        private final List<MatrixBatch> rooms;
        // The parts of the workspaces that a call uses, according to its number of clients.
        private MatrixBatch x;
        private MatrixBatch y;
        private MatrixBatch r;
        private MatrixBatch q;
        private MatrixBatch z;
        private MatrixBatch spare;
        private MatrixBatch identity;

        Squares(Device device, int count, int rows, int cols, ScaleRule scale) {
            super(device, count, rows, cols, ElementType.FLOAT32, scale);
            x = matrices("X");
            y = matrices("Y");
            r = squares("R");
            q = squares("Q");
            z = squares("Z");
            spare = squares("R Z");
            long square = (long) side() * side();
            var one = buffer("I", square);
            for (int i = 0; i < side(); i++) {
                one.copyIn((long) i * side() + i, 1f);
            }
            // The same one for every client: stride 0.
            identity = new MatrixBatch(one, 0, count, 0, side(), side(), Math.max(1, side()), 1);
            rooms = List.of(x, y, r, q, z, spare, identity);
        }

        private void take(long clients) {
            x = first(clients, rooms.get(0));
            y = first(clients, rooms.get(1));
            r = first(clients, rooms.get(2));
            q = first(clients, rooms.get(3));
            z = first(clients, rooms.get(4));
            spare = first(clients, rooms.get(5));
            identity = first(clients, rooms.get(6));
        }

        @Override
        MatrixBatch direction(Batch m) {
            take(m.clients());
            device.normalize(coefficients.divisor(), m, batch(x));
            int from = 0;
            for (int restart : restarts) {
                run(coefficients.steps().subList(from, restart));
                from = restart;
            }
            run(coefficients.steps().subList(from, coefficients.steps().size()));
            device.requireFinite(batch(x), m); // coefficients may drive it out of range
            return x;
        }

        /** R = X X^T, Q = I; the steps; X = Q X. */
        private void run(List<NewtonSchulzSpec.Step> steps) {
            boolean wide = rows <= cols;
            device.multiply(precision, 1, wide ? x : x.transpose(), wide ? x.transpose() : x, true, r);
            for (int i = 0; i < steps.size(); i++) {
                NewtonSchulzSpec.Step step = steps.get(i);
                device.multiply(precision, step.c(), r, r, step.b(), r, true, z); // Z = b R + c R R
                if (i == 0) {
                    plusIdentity(step.a());
                } else {
                    device.multiply(precision, 1, q, z, step.a(), q, true, spare); // Q = Q Z + a Q
                    MatrixBatch swap = q;
                    q = spare;
                    spare = swap;
                }
                if (i + 1 < steps.size()) {
                    device.multiply(precision, 1, r, z, step.a(), r, true, spare); // R Z + a R
                    device.multiply(precision, 1, z, spare, step.a(), spare, true, r); // R = Z (R Z) + a (R Z)
                }
            }
            device.multiply(precision, 1, wide ? q : x, wide ? x : q, false, y);
            MatrixBatch swap = x;
            x = y;
            y = swap;
        }

        /** Q = I Z + a I, without the product. */
        private void plusIdentity(double a) {
            q.buffer().copyFrom(z.buffer(), 0, 0, q.clients() * q.stride());
            device.vectorStep(-a, batch(identity), batch(q));
        }

        @Override
        public String path() {
            return "Gram form, " + productsBy(precision);
        }
    }
}
