package org.fedcomuon.data;

import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import org.fedcomuon.problem.Sample;

/**
 * A client's mini-batches: without replacement, in an order that is new in every epoch. What is left over at the end of
 * an epoch, less than a batch, is not used in it; a client that has less than a batch altogether has all of it in every
 * batch.
 *
 * <p>A batch depends on the sample alone, whatever was asked before. Of one thread at a time, as one client is.
 */
public final class Batches {
    private final int[] images;
    private final int batch;
    private final int perEpoch;
    /** The last epoch that was asked for in each stream: what follows is most often of the same. */
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
     * @param images of this client, as {@link Partition#indices} gives them
     * @param batch how many images a batch has, if the client has as many
     */
    public Batches(int[] images, int batch) {
        if (images.length == 0) {
            throw new IllegalArgumentException("a client without images has no batches");
        }
        if (batch < 1) {
            throw new IllegalArgumentException("a batch of %d images; 1 is the least".formatted(batch));
        }
        this.images = images.clone();
        this.batch = Math.min(batch, images.length);
        perEpoch = images.length / this.batch;
    }

    /** How many images every batch has. */
    public int batchSize() {
        return batch;
    }

    /** How many batches an epoch has. */
    public int batchesPerEpoch() {
        return perEpoch;
    }

    /** The images of the batch that {@code xi} stands for. */
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
        int[] order = Shuffle.draw(images.length, images.length, xi.random(epoch));
        for (int i = 0; i < order.length; i++) {
            order[i] = images[order[i]];
        }
        latest.put(xi.stream(), new Epoch(first, order));
        return order;
    }
}
