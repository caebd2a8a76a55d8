package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.fedcomuon.internal.bindings.fedcomuon.fcm_matrix_block;

/**
 * The small matrices of a client and the coefficients of each step of Newton-Schulz; a {@link Plan} computes them on a
 * device. Immutable and thread-safe.
 */
public final class NewtonSchulzSpec {
    private final List<Block> blocks;
    private final int steps;
    private final double divisor;
    private final MemorySegment table;
    private final MemorySegment coefficients;

    /**
     * @param blocks the matrices of a client, mixed shapes, each with a short side of at most {@link #longestSide}
     * @param steps one tuple per step
     * @param divisor what the input is divided by besides its norm; 1 for nothing
     */
    public NewtonSchulzSpec(List<Block> blocks, List<Step> steps, double divisor) {
        this.blocks = List.copyOf(blocks);
        this.steps = steps.size();
        this.divisor = divisor;
        Arena arena = Arena.ofAuto();
        table = fcm_matrix_block.allocateArray(Math.max(1, blocks.size()), arena);
        for (int i = 0; i < blocks.size(); i++) {
            Block block = blocks.get(i);
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
            Step step = steps.get(i);
            coefficients.setAtIndex(ValueLayout.JAVA_DOUBLE, 3L * i, step.a());
            coefficients.setAtIndex(ValueLayout.JAVA_DOUBLE, 3L * i + 1, step.b());
            coefficients.setAtIndex(ValueLayout.JAVA_DOUBLE, 3L * i + 2, step.c());
        }
    }

    /** Returns the longest short side that a small matrix may have. */
    public static int longestSide() {
        return FedComuonNative.FCM_SMALL_SIDE();
    }

    /** Returns the matrices of a client. */
    public List<Block> blocks() {
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

    /**
     * One matrix of every client, row-major and contiguous. Offsets count elements from the client's start in the
     * momentum, the result and the weights.
     *
     * @param scale the block's learning-rate scale, 1 for none
     */
    public record Block(long rows, long cols, long momentumOffset, long resultOffset, long weightOffset, double scale) {
        /** Returns a block at the same offset in the momentum, the result and the weights, without a scale. */
        public static Block at(long offset, long rows, long cols) {
            return new Block(rows, cols, offset, offset, offset, 1.0);
        }
    }

    /** The coefficients of one Newton-Schulz step: {@code X = a X + b (X X^T) X + c (X X^T)^2 X}. */
    public record Step(double a, double b, double c) {
        public Step {
            if (!Double.isFinite(a) || !Double.isFinite(b) || !Double.isFinite(c)) {
                throw new IllegalArgumentException("coefficients (%s, %s, %s) must be finite".formatted(a, b, c));
            }
        }
    }

    /**
     * Newton-Schulz prepared on a device: its tables are there, and its workspace is allocated, so that a step is the
     * work itself. Not thread-safe; confined to the device thread.
     */
    public static final class Plan implements AutoCloseable {
        private final NativeDevice device;
        private final NewtonSchulzSpec what;
        private final PreparedWorkspace workspace;

        Plan(NativeDevice device, NewtonSchulzSpec what, PreparedWorkspace workspace) {
            this.device = device;
            this.what = what;
            this.workspace = workspace;
        }

        /**
         * Orthogonalizes every matrix of every client; {@code o} may be {@code m} itself.
         *
         * @throws DeviceException.NotFinite when a matrix has NaN or infinity; nothing is written then
         */
        public void orthogonalize(Batch m, Batch o) {
            device.newtonSchulz(what, workspace, m, o);
        }

        /** Computes {@code W -= eta scale O} with the O of {@link #orthogonalize}, which is not stored. */
        public void step(Batch m, double eta, Batch w) {
            device.newtonSchulzStep(what, workspace, m, eta, w);
        }

        /** Frees the workspace. Closing twice does nothing. */
        @Override
        public void close() {
            workspace.close();
        }
    }
}
