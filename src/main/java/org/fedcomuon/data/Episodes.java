package org.fedcomuon.data;

import java.util.Arrays;
import org.fedcomuon.problem.Sample;

/**
 * A client's mini-batches for meta learning: one sample gives two, a support batch to adapt to and a query batch to be
 * judged by. They have no image in common, nor with those of other samples of the same epoch. They are the two parts of
 * one of {@link Batches}, and what is said there holds for both together: a client that has too few images has all of
 * them in every pair, divided in the same proportion.
 *
 * <p>Of one thread at a time, like those.
 */
public final class Episodes {
    private final Batches batches;
    private final int support;

    /**
     * Creates the pairs of a client.
     *
     * @param images of this client, as {@link Partition#indices} gives them
     * @param support how many images a support batch has, if the client has as many
     * @param query how many images a query batch has
     */
    public Episodes(int[] images, int support, int query) {
        if (support < 1 || query < 1) {
            throw new IllegalArgumentException(
                    "a support batch of %d and a query batch of %d images; 1 is the least".formatted(support, query));
        }
        if (images.length < 2) {
            throw new IllegalArgumentException(
                    "a client with %d images cannot have one for support and another for query"
                            .formatted(images.length));
        }
        int both = Math.addExact(support, query);
        batches = new Batches(images, both);
        long part = (long) batches.batchSize() * support / both;
        this.support = Math.clamp(part, 1, batches.batchSize() - 1);
    }

    /** How many images every support batch has. */
    public int supportSize() {
        return support;
    }

    /** How many images every query batch has. */
    public int querySize() {
        return batches.batchSize() - support;
    }

    /** How many pairs an epoch has. */
    public int perEpoch() {
        return batches.batchesPerEpoch();
    }

    /** The images to adapt to in the sample {@code xi}. */
    public int[] support(Sample xi) {
        return Arrays.copyOf(batches.indices(xi), support);
    }

    /** The images to be judged by after that, in the same sample. */
    public int[] query(Sample xi) {
        return Arrays.copyOfRange(batches.indices(xi), support, batches.batchSize());
    }
}
