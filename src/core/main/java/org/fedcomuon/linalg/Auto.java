package org.fedcomuon.linalg;

import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.Precision;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * {@link GramNewtonSchulz} for large matrices at least twice as long as wide, {@link NewtonSchulz} otherwise. The
 * choice is in {@link Orthogonalizer.Plan#path} and in the log.
 *
 * <p>The choice depends on the shape alone, so it is the same everywhere. It is never {@link Exact}: {@code fedcomuon
 * bench exact-vs-ns} has no shape where that is faster than five steps, or than as many as bring all singular values to
 * within 1e-3 of 1, and it gives another factor than these coefficients.
 *
 * @param precision of the products
 * @param products what multiplies large matrices
 */
public record Auto(Coefficients coefficients, Precision precision, Products products) implements Orthogonalizer {
    /**
     * How many times as long as wide. The suite finds the Gram form level at 4/3 and ahead at 3/2; it squares the
     * condition number, though, which has to pay.
     */
    private static final long GRAM_FROM = 2;

    private static final Logger LOG = LoggerFactory.getLogger(Orthogonalizer.class);

    /** Creates one that computes by our kernels. */
    public Auto(Coefficients coefficients, Precision precision) {
        this(coefficients, precision, Products.KERNELS);
    }

    /** Creates one that computes in fp32. */
    public Auto(Coefficients coefficients) {
        this(coefficients, Precision.FP32);
    }

    @Override
    public String name() {
        return "auto " + coefficients + AbstractPlan.inWords(precision, products);
    }

    /** Returns the orthogonalizer that {@link #plan} will use. */
    public Orthogonalizer pick(int rows, int cols, ElementType type) {
        int side = Math.min(rows, cols);
        boolean gram = type == ElementType.FLOAT32
                && side > NewtonSchulzSpec.longestSide()
                && Math.max(rows, cols) >= GRAM_FROM * side;
        return gram
                ? new GramNewtonSchulz(coefficients, precision, products)
                : new NewtonSchulz(coefficients, precision, products);
    }

    @Override
    public Orthogonalizer.Plan plan(Device device, int count, int rows, int cols, ElementType type, ScaleRule scale) {
        Orthogonalizer.Plan plan = pick(rows, cols, type).plan(device, count, rows, cols, type, scale);
        LOG.debug("{} x {} on {}: {}", rows, cols, device.name(), plan.path());
        return plan;
    }
}
