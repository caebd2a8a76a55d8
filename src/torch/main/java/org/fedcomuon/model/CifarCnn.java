package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.OptionalLong;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/**
 * The paper's CNN for CIFAR-10, seven layers: convolutions 3 x 3, 3 x 3 with stride 2, 1 x 1 and 1 x 1, none of them
 * padded, then three dense layers; ReLU after all but the last.
 *
 * <p>Immutable.
 */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
public final class CifarCnn implements Network {
    /**
     * Sizes of the layers.
     *
     * @param side of the images, in pixels; they have three channels
     * @param wide channels of the first and of the second convolution
     * @param wider channels of the third convolution
     * @param narrow channels of the fourth convolution
     * @param dense units of the first and of the second dense layer
     * @param classes number of classes
     */
    public record Sizes(int side, int wide, int wider, int narrow, int dense, int classes) {
        public Sizes {
            if (side < 5 || wide < 1 || wider < 1 || narrow < 1 || dense < 1 || classes < 1) {
                throw new IllegalArgumentException(
                        "a CNN of %d x %d pixels, %d, %d and %d channels, %d units and %d classes is not possible"
                                .formatted(side, side, wide, wider, narrow, dense, classes));
            }
        }

        /** Returns the sizes of the paper: 32 pixels, 96, 96, 196 and 10 channels, 1000 units. */
        public static Sizes paper() {
            return new Sizes(32, 96, 196, 10, 1000, 10);
        }

        /** Returns the side of the images between the first and the second convolution: 30 of 32. */
        int first() {
            return side - 2;
        }

        /** Returns the side of the images after the second convolution: 14 of 32. */
        int second() {
            return (first() - 3) / 2 + 1;
        }

        /** Inputs of the first dense layer: 1960 = 10 x 14 x 14. */
        int flat() {
            return narrow * second() * second();
        }
    }

    private final Sizes sizes;
    private final Layout layout;

    /** Creates a network with the sizes of the paper. */
    public CifarCnn() {
        this(Sizes.paper());
    }

    /** Creates a network with other sizes. */
    public CifarCnn(Sizes sizes) {
        this.sizes = sizes;
        var blocks = new ArrayList<Block>();
        blocks.addAll(Layers.convolutionBlocks("conv1", 3, sizes.wide(), 3));
        blocks.addAll(Layers.convolutionBlocks("conv2", sizes.wide(), sizes.wide(), 3));
        blocks.addAll(Layers.convolutionBlocks("conv3", sizes.wide(), sizes.wider(), 1));
        blocks.addAll(Layers.convolutionBlocks("conv4", sizes.wider(), sizes.narrow(), 1));
        blocks.addAll(Layers.denseBlocks("dense1", sizes.flat(), sizes.dense()));
        blocks.addAll(Layers.denseBlocks("dense2", sizes.dense(), sizes.dense()));
        blocks.addAll(Layers.denseBlocks("dense3", sizes.dense(), sizes.classes()));
        layout = Layout.of(blocks);
    }

    @Override
    public String name() {
        return "cifar-cnn";
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
        // Channels-last memory, which oneDNN prefers: a second-order gradient takes an eighth less time.
        Tensor x = convolved(p, "conv1", input.contiguous(torch.MemoryFormat.ChannelsLast), 1);
        x = convolved(p, "conv2", x, 2);
        x = convolved(p, "conv3", x, 1);
        x = convolved(p, "conv4", x, 1);
        x = x.flatten(1, -1);
        x = torch.relu(Layers.dense(p, "dense1", x));
        x = torch.relu(Layers.dense(p, "dense2", x));
        return Layers.dense(p, "dense3", x);
    }

    private static Tensor convolved(Parameters p, String layer, Tensor x, int stride) {
        return Torch.part(() -> torch.relu(Layers.convolution(p, layer, x, stride, 0)));
    }

    @Override
    public OptionalLong activations(int batch) {
        long first = (long) sizes.wide() * sizes.first() * sizes.first();
        long second = (long) sizes.second() * sizes.second() * (sizes.wide() + sizes.wider() + sizes.narrow());
        // The first convolution is the largest by far: its gradients come twice, and in the kernels' own order.
        return OptionalLong.of(batch * (5 * first + second + 2L * sizes.dense() + sizes.classes()));
    }
}
