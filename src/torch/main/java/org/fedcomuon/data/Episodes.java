package org.fedcomuon.data;

import java.util.Arrays;
import org.fedcomuon.problem.Sample;

/**
 * The mini-batches of a client for meta learning: each sample gives a support batch to adapt to and a query batch to
 * evaluate on. They have no image in common, nor with those of other samples of the same epoch: they are the two parts
 * of one batch of {@link Batches}. A client with too few images uses all of them in every pair, divided in the same
 * proportion.
 *
 * <p>Not thread-safe.
 */
public final class Episodes {
    private final Batches batches;
    private final int support;

    /**
     * Creates the pairs of a client.
     *
     * @param images the images of this client, as {@link Partition#indices} returns them
     * @param support images per support batch, if the client has that many
     * @param query images per query batch
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

    /** Returns the number of images in every support batch. */
    public int supportSize() {
        return support;
    }

    /** Returns the number of images in every query batch. */
    public int querySize() {
        return batches.batchSize() - support;
    }

    /** Returns the number of pairs per epoch. */
    public int perEpoch() {
        return batches.batchesPerEpoch();
    }

    /** Returns the images to adapt to in the sample {@code xi}. */
    public int[] support(Sample xi) {
        return Arrays.copyOf(batches.indices(xi), support);
    }

    /** Returns the images to evaluate on in the same sample. */
    public int[] query(Sample xi) {
        return Arrays.copyOfRange(batches.indices(xi), support, batches.batchSize());
    }
}
