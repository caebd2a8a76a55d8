package org.fedcomuon.linalg;

import java.util.List;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.Precision;

/** Newton-Schulz of all matrices of a shape in one native call, the step fused. */
final class OneCall extends AbstractPlan {
    private final NewtonSchulzSpec.Plan plan;
    private final String path;

    OneCall(
            Device device,
            int count,
            int rows,
            int cols,
            ScaleRule scale,
            Coefficients coefficients,
            List<Integer> restarts,
            Precision precision,
            boolean gram) {
        super(device, count, rows, cols, ElementType.FLOAT32, scale);
        boolean small = !gram && side() <= NewtonSchulzSpec.longestSide();
        path = (small ? "one-call kernel" : gram ? "Gram form, symmetric products" : "symmetric products")
                + (precision == Precision.FP32 ? "" : " in " + precision);
        var block = new NewtonSchulzSpec.Block(rows, cols, 0, 0, 0, scale(), gram);
        plan = own(device.plan(
                new NewtonSchulzSpec(List.of(block), coefficients.steps(), coefficients.divisor(), restarts, precision),
                count));
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
        return path;
    }
}
