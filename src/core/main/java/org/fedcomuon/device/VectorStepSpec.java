package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.fedcomuon.internal.bindings.fedcomuon.fcm_vector_block;

/**
 * The vectors of a client and the rule by which they step; a {@link Plan} steps all of them at once on a device.
 * Immutable and thread-safe.
 */
public final class VectorStepSpec {
    private final List<Block> blocks;
    private final Device.StepRule rule;
    private final MemorySegment table;

    /** Creates one for the {@code blocks} of a client. */
    public VectorStepSpec(List<Block> blocks, Device.StepRule rule) {
        this.blocks = List.copyOf(blocks);
        this.rule = rule;
        table = fcm_vector_block.allocateArray(Math.max(1, blocks.size()), Arena.ofAuto());
        for (int i = 0; i < blocks.size(); i++) {
            Block block = blocks.get(i);
            MemorySegment entry = fcm_vector_block.asSlice(table, i);
            fcm_vector_block.n(entry, block.length());
            fcm_vector_block.m_offset(entry, block.momentumOffset());
            fcm_vector_block.w_offset(entry, block.weightOffset());
            fcm_vector_block.scale(entry, block.scale());
        }
    }

    /** Returns the vectors of a client. */
    public List<Block> blocks() {
        return blocks;
    }

    Device.StepRule rule() {
        return rule;
    }

    MemorySegment table() {
        return table;
    }

    /**
     * One vector of every client. Offsets count elements from the client's start in the momentum and the weights.
     *
     * @param scale the block's learning-rate scale, 1 for none
     */
    public record Block(long length, long momentumOffset, long weightOffset, double scale) {}

    /**
     * The steps prepared on a device: its tables are there, and its workspace is allocated. Not thread-safe; confined
     * to the device thread.
     */
    public static final class Plan implements AutoCloseable {
        private final NativeDevice device;
        private final VectorStepSpec what;
        private final PreparedWorkspace workspace;

        Plan(NativeDevice device, VectorStepSpec what, PreparedWorkspace workspace) {
            this.device = device;
            this.what = what;
            this.workspace = workspace;
        }

        /**
         * Computes {@code w -= eta scale m}, or {@code w -= eta scale m / ||m||} with the norm of each vector, for
         * every vector of every client.
         *
         * @throws DeviceException.NotFinite when the rule needs a norm and m has NaN or infinity; nothing is written
         *     then
         */
        public void step(Batch m, double eta, Batch w) {
            device.vectorSteps(what, workspace, m, eta, w);
        }

        /** Frees the workspace. Closing twice does nothing. */
        @Override
        public void close() {
            workspace.close();
        }
    }
}
