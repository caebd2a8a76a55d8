package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
import java.util.function.UnaryOperator;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Held against libtorch's, to the bit. */
class MaxPoolIT {
    /** Few different values, so that there are many ties; zeros of both signs, infinities and NaN among them. */
    private static float[] values(int count, boolean nan) {
        var some = new float[] {-1, -0.0f, 0.0f, 1, 2, Float.NEGATIVE_INFINITY, 0.5f, nan ? Float.NaN : 3};
        var random = new SplittableRandom(1);
        var values = new float[count];
        for (int i = 0; i < count; i++) {
            values[i] = random.nextInt(4) == 0 ? (float) random.nextGaussian() : some[random.nextInt(some.length)];
        }
        return values;
    }

    private static float[] floats(Tensor tensor) {
        var values = new float[Math.toIntExact(tensor.numel())];
        tensor.contiguous().data_ptr_float().get(values);
        return values;
    }

    /** The result, and the gradient of the sum of its products with other numbers. */
    private static float[][] of(UnaryOperator<Tensor> pool, float[] values, boolean last, long... shape) {
        Torch.claim();
        try (var _ = new PointerScope()) {
            Tensor leaf = Tensor.create(values).view(shape).detach().set_requires_grad(true);
            Tensor pooled = pool.apply(last ? leaf.contiguous(torch.MemoryFormat.ChannelsLast) : leaf);
            Tensor factors = torch.arange(new Scalar((double) pooled.numel())).view(pooled.sizes());
            pooled.mul(factors).sum().backward();
            return new float[][] {floats(pooled), floats(leaf.grad())};
        }
    }

    @ParameterizedTest
    @CsvSource({
        "3, 2, 8, 8, false, false",
        "1, 1, 2, 2, false, false",
        "2, 3, 7, 5, false, false",
        "20, 6, 24, 24, false, false",
        "2, 3, 6, 8, true, false",
        "2, 3, 6, 8, true, true",
        "2, 3, 6, 8, false, true",
    })
    void isLibtorchsToTheBit(int count, int channels, int rows, int cols, boolean nan, boolean last) {
        float[] values = values(count * channels * rows * cols, nan);
        long[] shape = {count, channels, rows, cols};
        float[][] ours = of(MaxPool::of, values, last, shape);
        float[][] theirs = of(x -> torch.max_pool2d(x, 2, 2), values, last, shape);
        for (int i = 0; i < 2; i++) {
            assertThat(bits(ours[i])).isEqualTo(bits(theirs[i]));
        }
    }

    /** Without it the above would hold libtorch's against itself. */
    @Test
    void isNotLibtorchs() {
        Torch.claim();
        try (var _ = new PointerScope()) {
            Tensor leaf = torch.ones(1, 1, 4, 4).set_requires_grad(true);
            assertThat(cameFrom(torch.max_pool2d(leaf, 2, 2))).contains("MaxPool");
            assertThat(cameFrom(MaxPool.of(leaf))).doesNotContain("MaxPool");
            assertThat(cameFrom(MaxPool.of(leaf.to(torch.ScalarType.Double)))).contains("MaxPool");
        }
    }

    private static String cameFrom(Tensor result) {
        return result.grad_fn().name().getString();
    }

    private static int[] bits(float[] values) {
        var bits = new int[values.length];
        for (int i = 0; i < bits.length; i++) {
            bits[i] = Float.floatToIntBits(values[i]);
        }
        return bits;
    }
}
