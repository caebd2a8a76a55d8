package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.LongOptional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;

/** A score as sums, for adding up batches. */
record Tally(double loss, long right, long count) {
    static final Tally NOTHING = new Tally(0, 0, 0);

    /** The numbers of a batch that {@link #sums} returns. */
    static final int SUMS = 2;

    private static final int LARGEST_BATCH = 250;

    /** Where activations are not known: about as many examples as a batch has in training. */
    private static final int UNCOUNTED_BATCH = 32;

    /** The limit of the activations of a batch, as in training. */
    private static final long BUDGET = 256L << 20;

    /** Returns the size of batches, which depends on the network alone. */
    static List<Examples> parts(Network network, Examples examples) {
        int batch = batch(network);
        var parts = new ArrayList<Examples>();
        for (int from = 0; from < examples.count(); from += batch) {
            parts.add(examples.range(from, Math.min(examples.count(), from + batch)));
        }
        return parts;
    }

    static int batch(Network network) {
        OptionalLong activations = network.activations(1);
        return activations.isPresent()
                ? Math.clamp(BUDGET / (Math.max(1, activations.getAsLong()) * Float.BYTES), 1, LARGEST_BATCH)
                : UNCOUNTED_BATCH;
    }

    /** Returns the tally of a batch; no tensor that leads to the parameters may require gradients. */
    static Tally of(Network network, Parameters parameters, Examples batch) {
        Torch.claim();
        try (var _ = new PointerScope()) {
            var sums = new double[SUMS];
            sums(network, parameters, batch).data_ptr_double().get(sums);
            return of(sums, 0, batch.labels().numel());
        }
    }

    /** Returns the tally of {@code count} predictions from what {@link #sums} gave, at {@code at} of {@code values}. */
    static Tally of(double[] values, int at, long count) {
        return new Tally(values[at], (long) values[at + 1], count);
    }

    /**
     * Returns the {@value #SUMS} sums of a batch, in double, on the device of both: the loss, which libtorch adds up in
     * float, and the number of correct predictions.
     */
    static Tensor sums(Network network, Parameters parameters, Examples batch) {
        Tensor logits = network.logits(parameters, batch.inputs(), Dropout.none());
        Tensor loss = CrossEntropy.sum(logits, batch.labels());
        Tensor right =
                logits.argmax(new LongOptional(-1), false).eq(batch.labels()).sum();
        return torch.stack(new TensorVector(loss.to(torch.ScalarType.Double), right.to(torch.ScalarType.Double)));
    }

    Tally plus(Tally other) {
        return new Tally(loss + other.loss, right + other.right, count + other.count);
    }

    Judge.Score score() {
        return new Judge.Score(loss / count, (double) right / count, Math.toIntExact(count));
    }
}
