package org.fedcomuon.model;

import java.util.SplittableRandom;
import java.util.random.RandomGenerator;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.pytorch.MemoryFormatOptional;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Sample;
import org.jspecify.annotations.Nullable;

/**
 * Which activations are left out in one evaluation. The masks come from the sample, so that a second evaluation on the
 * same sample leaves out the same, and not from torch's generator, which all threads share.
 *
 * <p>Of one thread: that of the evaluation.
 */
@SuppressWarnings("exports") // whoever uses tensors has libtorch; others must not need it
public final class Dropout {
    /** Elements are decided by 16 random bits each: four by one number of the generator. */
    private static final int STEPS = 1 << 16;

    private static final int CHUNK = 1 << 14;

    private final @Nullable RandomGenerator random;

    private Dropout(@Nullable RandomGenerator random) {
        this.random = random;
    }

    /** Nothing is left out. */
    public static Dropout none() {
        return new Dropout(null);
    }

    /** The masks of {@code xi}; used for one evaluation, from its first layer to its last. */
    public static Dropout of(Sample xi) {
        return new Dropout(xi.random());
    }

    /**
     * Leaves out elements of {@code x} with probability {@code p}, to the nearest 1/65536, and scales the rest up to
     * the same mean. Each call takes the next mask of the sample, whatever size those before it had.
     */
    public Tensor apply(Tensor x, double p) {
        if (random == null || p == 0) {
            return x;
        }
        int left = (int) Math.round(p * STEPS);
        Tensor mask = mask(x, left, new SplittableRandom(random.nextLong()));
        // Filled, not multiplied: what is kept for the backward pass is a byte an element.
        Tensor here = x.is_cuda() ? mask.to(x.device(), mask.scalar_type()) : mask;
        return x.masked_fill(here, new Scalar(0f)).mul(new Scalar((double) STEPS / (STEPS - left)));
    }

    /** True with probability {@code left / STEPS}. */
    private static Tensor mask(Tensor like, int left, SplittableRandom random) {
        Tensor mask = torch.empty(like.sizes(), new TensorOptions(torch.ScalarType.Bool), new MemoryFormatOptional());
        var memory = new BytePointer(mask.data_ptr());
        var chunk = new byte[CHUNK];
        long size = like.numel();
        for (long at = 0; at < size; at += CHUNK) {
            for (int i = 0; i < CHUNK; i += 4) {
                long bits = random.nextLong();
                chunk[i] = below(bits, left);
                chunk[i + 1] = below(bits >>> 16, left);
                chunk[i + 2] = below(bits >>> 32, left);
                chunk[i + 3] = below(bits >>> 48, left);
            }
            memory.position(at).put(chunk, 0, (int) Math.min(CHUNK, size - at));
        }
        return mask;
    }

    /** 1 if the lowest 16 bits are a number below {@code left}, without a branch that nobody could predict. */
    private static byte below(long bits, int left) {
        return (byte) (((int) (bits & (STEPS - 1)) - left) >>> 31);
    }
}
