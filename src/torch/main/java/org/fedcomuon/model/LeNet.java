package org.fedcomuon.model;

import java.util.OptionalLong;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/** The paper's CNN for MNIST: two 5 x 5 convolutions with pooling, two dense layers. Immutable. */
@SuppressWarnings("exports") // users of tensors have libtorch; others must not need it
public final class LeNet implements Network {
    private final Layout layout;

    /** Creates the network of the paper, for ten digits. */
    public LeNet() {
        this(10);
    }

    /**
     * Creates the network with another last layer.
     *
     * @param outputs one per class, or one for a score
     */
    public LeNet(int outputs) {
        layout = Layout.of(
                Block.kernel("conv1.weight", 6, 1, 5, 5),
                Block.vector("conv1.bias", 6),
                Block.kernel("conv2.weight", 16, 6, 5, 5),
                Block.vector("conv2.bias", 16),
                Block.matrix("dense1.weight", 120, 256),
                Block.vector("dense1.bias", 120),
                Block.matrix("dense2.weight", outputs, 120),
                Block.vector("dense2.bias", outputs));
    }

    @Override
    public String name() {
        return "lenet";
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
        Tensor x = PooledConvolution.of(p, "conv1", input);
        x = PooledConvolution.of(p, "conv2", x);
        x = x.flatten(1, -1);
        x = torch.relu(Layers.dense(p, "dense1", x));
        return Layers.dense(p, "dense2", x);
    }

    @Override
    public OptionalLong activations(int batch) {
        // Of each convolution: its result and its gradient, the same pooled, after ReLU, and places of four bytes.
        return OptionalLong.of(batch * ((6L * 24 * 24 + 16 * 8 * 8) * 2 + (6L * 12 * 12 + 256) * 3 + 2 * 120 + 10));
    }
}
