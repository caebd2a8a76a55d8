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
 * Named blocks as tensors. Those of a point are views of its memory, which are made once and used in every step, so
 * that changes on either side are visible on the other. They are valid as long as the memory, which may be that of a
 * CUDA device; then the tensors are on that device.
 *
 * <p>Not thread-safe, except for reading.
 */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
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

    /** Creates parameters from tensors of any origin on the CPU, one for each block. */
    public Parameters(Layout layout, List<Tensor> blocks) {
        this(layout, Optional.empty(), blocks);
    }

    /**
     * Returns views of a point, whose memory is native or a CUDA device's. The calling thread is limited to one thread
     * of libtorch, as all that evaluate are.
     *
     * @throws IllegalArgumentException when the memory is in the Java heap
     */
    public static Parameters of(Point point) {
        Torch.claim();
        Optional<String> name = point.values().device();
        if (name.isEmpty() && !point.values().segment().isNative()) {
            throw new IllegalArgumentException(
                    "a point in the Java heap; libtorch needs native memory, such as that of Floats.zeros");
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

    /** Returns {@code x} on the device of these parameters: a copy on a GPU, itself on the CPU. */
    public Tensor here(Tensor x) {
        return device.map(there -> x.to(there, x.scalar_type())).orElse(x);
    }

    /** Returns the device; empty for the CPU. */
    Optional<Device> device() {
        return device;
    }

    /** Returns the block called {@code name}, in its own shape. */
    public Tensor get(String name) {
        return blocks.get(layout.position(name));
    }

    /** Returns all blocks, in the order of the layout. */
    List<Tensor> blocks() {
        return blocks;
    }

    /** Returns all blocks, for libtorch. */
    TensorVector vector() {
        return new TensorVector(blocks.toArray(Tensor[]::new));
    }

    /** Waits until all writes have completed. */
    void finish() {
        device.ifPresent(there -> torch.cuda_synchronize(there.index()));
    }

    void zero() {
        blocks.forEach(block -> block.detach().zero_()); // even if it was differentiated at, elsewhere
    }

    /** Makes the blocks require gradients. */
    Parameters requireGradient() {
        blocks.forEach(block -> block.set_requires_grad(true));
        return this;
    }

    /** Returns the same values, detached from the graph. */
    Parameters detached() {
        return new Parameters(
                layout, device, blocks.stream().map(Tensor::detach).toList());
    }

    /** Returns {@code this - rate direction}, differentiable. */
    Parameters minus(double rate, TensorVector direction) {
        var moved = new ArrayList<Tensor>();
        for (int i = 0; i < blocks.size(); i++) {
            moved.add(blocks.get(i).sub(direction.get(i), new Scalar(rate)));
        }
        return new Parameters(layout, device, moved);
    }
}
