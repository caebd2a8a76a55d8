package org.fedcomuon.device;

import java.util.Arrays;
import java.util.Locale;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;

/**
 * The precision in which a GPU multiplies large matrices of floats; sums are always kept in float32. The narrower ones
 * run on tensor cores and are several times faster, and Newton-Schulz tolerates them: its result is a direction.
 * {@link #FP32} is for comparisons of a GPU with a CPU, and the only one that a CPU has.
 */
public enum Precision {
    /** Every float as it is: 24 bits. */
    FP32(FedComuonNative.FCM_FP32()),
    /** Factors rounded to 11 bits, with the range of a float. */
    TF32(FedComuonNative.FCM_TF32()),
    /** Factors rounded to 8 bits, with the range of a float. */
    BF16(FedComuonNative.FCM_BF16());

    private final int code;

    Precision(int code) {
        this.code = code;
    }

    int code() {
        return code;
    }

    /**
     * Returns the precision of a name, such as {@code tf32}.
     *
     * @throws IllegalArgumentException when there is none; the message lists the names
     */
    public static Precision parse(String name) {
        return Arrays.stream(values())
                .filter(precision -> precision.toString().equals(name))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(
                        "no precision is called '%s'; there are fp32, tf32 and bf16".formatted(name)));
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
