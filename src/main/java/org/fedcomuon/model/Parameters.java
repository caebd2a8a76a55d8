package org.fedcomuon.model;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;

/**
 * A point as tensors: one view of its memory for each block, made once and used every step. Changes on either side show
 * on the other. As good as the memory it looks at.
 */
@SuppressWarnings("exports") // whoever uses tensors has libtorch; others must not need it
public final class Parameters {
    /** An address that JavaCPP did not allocate and will not free. */
    private static final class Address extends Pointer {
        Address(MemorySegment memory) {
            this.address = memory.address();
        }
    }

    private final Layout layout;
    private final Tensor flat;
    private final List<Tensor> blocks = new ArrayList<>();

    Parameters(Point point) {
        layout = point.layout();
        MemorySegment memory = point.values().segment();
        if (!memory.isNative()) {
            throw new IllegalArgumentException("libtorch cannot look into the Java heap");
        }
        flat = torch.from_blob(new Address(memory), layout.length());
        for (int i = 0; i < layout.blocks().size(); i++) {
            Block block = layout.blocks().get(i);
            MemorySegment part = memory.asSlice(layout.offset(i) * Float.BYTES, block.size() * Float.BYTES);
            blocks.add(torch.from_blob(
                    new Address(part),
                    block.shape().stream().mapToLong(Integer::longValue).toArray()));
        }
    }

    /** The block called {@code name}, in its own shape. */
    public Tensor get(String name) {
        return blocks.get(layout.position(name));
    }

    /** All blocks, in the order of the layout. */
    List<Tensor> blocks() {
        return blocks;
    }

    /** All blocks, for libtorch. */
    TensorVector vector() {
        return new TensorVector(blocks.toArray(Tensor[]::new));
    }

    void zero() {
        flat.zero_();
    }

    /** What is computed with them can be differentiated from now on. */
    Parameters requireGradient() {
        blocks.forEach(block -> block.set_requires_grad(true));
        return this;
    }
}
