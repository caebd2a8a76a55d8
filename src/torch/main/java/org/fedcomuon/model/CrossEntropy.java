package org.fedcomuon.model;

import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptional;
import org.bytedeco.pytorch.global.torch;

/** The loss of all networks: cross entropy over all predictions, one or many per example. */
final class CrossEntropy {
    /** The value of {@code at::Reduction::Mean}. */
    private static final long MEAN = 1;

    /** The value of {@code at::Reduction::Sum}. */
    private static final long SUM = 2;

    private CrossEntropy() {}

    /** Returns the mean over a batch, for training; logits as large as a vocabulary are not held longer than needed. */
    static Tensor mean(Network network, Parameters w, Examples batch, Dropout dropout) {
        return Torch.part(() -> mean(network.logits(w, w.here(batch.inputs()), dropout), w.here(batch.labels())));
    }

    /** Returns the mean. */
    static Tensor mean(Tensor logits, Tensor labels) {
        return of(logits, labels, MEAN);
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
