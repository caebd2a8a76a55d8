package org.fedcomuon.data;

import java.util.Arrays;
import java.util.function.IntPredicate;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;
import org.fedcomuon.problem.Sample;

/**
 * The mini-batches of a client of which every one has examples of both classes, for losses of pairs such as the area
 * under the ROC curve. Positive examples are those of class 1, negative ones those of class 0. Both are drawn as
 * {@link Batches} draws, each without replacement and in epochs of its own, so that a rare class is seen more often
 * than the other. A client with fewer examples of a class than a batch has all of them in every batch, which is then
 * smaller.
 *
 * <p>A batch depends on the sample alone, not on earlier calls. Not thread-safe.
 */
public final class TwoClassBatches {
    /** Sets the highest bit of the number of an epoch, which no epoch has. */
    private static final long SALT = Long.MIN_VALUE;

    private final Batches positives;
    private final Batches negatives;

    /**
     * Creates the batches of a client.
     *
     * @param label returns the class of an example, 0 or 1
     * @param client its number, for messages
     * @param examples the examples of this client, as {@link Partition#indices} returns them
     * @param batch examples per batch, at least 2
     * @param positiveShare the share of positive examples in a batch, between 0 and 1, rounded to a whole number of
     *     examples such that there is one of each class; 0.5 is usual
     * @throws IllegalArgumentException when there are other classes, or the client has no example of one of them
     */
    public TwoClassBatches(IntUnaryOperator label, int client, int[] examples, int batch, double positiveShare) {
        if (batch < 2) {
            throw new IllegalArgumentException(
                    "a batch of %d examples; at least 2 are needed, one of each class".formatted(batch));
        }
        if (!(positiveShare > 0 && positiveShare < 1)) {
            throw new IllegalArgumentException(
                    "a share of %s positive examples; between 0 and 1 is possible".formatted(positiveShare));
        }
        for (int example : examples) {
            int found = label.applyAsInt(example);
            if (found != 0 && found != 1) {
                throw new IllegalArgumentException(
                        "example %d has class %d; of two classes 0 and 1 are possible".formatted(example, found));
            }
        }
        int positive = Math.clamp(Math.round(batch * positiveShare), 1, batch - 1);
        positives = batches(client, examples, i -> label.applyAsInt(i) == 1, "positive", positive, 0);
        negatives = batches(client, examples, i -> label.applyAsInt(i) == 0, "negative", batch - positive, SALT);
    }

    private static Batches batches(int client, int[] examples, IntPredicate which, String name, int batch, long salt) {
        int[] own = Arrays.stream(examples).filter(which).toArray();
        if (own.length == 0) {
            throw new IllegalArgumentException(
                    ("client %d has no %s example among its %d; every client needs examples of both classes, which"
                                    + " fewer clients or a more even split give")
                            .formatted(client, name, examples.length));
        }
        return new Batches(own, batch, salt);
    }

    /** Returns the number of examples in every batch. */
    public int batchSize() {
        return positives.batchSize() + negatives.batchSize();
    }

    /** Returns the number of positive examples in every batch, which come first. */
    public int positives() {
        return positives.batchSize();
    }

    /** Returns the examples of the batch that {@code xi} stands for: positive ones, then negative ones. */
    public int[] indices(Sample xi) {
        return IntStream.concat(Arrays.stream(positives.indices(xi)), Arrays.stream(negatives.indices(xi)))
                .toArray();
    }
}
