package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.IntStream;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/**
 * A transformer that predicts the next token: an embedding, sinusoidal positions, pre-norm encoder blocks with ReLU
 * that look back only, and a dense layer to the vocabulary. An example is a sequence of tokens, a label the token that
 * follows each.
 *
 * <p>Immutable.
 */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
public final class LanguageModel implements Network {
    /**
     * Sizes of the model.
     *
     * @param vocabulary number of different tokens
     * @param length of the longest sequence
     * @param depth number of blocks
     * @param width of a token
     * @param heads of the attention; they divide the width
     * @param hidden units of a block
     * @param dropout probability
     */
    public record Sizes(int vocabulary, int length, int depth, int width, int heads, int hidden, double dropout) {
        public Sizes {
            if (vocabulary < 2 || length < 1 || depth < 1 || width < 2 || width % 2 != 0 || hidden < 1) {
                throw new IllegalArgumentException(("a language model of %d tokens, sequences of %d, depth %d, width %d"
                                + " and %d hidden units is not possible")
                        .formatted(vocabulary, length, depth, width, hidden));
            }
            if (!(dropout >= 0 && dropout < 1)) {
                throw new IllegalArgumentException("dropout = %s; from 0 to below 1 is possible".formatted(dropout));
            }
            TransformerBlock.requireHeads(width, heads);
        }

        /**
         * Returns the sizes of the paper for WikiText-2: 8 blocks, width 768, 8 heads, 1024 units, sequences of 128,
         * dropout 0.1.
         */
        public static Sizes paper(int vocabulary) {
            return new Sizes(vocabulary, 128, 8, 768, 8, 1024, 0.1);
        }
    }

    private final Sizes sizes;
    private final List<TransformerBlock> blocks;
    private final Layout layout;
    private final float[] positions;

    /**
     * Creates a model whose embedding and head are matrices for Muon methods. As vectors of 25 million elements they
     * would hardly move: a normalised step has length {@code eta} instead of {@code eta sqrt(width)}.
     */
    public LanguageModel(Sizes sizes) {
        this(sizes, Block.Update.ORTHOGONAL, Block.Update.ORTHOGONAL);
    }

    /**
     * Creates a model with a choice of how Muon methods treat the two blocks that are as long as the vocabulary. As
     * matrices they take most of the time of orthogonalization; as vectors they may need their own step size.
     */
    public LanguageModel(Sizes sizes, Block.Update embedding, Block.Update head) {
        this.sizes = sizes;
        int width = sizes.width();
        blocks = IntStream.rangeClosed(1, sizes.depth())
                .mapToObj(i -> new TransformerBlock(
                        "block" + i, width, sizes.heads(), sizes.hidden(), torch::relu, sizes.dropout(), true))
                .toList();
        var all = new ArrayList<Block>();
        all.add(new Block("embedding", List.of(sizes.vocabulary(), width), embedding));
        blocks.forEach(block -> all.addAll(block.blocks()));
        all.addAll(Layers.normBlocks("norm", width));
        all.add(new Block("head.weight", List.of(sizes.vocabulary(), width), head));
        all.add(Block.vector("head.bias", sizes.vocabulary()));
        layout = Layout.of(all);
        positions = sinusoids(sizes.length(), width);
    }

    /** Returns one row per position: alternating sines and cosines of wavelengths from 2 pi to 20000 pi. */
    private static float[] sinusoids(int length, int width) {
        var table = new float[Math.multiplyExact(length, width)];
        for (int t = 0; t < length; t++) {
            for (int i = 0; i < width; i += 2) {
                double angle = t / Math.pow(10000, (double) i / width);
                table[t * width + i] = (float) Math.sin(angle);
                table[t * width + i + 1] = (float) Math.cos(angle);
            }
        }
        return table;
    }

    @Override
    public String name() {
        return "transformer";
    }

    @Override
    public Layout layout() {
        return layout;
    }

    @Override
    public boolean takesSeveralClients() {
        return true;
    }

    @Override
    public Tensor logits(Parameters p, Tensor input, Dropout dropout) {
        if (input.size(1) > sizes.length()) {
            throw new IllegalArgumentException(
                    "a sequence of %d tokens; the longest has %d".formatted(input.size(1), sizes.length()));
        }
        Tensor x = Torch.part(() -> tokens(p, input, dropout));
        for (TransformerBlock block : blocks) {
            x = block.apply(p, x, dropout);
        }
        return Layers.dense(p, "head", Layers.norm(p, "norm", x));
    }

    private Tensor tokens(Parameters p, Tensor input, Dropout dropout) {
        // As large as the positions: an embedding starts with a variance of 1/width.
        Tensor embedded = Layers.embedding(p, "embedding", input).mul(new Scalar(Math.sqrt(sizes.width())));
        Tensor where = p.here(Tensor.create(positions))
                .view(sizes.length(), sizes.width())
                .narrow(0, 0, input.size(1));
        return dropout.apply(embedded.add(where.to(embedded.scalar_type())), sizes.dropout());
    }

    @Override
    public OptionalLong activations(int batch) {
        long tokens = sizes.length();
        // The logarithms of the probabilities, their gradients and those of the logits, where the backward pass begins.
        return OptionalLong.of(batch
                * (3 * tokens * sizes.vocabulary()
                        + blocks.stream()
                                .mapToLong(block -> block.activations(tokens))
                                .sum()));
    }
}
