package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.pytorch.Device;
import org.bytedeco.pytorch.MemoryFormatOptional;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.internal.NativeLimits;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.JointOracle.Points;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;

/**
 * Named blocks as tensors. Those of a point are views of its memory, which are made once and used in every step, so
 * that changes on either side are visible on the other. They are valid as long as the memory, which may be that of a
 * CUDA device; then the tensors are on that device.
 *
 * <p>Those of several {@linkplain #clients() clients} have one more dimension, the first one, which counts clients; see
 * {@link Network#takesSeveralClients}.
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
    private final OptionalInt clients;
    private final Optional<Tensor> all; // of a point or of points: every block in one tensor
    private final List<Tensor> blocks;

    private Parameters(
            Layout layout, Optional<Device> device, OptionalInt clients, Optional<Tensor> all, List<Tensor> blocks) {
        this.layout = layout;
        this.device = device;
        this.clients = clients;
        this.all = all;
        this.blocks = List.copyOf(blocks);
    }

    /** Creates parameters of one client from tensors of any origin on the CPU, one for each block. */
    public Parameters(Layout layout, List<Tensor> blocks) {
        this(layout, Optional.empty(), OptionalInt.empty(), Optional.empty(), blocks);
    }

    /**
     * Returns views of a point, whose memory is native or a CUDA device's. The calling thread is limited to one thread
     * of libtorch, as all that evaluate are.
     *
     * @throws IllegalArgumentException when the memory is in the Java heap
     */
    public static Parameters of(Point point) {
        return of(point.layout(), point.values(), OptionalInt.empty(), 0);
    }

    /** Returns views of the points of several clients, under the same conditions. */
    static Parameters of(Points points) {
        return of(points.layout(), points.values(), OptionalInt.of(points.count()), points.stride());
    }

    private static Parameters of(Layout layout, Floats values, OptionalInt clients, long stride) {
        Torch.claim();
        Optional<String> name = values.device();
        if (name.isEmpty() && !values.segment().isNative()) {
            throw new IllegalArgumentException(
                    "a point in the Java heap; libtorch needs native memory, such as that of Floats.zeros");
        }
        Optional<Device> device = name.map(Device::new);
        var blocks = new ArrayList<Tensor>();
        for (int i = 0; i < layout.blocks().size(); i++) {
            long[] shape = layout.blocks().get(i).shape().stream()
                    .mapToLong(Integer::longValue)
                    .toArray();
            blocks.add(view(values.address() + layout.offset(i) * Float.BYTES, shape, device, clients, stride));
        }
        Tensor all = view(values.address(), new long[] {layout.length()}, device, clients, stride);
        return new Parameters(layout, device, clients, Optional.of(all), blocks);
    }

    /** Returns a view of floats in row-major order, with another dimension before the others if there are clients. */
    private static Tensor view(long at, long[] shape, Optional<Device> device, OptionalInt clients, long stride) {
        var address = new Address(at);
        if (clients.isEmpty()) {
            return device.map(there -> torch.from_blob(address, shape, new TensorOptions(there)))
                    .orElseGet(() -> torch.from_blob(address, shape));
        }
        var sizes = new long[shape.length + 1];
        var strides = new long[shape.length + 1];
        sizes[0] = clients.getAsInt();
        strides[0] = stride;
        long size = 1;
        for (int i = shape.length; i > 0; i--) {
            sizes[i] = shape[i - 1];
            strides[i] = size;
            size *= sizes[i];
        }
        return device.map(there -> torch.from_blob(address, sizes, strides, new TensorOptions(there)))
                .orElseGet(() -> torch.from_blob(address, sizes, strides));
    }

    /** Returns a view of a vector, in native memory or that of a CUDA device. */
    static Tensor vector(Floats values) {
        return view(
                values.address(),
                new long[] {values.length()},
                values.device().map(Device::new),
                OptionalInt.empty(),
                0);
    }

    /**
     * Returns {@code x} on the device of these parameters: a copy on a GPU, itself on the CPU. The copy is queued like
     * everything else, which takes a copy in pinned memory; from other memory libtorch would wait for it.
     */
    public Tensor here(Tensor x) {
        return device.map(there -> x.is_cuda()
                        ? x
                        : x.pin_memory().to(there, x.scalar_type(), true, false, new MemoryFormatOptional()))
                .orElse(x);
    }

    /**
     * Returns how many clients these are the parameters of, if the blocks have a dimension for clients; empty for those
     * of one client, whose blocks have the shapes of the layout.
     */
    public OptionalInt clients() {
        return clients;
    }

    /** Returns the device; empty for the CPU. */
    Optional<Device> device() {
        return device;
    }

    /** Returns the block called {@code name}: in its own shape, after the number of {@link #clients} if there are. */
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

    /** Sets all blocks of all clients to zero, in one operation; only for views of points. */
    void zero() {
        all.orElseThrow().zero_();
    }

    /** Makes the blocks require gradients. */
    Parameters requireGradient() {
        blocks.forEach(block -> block.set_requires_grad(true));
        return this;
    }

    /** Returns the same values, detached from the graph. */
    Parameters detached() {
        return new Parameters(
                layout,
                device,
                clients,
                Optional.empty(),
                blocks.stream().map(Tensor::detach).toList());
    }

    /** Returns {@code this - rate direction}, differentiable. */
    Parameters minus(double rate, TensorVector direction) {
        var moved = new ArrayList<Tensor>();
        for (int i = 0; i < blocks.size(); i++) {
            moved.add(blocks.get(i).sub(direction.get(i), new Scalar(rate)));
        }
        return new Parameters(layout, device, clients, Optional.empty(), moved);
    }
}
