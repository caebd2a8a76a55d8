package org.fedcomuon.model;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.random.RandomGenerator;
import org.bytedeco.pytorch.DeviceOptional;
import org.bytedeco.pytorch.MemoryFormatOptional;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.problem.Sample;

/**
 * Dropout masks of one evaluation. They are derived from the sample, so that a second evaluation on the same sample has
 * the same masks; torch's generator, which all threads share, is not used. A network may be evaluated for one client,
 * or for several at once, each with the masks of its own sample.
 *
 * <p>Not thread-safe; confined to the thread of the evaluation.
 */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
public final class Dropout {
    /** Each element takes 16 random bits. */
    private static final int STEPS = 1 << 16;

    private static final Dropout NONE = new Dropout(List.of(), MaskMaker.HOST);

    private final List<RandomGenerator> randoms; // by client; empty to keep every element
    private final MaskMaker maker;

    /** Makes masks of bytes; {@link Device#dropoutMask} says which. */
    private sealed interface MaskMaker {
        MaskMaker HOST = new OnHost();

        /** Returns whether the masks are made in the memory of {@code x}. */
        boolean isBeside(Tensor x);

        void make(int left, long[] seeds, MemorySegment masks);
    }

    /** The calling thread makes them, and libtorch copies them to the device of a tensor that is elsewhere. */
    private record OnHost() implements MaskMaker {
        @Override
        public boolean isBeside(Tensor x) {
            return x.is_cpu();
        }

        @Override
        public void make(int left, long[] seeds, MemorySegment masks) {
            Devices.dropoutMask(left, seeds, masks);
        }
    }

    /** The device makes them, in the order of its stream. */
    private record OnDevice(Device device) implements MaskMaker {
        @Override
        public boolean isBeside(Tensor x) {
            return true;
        }

        @Override
        public void make(int left, long[] seeds, MemorySegment masks) {
            device.dropoutMask(left, seeds, masks);
        }
    }

    private Dropout(List<RandomGenerator> randoms, MaskMaker maker) {
        this.randoms = randoms;
        this.maker = maker;
    }

    /** Returns a dropout that keeps every element. */
    public static Dropout none() {
        return NONE;
    }

    /** Returns the masks of the sample {@code xi}, for one evaluation. */
    public static Dropout of(Sample xi) {
        return new Dropout(List.of(xi.random()), MaskMaker.HOST);
    }

    /**
     * Returns the masks of several clients, for one evaluation of all of them, made by the calling thread: every client
     * has those of its sample, as if it were evaluated alone.
     */
    static Dropout of(List<Sample> clients) {
        return new Dropout(clients.stream().map(Sample::random).toList(), MaskMaker.HOST);
    }

    /**
     * Returns the masks of several clients in one evaluation. Each has an equal part of the first dimension of every
     * tensor that they are applied to, and there the masks that its sample would give it alone.
     *
     * @param clients a sample for each client
     * @param device whose memory the tensors are in, and whose stream libtorch computes on; it makes the masks, so that
     *     the evaluation is on its thread
     */
    public static Dropout of(List<Sample> clients, Device device) {
        if (clients.isEmpty()) {
            throw new IllegalArgumentException("masks of no client");
        }
        return new Dropout(clients.stream().map(Sample::random).toList(), new OnDevice(device));
    }

    /**
     * Sets elements of {@code x} to zero with probability {@code p}, rounded to 1/65536, and scales the others so that
     * the mean stays. Each call takes the next mask of the sample, whatever the sizes of the masks before it were. Of
     * several clients, each has an equal part of the first dimension, and the next mask of its own sample there.
     */
    public Tensor apply(Tensor x, double p) {
        if (randoms.isEmpty() || p == 0) {
            return x;
        }
        int left = (int) Math.round(p * STEPS);
        // masked_fill instead of a product: the backward pass keeps one byte per element
        return x.masked_fill(mask(x, left), new Scalar(0f)).mul(new Scalar((double) STEPS / (STEPS - left)));
    }

    /** Returns a mask beside {@code x} whose elements are true with probability {@code left / STEPS}. */
    private Tensor mask(Tensor x, int left) {
        if (randoms.size() > 1 && (x.dim() == 0 || x.size(0) % randoms.size() != 0)) {
            throw new IllegalArgumentException("a tensor of %s for %d clients; each has a part of its first dimension"
                    .formatted(Torch.shape(x), randoms.size()));
        }
        boolean beside = maker.isBeside(x);
        var options = new TensorOptions(torch.ScalarType.Bool);
        Tensor mask = torch.empty(
                x.sizes(),
                beside ? options.device(new DeviceOptional(x.device())) : options,
                new MemoryFormatOptional());
        long[] seeds = randoms.stream().mapToLong(RandomGenerator::nextLong).toArray();
        maker.make(
                left, seeds, MemorySegment.ofAddress(mask.data_ptr().address()).reinterpret(mask.numel()));
        return beside ? mask : mask.to(x.device(), mask.scalar_type());
    }
}
