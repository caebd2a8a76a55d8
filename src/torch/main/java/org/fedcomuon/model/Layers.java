package org.fedcomuon.model;

import java.util.List;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptional;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Block;

/** Layers that networks share, by the names of their blocks: {@code layer.weight} and so on. */
final class Layers {
    /** The usual value: far below any variance and far above rounding errors. */
    private static final double EPSILON = 1e-5;

    private Layers() {}

    /** Returns the blocks of {@link #dense}. */
    static List<Block> denseBlocks(String layer, int in, int out) {
        return List.of(Block.matrix(layer + ".weight", out, in), Block.vector(layer + ".bias", out));
    }

    /** Returns {@code x W^T + b} over the last dimension. */
    static Tensor dense(Parameters p, String layer, Tensor x) {
        return torch.linear(x, p.get(layer + ".weight"), p.get(layer + ".bias"));
    }

    /** Returns the blocks of {@link #convolution}. */
    static List<Block> convolutionBlocks(String layer, int in, int out, int kernel) {
        return List.of(Block.kernel(layer + ".weight", out, in, kernel, kernel), Block.vector(layer + ".bias", out));
    }

    /** Applies a convolution without padding. */
    static Tensor convolution(Parameters p, String layer, Tensor x, int stride) {
        return torch.conv2d(
                x,
                p.get(layer + ".weight"),
                new TensorOptional(p.get(layer + ".bias")),
                new long[] {stride, stride},
                new long[] {0, 0},
                new long[] {1, 1},
                1);
    }

    /** Returns the blocks of {@link #norm}. */
    static List<Block> normBlocks(String layer, int width) {
        return List.of(Block.vector(layer + ".gain", width), Block.vector(layer + ".shift", width));
    }

    /** Applies layer normalisation over the last dimension. */
    static Tensor norm(Parameters p, String layer, Tensor x) {
        Tensor gain = p.get(layer + ".gain");
        return torch.layer_norm(
                x,
                new long[] {gain.size(0)},
                new TensorOptional(gain),
                new TensorOptional(p.get(layer + ".shift")),
                EPSILON,
                false);
    }
}
