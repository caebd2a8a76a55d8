package org.example.muon;

import java.util.List;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.model.Dropout;
import org.fedcomuon.model.Layers;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.Parameters;
import org.fedcomuon.problem.Layout;

/** A network that YAML names by its class: {@code model: {class: org.example.muon.TwoLayers}}. */
public record TwoLayers(Layout layout) implements Network {
    private static final int HIDDEN = 32;

    /**
     * Makes it for some data.
     *
     * @param shape of an example
     * @param outputs number of classes
     */
    public TwoLayers(List<Integer> shape, int outputs) {
        this(Layout.of(
                Layers.denseBlocks("hidden", shape.stream().reduce(1, Math::multiplyExact), HIDDEN),
                Layers.denseBlocks("head", HIDDEN, outputs)));
    }

    @Override
    public Tensor logits(Parameters p, Tensor examples, Dropout dropout) {
        Tensor hidden = torch.tanh(Layers.dense(p, "hidden", examples.flatten(1, -1)));
        return Layers.dense(p, "head", hidden);
    }
}
