package org.fedcomuon.device;

import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;

/**
 * The vector instructions that the CPU kernels use. Element-wise operations and sums are bit-identical with each of
 * them; Newton-Schulz is bit-identical with {@link #AVX2}, {@link #AVX512} and {@link #AVX512_BF16}.
 */
public enum InstructionSet {
    /** The best this CPU has. */
    AUTO(FedComuonNative.FCM_ISA_AUTO()),
    /** The instructions that every CPU of the architecture has. */
    BASELINE(FedComuonNative.FCM_ISA_BASELINE()),
    /** AVX2 with fused multiply-add. */
    AVX2(FedComuonNative.FCM_ISA_AVX2()),
    /** AVX-512 F, DQ, BW and VL. */
    AVX512(FedComuonNative.FCM_ISA_AVX512()),
    /** The same with AVX512-BF16, which multiplies in {@link Precision#BF16} what the others emulate. */
    AVX512_BF16(FedComuonNative.FCM_ISA_AVX512_BF16());

    private final int code;

    InstructionSet(int code) {
        this.code = code;
    }

    int code() {
        return code;
    }

    static InstructionSet of(int code) {
        for (InstructionSet set : values()) {
            if (set.code == code) {
                return set;
            }
        }
        throw new IllegalArgumentException("no instruction set " + code);
    }
}
