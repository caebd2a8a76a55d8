package org.fedcomuon.data;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;

/** Which images each client has. No image belongs to two clients. */
public final class Partition {
    private final List<int[]> clients;

    private Partition(List<int[]> clients) {
        this.clients = clients;
    }

    /**
     * Deals images out at random, {@code sizes.get(k)} to client k; the paper's split of MNIST is 5000 to one client
     * and 20 to each of nine others.
     *
     * @param available how many images there are
     * @param seed another one gives other images; the same, the same
     * @throws IllegalArgumentException when there are too few images, in a line that says so
     */
    public static Partition imbalanced(int available, List<Integer> sizes, long seed) {
        long total = 0;
        for (int k = 0; k < sizes.size(); k++) {
            if (sizes.get(k) < 1) {
                throw new IllegalArgumentException(
                        "client %d would have %d images; every client needs one".formatted(k, sizes.get(k)));
            }
            total += sizes.get(k);
        }
        if (total > available) {
            throw new IllegalArgumentException("%d clients need %d images together, but only %d are there"
                    .formatted(sizes.size(), total, available));
        }
        int[] images = Shuffle.draw(available, (int) total, new SplittableRandom(seed));
        var clients = new ArrayList<int[]>();
        int at = 0;
        for (int size : sizes) {
            clients.add(Arrays.copyOfRange(images, at, at + size));
            at += size;
        }
        return new Partition(clients);
    }

    /** How many clients. */
    public int clients() {
        return clients.size();
    }

    /** How many images {@code client} has. */
    public int size(int client) {
        return clients.get(client).length;
    }

    /** The numbers of the images of {@code client}, in no particular order. */
    public int[] indices(int client) {
        return clients.get(client).clone();
    }
}
