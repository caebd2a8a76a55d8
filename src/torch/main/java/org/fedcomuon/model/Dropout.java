package org.fedcomuon.model;

import java.util.List;
import java.util.SplittableRandom;
import java.util.random.RandomGenerator;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.pytorch.MemoryFormatOptional;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Sample;

/**
 * Dropout masks of one evaluation. They are derived from the sample, so that a second evaluation on the same sample has
 * the same masks; torch's generator, which all threads share, is not used.
 *
 * <p>Not thread-safe; confined to the thread of the evaluation.
 */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
public final class Dropout {
    /** Each element takes 16 random bits; one number of the generator serves four elements. */
    private static final int STEPS = 1 << 16;

    private static final int CHUNK = 1 << 14;

    private final List<RandomGenerator> clients; // none: every element is kept

    private Dropout(List<RandomGenerator> clients) {
        this.clients = clients;
    }

    /** Returns a dropout that keeps every element. */
    public static Dropout none() {
        return new Dropout(List.of());
    }

    /** Returns the masks of the sample {@code xi}, for one evaluation. */
    public static Dropout of(Sample xi) {
        return of(List.of(xi));
    }

    /**
     * Returns the masks of several clients, for one evaluation of all of them: every client has those of its sample, as
     * if it were evaluated alone.
     */
    static Dropout of(List<Sample> xi) {
        return new Dropout(xi.stream().map(Sample::random).toList());
    }

    /**
     * Sets elements of {@code x} to zero with probability {@code p}, rounded to 1/65536, and scales the others so that
     * the mean stays. Each call takes the next mask of the sample, whatever the sizes of the masks before it were. Of
     * several clients, each has an equal part of the first dimension, and the next mask of its own sample there.
     */
    public Tensor apply(Tensor x, double p) {
        if (clients.isEmpty() || p == 0) {
            return x;
        }
        int left = (int) Math.round(p * STEPS);
        long[] seeds = clients.stream().mapToLong(RandomGenerator::nextLong).toArray();
        Tensor mask = mask(x, left, seeds);
        // masked_fill instead of a product: the backward pass keeps one byte per element
        Tensor here = x.is_cuda() ? mask.to(x.device(), mask.scalar_type()) : mask;
        return x.masked_fill(here, new Scalar(0f)).mul(new Scalar((double) STEPS / (STEPS - left)));
    }

    /** Returns a mask whose elements are true with probability {@code left / STEPS}: one part for each seed. */
    private static Tensor mask(Tensor like, int left, long[] seeds) {
        Tensor mask = torch.empty(like.sizes(), new TensorOptions(torch.ScalarType.Bool), new MemoryFormatOptional());
        var memory = new BytePointer(mask.data_ptr());
        var chunk = new byte[CHUNK];
        long size = like.numel() / seeds.length;
        for (int client = 0; client < seeds.length; client++) {
            var random = new SplittableRandom(seeds[client]);
            for (long at = 0; at < size; at += CHUNK) {
                for (int i = 0; i < CHUNK; i += 4) {
                    long bits = random.nextLong();
                    chunk[i] = below(bits, left);
                    chunk[i + 1] = below(bits >>> 16, left);
                    chunk[i + 2] = below(bits >>> 32, left);
                    chunk[i + 3] = below(bits >>> 48, left);
                }
                memory.position(client * size + at).put(chunk, 0, (int) Math.min(CHUNK, size - at));
            }
        }
        return mask;
    }

    /** Returns 1 if the lowest 16 bits are a number below {@code left}, without an unpredictable branch. */
    private static byte below(long bits, int left) {
        return (byte) (((int) (bits & (STEPS - 1)) - left) >>> 31);
    }
}
