package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptions;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Block;

/**
 * Attention, then a perceptron with one hidden layer, each on normalised input and added to its input. Query, key and
 * value have a matrix each, so that each is orthogonalized by itself. (The bias of the keys is customary, but moves all
 * scores of a query alike, which the softmax does not see.)
 *
 * <p>Attention is written out with a softmax: libtorch's fused kernel has no second derivative, which exact MAML
 * gradients need.
 *
 * @param name prefix of the names of its blocks
 * @param width of the tokens
 * @param heads of the attention; they divide the width
 * @param hidden units of the perceptron
 * @param activation of the hidden layer
 * @param dropout probability: of the attention's weights, of hidden units, and of what is added
 * @param causal whether a token sees only itself and those before it
 */
record TransformerBlock(
        String name,
        int width,
        int heads,
        int hidden,
        UnaryOperator<Tensor> activation,
        double dropout,
        boolean causal) {
    TransformerBlock {
        requireHeads(width, heads);
    }

    static void requireHeads(int width, int heads) {
        if (heads < 1 || width % heads != 0) {
            throw new IllegalArgumentException("%d heads do not divide a width of %d".formatted(heads, width));
        }
    }

    /** Returns its parameters. */
    List<Block> blocks() {
        var blocks = new ArrayList<Block>();
        blocks.addAll(Layers.normBlocks(name + ".norm1", width));
        for (String part : List.of(".query", ".key", ".value", ".projection")) {
            blocks.addAll(Layers.denseBlocks(name + part, width, width));
        }
        blocks.addAll(Layers.normBlocks(name + ".norm2", width));
        blocks.addAll(Layers.denseBlocks(name + ".hidden", width, hidden));
        blocks.addAll(Layers.denseBlocks(name + ".output", hidden, width));
        return blocks;
    }

    /**
     * Applies the block to sequences.
     *
     * @param x examples x tokens x width
     */
    Tensor apply(Parameters p, Tensor x, Dropout dropout) {
        return Torch.part(() -> {
            Tensor attended = x.add(attention(p, Layers.norm(p, name + ".norm1", x), dropout));
            return attended.add(perceptron(p, Layers.norm(p, name + ".norm2", attended), dropout));
        });
    }

    private Tensor attention(Parameters p, Tensor x, Dropout drop) {
        long tokens = x.size(1);
        // The smallest of the tensors is the one to scale.
        Tensor query = heads(p, ".query", x).mul(new Scalar(1 / Math.sqrt((double) width / heads)));
        Tensor scores = query.matmul(heads(p, ".key", x).transpose(-2, -1));
        if (causal) {
            Tensor later = p.here(torch.ones(new long[] {tokens, tokens}, new TensorOptions(torch.ScalarType.Bool))
                    .triu(1));
            scores = scores.masked_fill(later, new Scalar(Float.NEGATIVE_INFINITY));
        }
        Tensor weights = drop.apply(torch.softmax(scores, -1), dropout);
        Tensor seen = weights.matmul(heads(p, ".value", x)).transpose(1, 2).reshape(x.size(0), tokens, width);
        return drop.apply(Layers.dense(p, name + ".projection", seen), dropout);
    }

    /** Returns a tensor of examples x heads x tokens x width of a head. */
    private Tensor heads(Parameters p, String part, Tensor x) {
        return Layers.dense(p, name + part, x)
                .view(x.size(0), x.size(1), heads, width / heads)
                .transpose(1, 2);
    }

    private Tensor perceptron(Parameters p, Tensor x, Dropout drop) {
        Tensor units = drop.apply(activation.apply(Layers.dense(p, name + ".hidden", x)), dropout);
        return drop.apply(Layers.dense(p, name + ".output", units), dropout);
    }

    /**
     * Returns the number of floats that the backward pass needs for a sequence of this many tokens; a mask has one byte
     * per element.
     */
    long activations(long tokens) {
        long scores = heads * tokens;
        // What comes in twice, normalised twice, query, key, value, what was seen; the hidden layer before and after.
        long kept = 8L * width + 2L * hidden + scores;
        long dropped = dropout == 0 ? 0 : scores + (2L * width + hidden + scores) / Float.BYTES;
        return tokens * (kept + dropped);
    }
}
