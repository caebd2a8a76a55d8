package org.fedcomuon.linalg;

import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Precision;

/**
 * A way to turn a matrix M into its orthogonal factor {@code U V^T}, the direction of a Muon step: {@link ExactSvd}
 * exactly, {@link NewtonSchulz} and {@link GramNewtonSchulz} by iteration, {@link Auto} by whichever iteration suits
 * the shape. Immutable, and free to share between threads and devices.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="orthogonalize"}
 */
public sealed interface Orthogonalizer permits Auto, ExactSvd, GramNewtonSchulz, NewtonSchulz {
    /** What reports call it. */
    String name();

    /** How exactly a GPU multiplies large matrices for it; a CPU takes {@link Precision#FP32} only. */
    Precision precision();

    /**
     * Prepares up to {@code count} matrices of one shape on one device: picks the code to run and takes the room it
     * needs.
     *
     * @param type FLOAT64 only on a CPU, for reference work
     * @throws IllegalArgumentException when this one cannot do it; the message says why
     * @throws DeviceException.Unsupported when the device cannot; the message says why
     */
    Plan plan(Device device, int count, int rows, int cols, ElementType type, ScaleRule scale);
}
