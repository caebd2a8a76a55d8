package org.fedcomuon.device;

/** What a buffer holds. */
public enum ElementType {
    /** Weights, gradients, momenta. */
    FLOAT32(Float.BYTES),
    /** Norms, and reference work in double precision. */
    FLOAT64(Double.BYTES);

    private final int bytes;

    ElementType(int bytes) {
        this.bytes = bytes;
    }

    /** Bytes an element. */
    public int bytes() {
        return bytes;
    }
}
