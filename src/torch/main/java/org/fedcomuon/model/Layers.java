package org.fedcomuon.model;

import java.util.List;
import org.bytedeco.pytorch.LongOptional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptional;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Block;

/**
 * Layers as functions of parameters, to write a {@link Network} with. A layer is known by its name: those with
 * parameters have a function that returns their blocks, {@code name.weight} and so on, for the layout, and one that
 * applies them. All have derivatives of second order. Layers without parameters that are not here, such as
 * {@code torch.relu}, are libtorch's.
 *
 * <p>For example: {@snippet file="org/fedcomuon/model/OwnNetworkIT.java" region="network"}
 *
 * <p>Thread-safe.
 */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
public final class Layers {
    /** The usual value: far below any variance and far above rounding errors. */
    private static final double EPSILON = 1e-5;

    private Layers() {}

    /** Returns the blocks of {@link #dense}: a matrix of {@code out x in} and a bias. */
    public static List<Block> denseBlocks(String layer, int in, int out) {
        return List.of(Block.matrix(layer + ".weight", out, in), Block.vector(layer + ".bias", out));
    }

    /** Returns {@code x W^T + b} over the last dimension. */
    public static Tensor dense(Parameters p, String layer, Tensor x) {
        return torch.linear(x, p.get(layer + ".weight"), p.get(layer + ".bias"));
    }

    /** Returns the blocks of {@link #convolution}: a kernel of {@code out x in x kernel x kernel} and a bias. */
    public static List<Block> convolutionBlocks(String layer, int in, int out, int kernel) {
        return List.of(Block.kernel(layer + ".weight", out, in, kernel, kernel), Block.vector(layer + ".bias", out));
    }

    /** Applies a convolution to images of {@code examples x channels x rows x cols}. */
    public static Tensor convolution(Parameters p, String layer, Tensor x, int stride, int padding) {
        return torch.conv2d(
                x,
                p.get(layer + ".weight"),
                new TensorOptional(p.get(layer + ".bias")),
                new long[] {stride, stride},
                new long[] {padding, padding},
                new long[] {1, 1},
                1);
    }

    /** Returns the blocks of {@link #norm} and {@link #groupNorm}: a gain, which is initially one, and a shift. */
    public static List<Block> normBlocks(String layer, int width) {
        return List.of(Block.vector(layer + ".gain", width), Block.vector(layer + ".shift", width));
    }

    /** Applies layer normalisation over the last dimension. */
    public static Tensor norm(Parameters p, String layer, Tensor x) {
        Tensor gain = p.get(layer + ".gain");
        return torch.layer_norm(
                x,
                new long[] {gain.size(0)},
                new TensorOptional(gain),
                new TensorOptional(p.get(layer + ".shift")),
                EPSILON,
                false);
    }

    /** Applies group normalisation; the second dimension has the channels, which {@code groups} divides. */
    public static Tensor groupNorm(Parameters p, String layer, Tensor x, int groups) {
        return torch.group_norm(
                x,
                groups,
                new TensorOptional(p.get(layer + ".gain")),
                new TensorOptional(p.get(layer + ".shift")),
                EPSILON,
                false);
    }

    /** Takes the largest of each window of {@code kernel x kernel}; rows and columns left over are not used. */
    public static Tensor maxPool(Tensor x, int kernel, int stride) {
        if (kernel == 2 && stride == 2) {
            return MaxPool.of(x);
        }
        return torch.max_pool2d(x, square(kernel), square(stride), square(0), square(1), false);
    }

    /** Takes the mean of each window of {@code kernel x kernel}; rows and columns left over are not used. */
    public static Tensor averagePool(Tensor x, int kernel, int stride) {
        return torch.avg_pool2d(x, square(kernel), square(stride), square(0), false, true, new LongOptional());
    }

    private static long[] square(int side) {
        return new long[] {side, side};
    }

    /**
     * Returns the mean cross entropy over all predictions.
     *
     * @param logits the last dimension counts classes
     * @param labels class numbers, one for each prediction
     */
    public static Tensor crossEntropy(Tensor logits, Tensor labels) {
        return CrossEntropy.mean(logits, labels);
    }
}
