package org.fedcomuon.model;

import java.util.Optional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptional;
import org.bytedeco.pytorch.global.torch;

/** The loss of all networks: cross entropy over all predictions, one or many per example. */
final class CrossEntropy {
    /** The value of {@code at::Reduction::None}. */
    private static final long NONE = 0;

    /** The value of {@code at::Reduction::Mean}. */
    private static final long MEAN = 1;

    /** The value of {@code at::Reduction::Sum}. */
    private static final long SUM = 2;

    private CrossEntropy() {}

    /** Returns the mean over a batch, for training; see {@link #mean(Network, Parameters, Minibatch, Dropout)}. */
    static Tensor mean(Network network, Parameters w, Examples batch, Dropout dropout) {
        return mean(network, w, Minibatch.of(batch), dropout);
    }

    /**
     * Returns the mean over a batch, for training; logits as large as a vocabulary are not held longer than needed.
     * With parameters of several clients it is a vector, with the mean of each client over its part of the batch.
     */
    static Tensor mean(Network network, Parameters w, Minibatch batch, Dropout dropout) {
        return Torch.part(() -> {
            Tensor logits = network.logits(w, w.here(batch.examples().inputs()), dropout);
            Tensor labels = w.here(batch.examples().labels());
            return w.clients().isEmpty()
                    ? mean(logits, labels)
                    : means(
                            logits,
                            labels,
                            w.clients().getAsInt(),
                            batch.shares().map(w::here));
        });
    }

    /** Returns the mean. */
    static Tensor mean(Tensor logits, Tensor labels) {
        return of(logits, labels, MEAN);
    }

    private static Tensor means(Tensor logits, Tensor labels, int clients, Optional<Tensor> shares) {
        Tensor losses = of(logits, labels, NONE);
        return shares.map(share -> losses.view(clients, share.size(1), -1)
                        .mean(2)
                        .mul(share)
                        .sum(1))
                .orElseGet(() -> losses.view(clients, -1).mean(1));
    }

    /** Returns the sum over a batch. */
    static Tensor sum(Tensor logits, Tensor labels) {
        return of(logits, labels, SUM);
    }

    private static Tensor of(Tensor logits, Tensor labels, long reduction) {
        return torch.cross_entropy_loss(
                logits.flatten(0, -2), labels.flatten(), new TensorOptional(), reduction, -100, 0);
    }
}
