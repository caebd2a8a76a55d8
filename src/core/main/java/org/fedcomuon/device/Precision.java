package org.fedcomuon.device;

import java.util.Arrays;
import java.util.Locale;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;

/**
 * The precision in which Newton-Schulz multiplies matrices of floats; sums, norms and weights are always in float32 or
 * better. A GPU runs the narrower ones on tensor cores, several times faster, and Newton-Schulz tolerates them: its
 * result is a direction. A CPU rounds in the same way; {@link #BF16} is faster there too if it has
 * {@linkplain InstructionSet#AVX512_BF16 instructions} for it.
 */
public enum Precision {
    /** Every float as it is: 24 bits. */
    FP32(FedComuonNative.FCM_FP32()),
    /** Factors of a product rounded to 11 bits, with the range of a float; everything is stored as it is. */
    TF32(FedComuonNative.FCM_TF32()),
    /** Everything between the division by the norm and the result rounded to 8 bits, with the range of a float. */
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
