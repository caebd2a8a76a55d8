package org.fedcomuon.device;

/** The type of a buffer's elements. */
public enum ElementType {
    /** Weights, gradients, momenta. */
    FLOAT32(Float.BYTES),
    /** Norms, and reference work in double precision. */
    FLOAT64(Double.BYTES),
    /** Exponents of means, unsigned ({@link Device#meanExponents}). No operation on numbers takes them. */
    UINT8(Byte.BYTES),
    /** Sums of means ({@link Device#meanSums}). No operation on numbers takes them. */
    INT64(Long.BYTES);

    private final int bytes;

    ElementType(int bytes) {
        this.bytes = bytes;
    }

    /** Returns the bytes per element. */
    public int bytes() {
        return bytes;
    }

    /** Returns whether the elements are floating-point numbers. */
    public boolean isFloatingPoint() {
        return this == FLOAT32 || this == FLOAT64;
    }
}
