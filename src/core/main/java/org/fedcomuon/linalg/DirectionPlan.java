package org.fedcomuon.linalg;

import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.MatrixBatch;

/**
 * A plan that computes U V^T in a workspace of its own, and copies it or steps along it in the end, so that the result
 * may be M itself.
 */
abstract class DirectionPlan extends AbstractPlan {
    DirectionPlan(Device device, int count, int rows, int cols, ElementType type, ScaleRule scale) {
        super(device, count, rows, cols, type, scale);
    }

    /** Computes U V^T of {@code m}, whose shape has been checked; valid until the next call. */
    abstract MatrixBatch direction(Batch m);

    @Override
    public final void orthogonalize(Batch m, Batch o) {
        requireShape(m);
        requireShape(o);
        device.rearrange(direction(m), MatrixBatch.of(o, rows, cols));
    }

    @Override
    public final void step(Batch m, double eta, Batch w) {
        if (type != ElementType.FLOAT32) {
            throw new IllegalArgumentException("weights are float32");
        }
        requireShape(m);
        requireShape(w);
        device.vectorStep(eta * scale(), batch(direction(m)), w);
    }
}
