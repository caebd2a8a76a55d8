package org.fedcomuon.format;

/**
 * The type of a tensor's elements, by its name in safetensors. The format has more; these are the ones that are
 * computed with, or that files to be converted contain. Half precision types are not converted when they are read.
 */
public enum Dtype {
    /** Weights, gradients, momenta. */
    F32(4),
    /** Norms, and reference work in double precision. */
    F64(8),
    /** Counters, and states of random generators. */
    I64(8),
    /** Indices. */
    I32(4),
    /** Labels, pixels, bytes of any meaning. */
    U8(1),
    /** The upper half of an {@link #F32}. */
    BF16(2),
    /** IEEE 754 half precision. */
    F16(2);

    private final int bytes;

    Dtype(int bytes) {
        this.bytes = bytes;
    }

    /** Returns the bytes per element. */
    public int bytes() {
        return bytes;
    }
}
