package org.fedcomuon.bench;

import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptional;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.model.Dropout;
import org.fedcomuon.model.LeNet;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.Parameters;
import org.fedcomuon.problem.Layout;

/** LeNet as one writes it with libtorch: convolution, ReLU, {@code max_pool2d}. The same numbers as ours. */
final class StraightforwardLeNet implements Network {
    private final LeNet ours;

    StraightforwardLeNet(LeNet ours) {
        this.ours = ours;
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
    public long activations(int batch) {
        return ours.activations(batch);
    }

    @Override
    public Tensor logits(Parameters p, Tensor input, Dropout dropout) {
        Tensor x = layer(p, "conv1", input);
        x = layer(p, "conv2", x).flatten(1, -1);
        x = torch.relu(torch.linear(x, p.get("dense1.weight"), p.get("dense1.bias")));
        return torch.linear(x, p.get("dense2.weight"), p.get("dense2.bias"));
    }

    private static Tensor layer(Parameters p, String name, Tensor x) {
        long[] one = {1, 1};
        var bias = new TensorOptional(p.get(name + ".bias"));
        Tensor convolved = torch.conv2d(x, p.get(name + ".weight"), bias, one, new long[] {0, 0}, one, 1);
        return torch.max_pool2d(torch.relu(convolved), 2, 2);
    }
}
