package org.fedcomuon.data;

import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import org.fedcomuon.problem.Sample;

/**
 * The mini-batches of a client: without replacement, in a new order in every epoch. Images left over at the end of an
 * epoch, fewer than a batch, are not used in that epoch; a client with fewer images than a batch has all of its images
 * in every batch.
 *
 * <p>A batch depends on the sample alone, not on earlier calls. Not thread-safe.
 */
public final class Batches {
    private final int[] images;
    private final int batch;
    private final int perEpoch;
    /** Makes the order of an epoch independent of that of other examples of the same client. */
    private final long salt;
    /** The most recently used epoch of each stream, because the next call usually asks for the same epoch. */
    private final Map<Sample.Stream, Epoch> latest = new EnumMap<>(Sample.Stream.class);

    private static final class Epoch {
        final Sample first;
        final int[] order;

        Epoch(Sample first, int[] order) {
            this.first = first;
            this.order = order;
        }
    }

    /**
     * Creates the batches of a client.
     *
     * @param images the images of this client, as {@link Partition#indices} returns them
     * @param batch images per batch, if the client has that many
     */
    public Batches(int[] images, int batch) {
        this(images, batch, 0);
    }

    Batches(int[] images, int batch, long salt) {
        if (images.length == 0) {
            throw new IllegalArgumentException("a client without images has no batches");
        }
        if (batch < 1) {
            throw new IllegalArgumentException("a batch of %d images; at least 1 is needed".formatted(batch));
        }
        this.images = images.clone();
        this.batch = Math.min(batch, images.length);
        perEpoch = images.length / this.batch;
        this.salt = salt;
    }

    /** Returns the number of images in every batch. */
    public int batchSize() {
        return batch;
    }

    /** Returns the number of batches per epoch. */
    public int batchesPerEpoch() {
        return perEpoch;
    }

    /** Returns the images of the batch that {@code xi} stands for. */
    public int[] indices(Sample xi) {
        int[] order = order(xi, xi.draw() / perEpoch);
        int at = (int) (xi.draw() % perEpoch) * batch;
        return Arrays.copyOfRange(order, at, at + batch);
    }

    private int[] order(Sample xi, long epoch) {
        var first = new Sample(xi.seed(), xi.client(), xi.stream(), epoch * perEpoch);
        Epoch known = latest.get(xi.stream());
        if (known != null && known.first.equals(first)) {
            return known.order;
        }
        int[] order = Shuffle.draw(images.length, images.length, xi.random(epoch ^ salt));
        for (int i = 0; i < order.length; i++) {
            order[i] = images[order[i]];
        }
        latest.put(xi.stream(), new Epoch(first, order));
        return order;
    }
}
