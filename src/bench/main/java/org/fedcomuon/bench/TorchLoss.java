package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.List;
import org.bytedeco.pytorch.BoolOptional;
import org.bytedeco.pytorch.Scalar;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.data.Batches;
import org.fedcomuon.data.Episodes;
import org.fedcomuon.model.Dropout;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.Parameters;
import org.fedcomuon.problem.Sample;

/** A client's loss on a sample for {@link TorchRounds}, differentiated by {@code backward}. */
interface TorchLoss {
    Tensor of(int client, List<Tensor> at, Sample xi);

    /** Returns the cross entropy. */
    static TorchLoss plain(Network network, Examples examples, List<int[]> shares, int batch) {
        List<Batches> batches =
                shares.stream().map(share -> new Batches(share, batch)).toList();
        return (client, at, xi) ->
                crossEntropy(network, at, examples.select(batches.get(client).indices(xi)), Dropout.of(xi));
    }

    /** Returns the cross entropy after a step of adaptation, with a graph for second derivatives. */
    static TorchLoss adapted(Network network, Examples examples, List<int[]> shares, int batch, double rate) {
        List<Episodes> episodes =
                shares.stream().map(share -> new Episodes(share, batch, batch)).toList();
        return (client, at, xi) -> {
            Dropout dropout = Dropout.of(xi);
            Examples support = examples.select(episodes.get(client).support(xi));
            Tensor before = crossEntropy(network, at, support, dropout);
            TensorVector slope = torch.grad(
                    new TensorVector(before),
                    new TensorVector(at.toArray(Tensor[]::new)),
                    new TensorVector(),
                    new BoolOptional(true),
                    true,
                    false);
            var adapted = new ArrayList<Tensor>();
            for (int i = 0; i < at.size(); i++) {
                adapted.add(at.get(i).sub(slope.get(i).mul(new Scalar(rate))));
            }
            Examples query = examples.select(episodes.get(client).query(xi));
            return crossEntropy(network, adapted, query, dropout);
        };
    }

    private static Tensor crossEntropy(Network network, List<Tensor> at, Examples batch, Dropout dropout) {
        Tensor logits =
                network.logits(new Parameters(network.layout(), at), beside(at.getFirst(), batch.inputs()), dropout);
        return torch.cross_entropy_loss(logits, beside(at.getFirst(), batch.labels()));
    }

    /** Returns {@code x} on the device of {@code weight}. */
    private static Tensor beside(Tensor weight, Tensor x) {
        return weight.is_cuda() ? x.to(weight.device(), x.scalar_type()) : x;
    }
}
