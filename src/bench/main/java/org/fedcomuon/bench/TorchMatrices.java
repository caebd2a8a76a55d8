package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.List;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.NewtonSchulzSpec;

/** Matrices and weights that libtorch holds. */
final class TorchMatrices implements AutoCloseable {
    private final List<Tensor> momenta = new ArrayList<>();
    private final List<Tensor> weights = new ArrayList<>();
    private final List<NewtonSchulzSpec.Step> steps;
    private final double eta;
    private final TorchPlace place;

    TorchMatrices(TorchPlace place, List<NewtonSchulzSpec.Step> steps, double eta) {
        this.place = place;
        this.steps = steps;
        this.eta = eta;
    }

    void add(Buffer m, long offset, int rows, int cols) {
        Tensor momentum = place.here(TorchPeer.tensor(m, offset, rows, cols));
        momenta.add(momentum);
        weights.add(torch.zeros_like(momentum));
    }

    void stepAll(boolean bfloat16) {
        for (int i = 0; i < momenta.size(); i++) {
            TorchPeer.step(momenta.get(i), bfloat16, steps, eta, weights.get(i));
        }
    }

    void exactStepAll() {
        for (int i = 0; i < momenta.size(); i++) {
            TorchPeer.exactStep(momenta.get(i), eta, weights.get(i));
        }
    }

    List<float[]> weights() {
        return weights.stream()
                .map(tensor -> {
                    var values = new float[(int) tensor.numel()];
                    tensor.cpu().data_ptr_float().get(values);
                    return values;
                })
                .toList();
    }

    @Override
    public void close() {
        momenta.forEach(Tensor::close);
        weights.forEach(Tensor::close);
    }
}
