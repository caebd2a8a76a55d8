package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.pytorch.Device;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.internal.NativeLimits;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;

/**
 * Named blocks as tensors. Those of a point are views of its memory, made once and used every step: changes on either
 * side show on the other. They are as good as the memory they look at, which may be that of a CUDA device: then so are
 * the tensors.
 *
 * <p>Of one thread at a time, unless all only read.
 */
@SuppressWarnings("exports") // whoever uses tensors has libtorch; others must not need it
public final class Parameters {
    static {
        NativeLimits.lift();
    }

    /** An address that JavaCPP did not allocate and will not free. */
    private static final class Address extends Pointer {
        Address(long address) {
            this.address = address;
        }
    }

    private final Layout layout;
    private final Optional<Device> device; // empty: the CPU
    private final List<Tensor> blocks;

    private Parameters(Layout layout, Optional<Device> device, List<Tensor> blocks) {
        this.layout = layout;
        this.device = device;
        this.blocks = List.copyOf(blocks);
    }

    /** Tensors of any origin on the CPU, one for each block. */
    public Parameters(Layout layout, List<Tensor> blocks) {
        this(layout, Optional.empty(), blocks);
    }

    /** Views of a point. */
    static Parameters of(Point point) {
        Optional<String> name = point.values().device();
        if (name.isEmpty() && !point.values().segment().isNative()) {
            throw new IllegalArgumentException("libtorch cannot look into the Java heap");
        }
        Optional<Device> device = name.map(Device::new);
        Layout layout = point.layout();
        long base = point.values().address();
        var blocks = new ArrayList<Tensor>();
        for (int i = 0; i < layout.blocks().size(); i++) {
            var address = new Address(base + layout.offset(i) * Float.BYTES);
            long[] shape = layout.blocks().get(i).shape().stream()
                    .mapToLong(Integer::longValue)
                    .toArray();
            blocks.add(device.map(there -> torch.from_blob(address, shape, new TensorOptions(there)))
                    .orElseGet(() -> torch.from_blob(address, shape)));
        }
        return new Parameters(layout, device, blocks);
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
        blocks.forEach(block -> block.detach().zero_()); // even if it was differentiated at, elsewhere
    }

    /** What is computed with them can be differentiated from now on. */
    Parameters requireGradient() {
        blocks.forEach(block -> block.set_requires_grad(true));
        return this;
    }

    /** The same numbers, cut off from what they were computed from. */
    Parameters detached() {
        return new Parameters(
                layout, device, blocks.stream().map(Tensor::detach).toList());
    }

    /** {@code this - rate direction}, differentiable. */
    Parameters minus(double rate, TensorVector direction) {
        var moved = new ArrayList<Tensor>();
        for (int i = 0; i < blocks.size(); i++) {
            moved.add(blocks.get(i).sub(direction.get(i), new Scalar(rate)));
        }
        return new Parameters(layout, device, moved);
    }
}
