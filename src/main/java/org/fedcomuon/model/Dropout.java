package org.fedcomuon.model;

import java.util.random.RandomGenerator;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.Sample;
import org.jspecify.annotations.Nullable;

/**
 * Which activations are left out in one evaluation. The masks come from the sample, so that a second evaluation on the
 * same sample leaves out the same, and not from torch's generator, which all threads share.
 */
@SuppressWarnings("exports") // whoever uses tensors has libtorch; others must not need it
public final class Dropout {
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

    /** Leaves out elements of {@code x} with probability {@code p}, and scales the rest up to the same mean. */
    public Tensor apply(Tensor x, double p) {
        if (random == null || p == 0) {
            return x;
        }
        var mask = new float[Math.toIntExact(x.numel())];
        float keep = (float) (1 / (1 - p));
        for (int i = 0; i < mask.length; i++) {
            mask[i] = random.nextDouble() < p ? 0 : keep;
        }
        Tensor scale = Tensor.create(mask).view(x.sizes());
        return x.mul(x.is_cuda() ? scale.to(x.device(), x.scalar_type()) : scale);
    }
}
