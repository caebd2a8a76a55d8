package org.fedcomuon.device;

/** The type of a buffer's elements. */
public enum ElementType {
    /** Weights, gradients, momenta. */
    FLOAT32(Float.BYTES),
    /** Norms, and reference work in double precision. */
    FLOAT64(Double.BYTES);

    private final int bytes;

    ElementType(int bytes) {
        this.bytes = bytes;
    }

    /** Returns the bytes per element. */
    public int bytes() {
        return bytes;
    }
}
