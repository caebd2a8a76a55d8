package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.fedcomuon.internal.bindings.fedcomuon.fcm_matrix_block;
import org.fedcomuon.internal.bindings.fedcomuon.fcm_schulz;

/**
 * The matrices of a client and the iteration of Newton-Schulz; a {@link Plan} computes it on a device, for all matrices
 * of all clients in a few launches. Immutable and thread-safe.
 */
public final class NewtonSchulzSpec {
    private final List<Block> blocks;
    private final MemorySegment table;
    private final MemorySegment iteration;

    /**
     * @param blocks the matrices of a client, of mixed shapes
     * @param steps one tuple per step
     * @param divisor what the input is divided by besides its norm; 1 for nothing
     * @param restarts of the blocks in Gram form: after which steps, counted from 1 and ascending
     * @param precision of the products
     */
    public NewtonSchulzSpec(
            List<Block> blocks, List<Step> steps, double divisor, List<Integer> restarts, Precision precision) {
        this.blocks = List.copyOf(blocks);
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
            fcm_matrix_block.gram(entry, block.gram() ? 1 : 0);
        }
        MemorySegment coefficients = arena.allocate(ValueLayout.JAVA_DOUBLE, Math.max(1, 3L * steps.size()));
        for (int i = 0; i < steps.size(); i++) {
            Step step = steps.get(i);
            coefficients.setAtIndex(ValueLayout.JAVA_DOUBLE, 3L * i, step.a());
            coefficients.setAtIndex(ValueLayout.JAVA_DOUBLE, 3L * i + 1, step.b());
            coefficients.setAtIndex(ValueLayout.JAVA_DOUBLE, 3L * i + 2, step.c());
        }
        iteration = fcm_schulz.allocate(arena);
        fcm_schulz.coefficients(iteration, coefficients);
        fcm_schulz.steps(iteration, steps.size());
        fcm_schulz.divisor(iteration, divisor);
        fcm_schulz.restarts(
                iteration,
                arena.allocateFrom(
                        ValueLayout.JAVA_LONG,
                        restarts.stream().mapToLong(Integer::longValue).toArray()));
        fcm_schulz.restart_count(iteration, restarts.size());
        fcm_schulz.precision(iteration, precision.code());
    }

    /** Creates one in fp32, without restarts. */
    public NewtonSchulzSpec(List<Block> blocks, List<Step> steps, double divisor) {
        this(blocks, steps, divisor, List.of(), Precision.FP32);
    }

    /** Returns the longest short side of the matrices whose whole iteration is one kernel. */
    public static int longestSide() {
        return FedComuonNative.FCM_SMALL_SIDE();
    }

    /** Returns the matrices of a client. */
    public List<Block> blocks() {
        return blocks;
    }

    MemorySegment table() {
        return table;
    }

    MemorySegment iteration() {
        return iteration;
    }

    /**
     * One matrix of every client, row-major and contiguous. Offsets count elements from the client's start in the
     * momentum, the result and the weights.
     *
     * @param scale the block's learning-rate scale, 1 for none
     * @param gram whether it iterates on the Gram matrix
     */
    public record Block(
            long rows,
            long cols,
            long momentumOffset,
            long resultOffset,
            long weightOffset,
            double scale,
            boolean gram) {
        /** Creates one that iterates on the matrix itself. */
        public Block(long rows, long cols, long momentumOffset, long resultOffset, long weightOffset, double scale) {
            this(rows, cols, momentumOffset, resultOffset, weightOffset, scale, false);
        }

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
