package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.pytorch.Device;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;

/**
 * A point as tensors: one view of its memory for each block, made once and used every step. Changes on either side show
 * on the other. As good as the memory it looks at, which may be that of a CUDA device: then so are the tensors.
 */
@SuppressWarnings("exports") // whoever uses tensors has libtorch; others must not need it
public final class Parameters {
    /** An address that JavaCPP did not allocate and will not free. */
    private static final class Address extends Pointer {
        Address(long address) {
            this.address = address;
        }
    }

    private final Layout layout;
    private final Optional<Device> device; // empty: the CPU
    private final Tensor flat;
    private final List<Tensor> blocks = new ArrayList<>();

    Parameters(Point point) {
        layout = point.layout();
        Optional<String> name = point.values().device();
        if (name.isEmpty() && !point.values().segment().isNative()) {
            throw new IllegalArgumentException("libtorch cannot look into the Java heap");
        }
        device = name.map(Device::new);
        long base = point.values().address();
        flat = view(base, layout.length());
        for (int i = 0; i < layout.blocks().size(); i++) {
            blocks.add(view(
                    base + layout.offset(i) * Float.BYTES,
                    layout.blocks().get(i).shape().stream()
                            .mapToLong(Integer::longValue)
                            .toArray()));
        }
    }

    /** Tensors of any origin on the CPU, one for each block of the layout. */
    public Parameters(Layout layout, List<Tensor> blocks) {
        this.layout = layout;
        this.blocks.addAll(blocks);
        device = Optional.empty();
        flat = new Tensor();
    }

    private Tensor view(long address, long... shape) {
        return device.map(there -> torch.from_blob(new Address(address), shape, new TensorOptions(there)))
                .orElseGet(() -> torch.from_blob(new Address(address), shape));
    }

    /** {@code x} where these parameters are: a copy on a GPU, itself on the CPU. */
    Tensor here(Tensor x) {
        return device.map(there -> x.to(there, x.scalar_type())).orElse(x);
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

    /** Waits until what was written is there. */
    void finish() {
        device.ifPresent(there -> torch.cuda_synchronize(there.index()));
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
