package org.fedcomuon.bench;

import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Precision;

/** Requires that contenders compute the same weights: times of different results say nothing. */
final class SameWeights {
    /** Relative: five jordan steps amplify a rounding error about 500 times. */
    private static final double TOLERANCE = 1e-3;

    /** What five jordan steps in bf16 may leave of small singular values. */
    private static final double NARROW_TOLERANCE = 0.2;

    private SameWeights() {}

    /** Requires all weights to be the same up to the rounding of this precision. */
    static void require(Buffer ours, Buffer theirs, Precision precision) {
        require(
                ours,
                theirs.toFloats(0, (int) theirs.length()),
                0,
                precision == Precision.FP32 ? TOLERANCE : NARROW_TOLERANCE);
    }

    /** Requires the weights from {@code offset} on to be the same. */
    static void require(Buffer ours, float[] theirs, long offset) {
        require(ours, theirs, offset, TOLERANCE);
    }

    private static void require(Buffer ours, float[] theirs, long offset, double tolerance) {
        float[] mine = ours.toFloats(offset, theirs.length);
        double difference = 0;
        double whole = 0;
        for (int i = 0; i < theirs.length; i++) {
            difference += ((double) mine[i] - theirs[i]) * ((double) mine[i] - theirs[i]);
            whole += (double) theirs[i] * theirs[i];
        }
        if (!(difference <= tolerance * tolerance * whole)) {
            throw new IllegalStateException(
                    "the two sides disagree: %.3g of %.3g".formatted(Math.sqrt(difference), Math.sqrt(whole)));
        }
    }
}
