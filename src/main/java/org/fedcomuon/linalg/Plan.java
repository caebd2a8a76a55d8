package org.fedcomuon.linalg;

import org.fedcomuon.device.Batch;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.MatrixBatch;

/**
 * An {@link Orthogonalizer} made ready for one shape on one device, with its room. Used every step. Of the device's
 * thread. A batch has as many clients as the plan has matrices or fewer, each row-major without gaps.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="orthogonalize"}
 *
 * <p>A zero matrix gives zero. NaN or infinity in a matrix is a {@link DeviceException.NotFinite} whose place names it
 * as {@code client}, and nothing is written then.
 */
public interface Plan extends AutoCloseable {
    /** {@code o = U V^T}; {@code o} may be {@code m} itself. */
    void orthogonalize(Batch m, Batch o);

    /** The same for matrices with strides of their own: column-major, padded, or parts of larger ones. */
    void orthogonalize(MatrixBatch m, MatrixBatch o);

    /** {@code w -= eta scale U V^T}. */
    void step(Batch m, double eta, Batch w);

    /** Which code runs, for logs and reports. */
    String path();

    /** Gives its room back. */
    @Override
    void close();
}
