package org.fedcomuon.device;

/**
 * How exactly a GPU multiplies matrices of floats; sums are always kept in float32. The narrower ones run on tensor
 * cores and are several times faster, and Newton-Schulz forgives them: its result is a direction. Whoever compares a
 * GPU with a CPU wants {@link #FP32}.
 */
public enum Precision {
    /** Every float as it is: 24 bits. */
    FP32,
    /** Factors rounded to 11 bits, with the range of a float. */
    TF32,
    /** Factors rounded to 8 bits, with the range of a float. */
    BF16
}
