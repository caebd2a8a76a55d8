package org.fedcomuon.bench;

import java.util.OptionalLong;
import java.util.function.UnaryOperator;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptional;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.model.Dropout;
import org.fedcomuon.model.LeNet;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.Parameters;
import org.fedcomuon.problem.Layout;

/** LeNet with libtorch's {@code max_pool2d} instead of our own pooling. Its results are bit-identical to ours. */
final class LibtorchLeNet implements Network {
    private final LeNet ours;
    private final UnaryOperator<Tensor> poolAndActivate;

    private LibtorchLeNet(LeNet ours, UnaryOperator<Tensor> poolAndActivate) {
        this.ours = ours;
        this.poolAndActivate = poolAndActivate;
    }

    /** Returns the usual order: convolution, ReLU, pooling. */
    static LibtorchLeNet straightforward(LeNet ours) {
        return new LibtorchLeNet(ours, x -> torch.max_pool2d(torch.relu(x), 2, 2));
    }

    /** Calls, on any device, the operators that ours calls on a GPU: convolution, libtorch's pooling, ReLU. */
    static LibtorchLeNet asOnGpu(LeNet ours) {
        return new LibtorchLeNet(ours, x -> torch.relu(torch.max_pool2d(x, 2, 2)));
    }

    @Override
    public String name() {
        return ours.name();
    }

    @Override
    public Layout layout() {
        return ours.layout();
    }

    @Override
    public OptionalLong activations(int batch) {
        return ours.activations(batch);
    }

    @Override
    public Tensor logits(Parameters p, Tensor input, Dropout dropout) {
        Tensor x = layer(p, "conv1", input);
        x = layer(p, "conv2", x).flatten(1, -1);
        x = torch.relu(torch.linear(x, p.get("dense1.weight"), p.get("dense1.bias")));
        return torch.linear(x, p.get("dense2.weight"), p.get("dense2.bias"));
    }

    private Tensor layer(Parameters p, String name, Tensor x) {
        long[] one = {1, 1};
        var bias = new TensorOptional(p.get(name + ".bias"));
        Tensor convolved = torch.conv2d(x, p.get(name + ".weight"), bias, one, new long[] {0, 0}, one, 1);
        return poolAndActivate.apply(convolved);
    }
}
