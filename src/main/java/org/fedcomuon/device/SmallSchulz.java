package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.fedcomuon.internal.bindings.fedcomuon.fcm_matrix_block;

/**
 * What {@link Device#newtonSchulz} and {@link Device#newtonSchulzStep} are to do: which matrices a client has and the
 * coefficients of each step. Immutable: made once and used every step, on any device.
 */
public final class SmallSchulz {
    private final List<MatrixBlock> blocks;
    private final int steps;
    private final double divisor;
    private final MemorySegment table;
    private final MemorySegment coefficients;

    /**
     * @param blocks the matrices of a client, mixed shapes, each with a short side of at most {@link #longestSide}
     * @param steps one tuple a step
     * @param divisor what the input is divided by besides its norm; 1 for nothing
     */
    public SmallSchulz(List<MatrixBlock> blocks, List<SchulzStep> steps, double divisor) {
        this.blocks = List.copyOf(blocks);
        this.steps = steps.size();
        this.divisor = divisor;
        Arena arena = Arena.ofAuto();
        table = fcm_matrix_block.allocateArray(Math.max(1, blocks.size()), arena);
        for (int i = 0; i < blocks.size(); i++) {
            MatrixBlock block = blocks.get(i);
            MemorySegment entry = fcm_matrix_block.asSlice(table, i);
            fcm_matrix_block.rows(entry, block.rows());
            fcm_matrix_block.cols(entry, block.cols());
            fcm_matrix_block.m_offset(entry, block.momentumOffset());
            fcm_matrix_block.o_offset(entry, block.resultOffset());
            fcm_matrix_block.w_offset(entry, block.weightOffset());
            fcm_matrix_block.scale(entry, block.scale());
        }
        coefficients = arena.allocate(ValueLayout.JAVA_DOUBLE, Math.max(1, 3L * steps.size()));
        for (int i = 0; i < steps.size(); i++) {
            SchulzStep step = steps.get(i);
            coefficients.setAtIndex(ValueLayout.JAVA_DOUBLE, 3L * i, step.a());
            coefficients.setAtIndex(ValueLayout.JAVA_DOUBLE, 3L * i + 1, step.b());
            coefficients.setAtIndex(ValueLayout.JAVA_DOUBLE, 3L * i + 2, step.c());
        }
    }

    /** The longest short side of a matrix that is small. */
    public static int longestSide() {
        return FedComuonNative.FCM_SMALL_SIDE();
    }

    /** The matrices of a client. */
    public List<MatrixBlock> blocks() {
        return blocks;
    }

    int steps() {
        return steps;
    }

    double divisor() {
        return divisor;
    }

    MemorySegment table() {
        return table;
    }

    MemorySegment coefficients() {
        return coefficients;
    }
}
