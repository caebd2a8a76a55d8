package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.IntStream;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/**
 * A vision transformer: patches of the image and a class token, learned positions, pre-norm blocks with GELU, and a
 * dense layer on the class token.
 *
 * <p>The embedding of patches is a matrix like any other. Muon methods treat the class token and the positions as
 * vectors.
 *
 * <p>Immutable.
 */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
public final class VisionTransformer implements Network {
    private static final int CHANNELS = 3;

    /** Hidden units of a block, as a multiple of its width. */
    private static final int EXPANSION = 4;

    /**
     * Sizes of the model.
     *
     * @param side of the images, in pixels; they have three channels
     * @param patch side of a patch; it divides that of the image
     * @param depth number of blocks
     * @param width of a token
     * @param heads of the attention; they divide the width
     * @param classes number of classes
     */
    public record Sizes(int side, int patch, int depth, int width, int heads, int classes) {
        public Sizes {
            if (side < 1 || depth < 1 || width < 1 || classes < 1) {
                throw new IllegalArgumentException(
                        "a vision transformer for %d x %d pixels of depth %d, width %d and %d classes is not possible"
                                .formatted(side, side, depth, width, classes));
            }
            if (patch < 1 || side % patch != 0) {
                throw new IllegalArgumentException(
                        "patches of %d pixels do not divide a side of %d".formatted(patch, side));
            }
            TransformerBlock.requireHeads(width, heads);
        }

        /** Returns the sizes of ViT-Tiny for CIFAR-10: 12 blocks, width 192, 3 heads, patches of 4 x 4. */
        public static Sizes tiny() {
            return new Sizes(32, 4, 12, 192, 3, 10);
        }

        int patches() {
            return (side / patch) * (side / patch);
        }
    }

    private final Sizes sizes;
    private final List<TransformerBlock> blocks;
    private final Layout layout;

    /** Creates ViT-Tiny. */
    public VisionTransformer() {
        this(Sizes.tiny());
    }

    /** Creates a network with other sizes. */
    public VisionTransformer(Sizes sizes) {
        this.sizes = sizes;
        int width = sizes.width();
        blocks = IntStream.rangeClosed(1, sizes.depth())
                .mapToObj(i -> new TransformerBlock(
                        "block" + i, width, sizes.heads(), EXPANSION * width, torch::gelu, 0, false))
                .toList();
        var all = new ArrayList<Block>();
        all.add(Block.kernel("patch.weight", width, CHANNELS, sizes.patch(), sizes.patch()));
        all.add(Block.vector("patch.bias", width));
        all.add(Block.vector("class.token", width));
        all.add(Block.matrix("positions", sizes.patches() + 1, width).asVector());
        blocks.forEach(block -> all.addAll(block.blocks()));
        all.addAll(Layers.normBlocks("norm", width));
        all.addAll(Layers.denseBlocks("head", width, sizes.classes()));
        layout = Layout.of(all);
    }

    @Override
    public String name() {
        return "vit";
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
        Tensor x = Torch.part(() -> tokens(p, input));
        for (TransformerBlock block : blocks) {
            x = block.apply(p, x, dropout);
        }
        return Layers.dense(p, "head", Layers.norm(p, "norm", x.select(1, 0)));
    }

    /**
     * Returns a tensor of examples x (1 + patches) x width. The convolution does not overlap, so it is computed as one
     * product.
     */
    private Tensor tokens(Parameters p, Tensor input) {
        long examples = input.size(0);
        long across = sizes.side() / sizes.patch();
        Tensor patches = input.view(examples, CHANNELS, across, sizes.patch(), across, sizes.patch())
                .permute(0, 2, 4, 1, 3, 5)
                .reshape(examples, sizes.patches(), (long) CHANNELS * sizes.patch() * sizes.patch());
        Tensor embedded = Layers.dense(p, "patch", patches);
        Tensor first = Layers.token(p, "class.token", examples);
        return Layers.plus(p, "positions", torch.cat(new TensorVector(first, embedded), 1));
    }

    @Override
    public OptionalLong activations(int batch) {
        long tokens = 1L + sizes.patches();
        return OptionalLong.of(batch
                * (tokens * CHANNELS * sizes.patch() * sizes.patch()
                        + blocks.stream()
                                .mapToLong(block -> block.activations(tokens))
                                .sum()));
    }
}
