package org.fedcomuon.data;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/** A partition of images, or of blocks of text, among clients. None belongs to two clients. Immutable. */
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
     * @param seed equal seeds give equal partitions
     * @throws IllegalArgumentException when there are too few images
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
            throw new IllegalArgumentException("%d clients need %d images together, but there are only %d"
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

    /**
     * Deals all of them out at random, so that the first client has a share of about {@code share} and the others have
     * equal shares of the rest; the paper's split of WikiText-2 is half of the blocks to one client. The remainder goes
     * to the first client.
     *
     * @param available how many images, or blocks of text, there are
     * @throws IllegalArgumentException when another client would have nothing
     */
    public static Partition oneLarge(int available, int clients, double share, long seed) {
        requireClients(clients);
        if (!(share > 0 && share < 1)) {
            throw new IllegalArgumentException("a share of %s; between 0 and 1 is possible".formatted(share));
        }
        if (clients == 1) {
            return imbalanced(available, List.of(available), seed);
        }
        int others = BigDecimal.ONE
                .subtract(BigDecimal.valueOf(share))
                .multiply(BigDecimal.valueOf(available))
                .divideToIntegralValue(BigDecimal.valueOf(clients - 1))
                .intValueExact();
        if (others < 1) {
            throw new IllegalArgumentException(
                    "%d are too few for %d clients of which one has a share of %s; every client needs one"
                            .formatted(available, clients, share));
        }
        var sizes = new ArrayList<>(Collections.nCopies(clients, others));
        sizes.set(0, available - (clients - 1) * others);
        return imbalanced(available, sizes, seed);
    }

    /**
     * Deals images out so that every client has {@code size} of them, client k a share of {@code chi} from class k
     * modulo the number of classes, and equally many from every other one. Shares are rounded to whole numbers of
     * images by the largest remainder method. Ties go to the dominant class first and then to the classes that follow
     * it cyclically, so that no class is favoured over all clients.
     *
     * @param chi the share of the dominant class, at least that of every other class
     * @param seed equal seeds give equal partitions
     * @throws IllegalArgumentException when there are too few images of a class
     */
    public static Partition dominant(ImageSet images, int clients, int size, double chi, long seed) {
        requireClients(clients);
        int classes = images.classes();
        if (size < 1) {
            throw new IllegalArgumentException(
                    "every client would have %d images; every client needs one".formatted(size));
        }
        if (classes < 2 || !(chi <= 1 && chi * classes >= 1 - 1e-9)) {
            throw new IllegalArgumentException("a dominant share of %s with %d classes; from 1/%d to 1 is possible"
                    .formatted(chi, classes, classes));
        }
        List<int[]> pools = byClass(images, new SplittableRandom(seed));
        requireEnough(pools, clients, size, chi);
        var random = new SplittableRandom(~seed);
        var used = new int[classes];
        var dealt = new ArrayList<int[]>();
        for (int k = 0; k < clients; k++) {
            int[] counts = counts(classes, k % classes, size, chi);
            var own = new int[size];
            int at = 0;
            for (int c = 0; c < classes; c++) {
                System.arraycopy(pools.get(c), used[c], own, at, counts[c]);
                used[c] += counts[c];
                at += counts[c];
            }
            int[] order = Shuffle.draw(size, size, random); // so that the images of a client are not grouped by class
            dealt.add(Arrays.stream(order).map(i -> own[i]).toArray());
        }
        return new Partition(dealt);
    }

    /** Returns the number of images of each class for a client whose dominant class is {@code dominant}. */
    static int[] counts(int classes, int dominant, int size, double chi) {
        // Exact decimal arithmetic: 0.3 means three tenths. The numbers of the other classes are multiplied by (classes
        // - 1).
        var others = BigDecimal.valueOf(classes - 1L);
        var total = BigDecimal.valueOf(size);
        BigDecimal own = BigDecimal.valueOf(chi).multiply(total);
        BigDecimal[] ownParts = own.divideAndRemainder(BigDecimal.ONE);
        BigDecimal[] otherParts = total.subtract(own).divideAndRemainder(others);
        var counts = new int[classes];
        Arrays.fill(counts, otherParts[0].intValueExact());
        counts[dominant] = ownParts[0].intValueExact();
        int left = size - Arrays.stream(counts).sum();
        boolean dominantFirst = ownParts[1].multiply(others).compareTo(otherParts[1]) >= 0;
        for (int i = dominantFirst ? 0 : 1; left > 0; i++, left--) {
            counts[(dominant + i) % classes]++;
        }
        return counts;
    }

    /** Returns the images of each class, in random order. */
    private static List<int[]> byClass(ImageSet images, SplittableRandom random) {
        var pools = new ArrayList<int[]>();
        for (int c = 0; c < images.classes(); c++) {
            int label = c;
            int[] all = IntStream.range(0, images.count())
                    .filter(i -> images.label(i) == label)
                    .toArray();
            pools.add(Arrays.stream(Shuffle.draw(all.length, all.length, random))
                    .map(i -> all[i])
                    .toArray());
        }
        return pools;
    }

    private static void requireEnough(List<int[]> pools, int clients, int size, double chi) {
        long[] needed = needed(pools.size(), clients, size, chi);
        for (int c = 0; c < needed.length; c++) {
            if (needed[c] > pools.get(c).length) {
                throw new IllegalArgumentException(("%d clients with %d images each and a dominant share of %s need %d"
                                + " images of class %d, but there are only %d; %d per client are possible")
                        .formatted(
                                clients,
                                size,
                                chi,
                                needed[c],
                                c,
                                pools.get(c).length,
                                largest(pools, clients, size, chi)));
            }
        }
    }

    /** Returns the largest size below {@code size} for which there are enough images. */
    private static int largest(List<int[]> pools, int clients, int size, double chi) {
        int possible = size;
        while (possible > 0 && !areEnough(pools, clients, possible, chi)) {
            long[] needed = needed(pools.size(), clients, possible, chi);
            int next = possible - 1;
            for (int c = 0; c < needed.length; c++) {
                if (needed[c] > 0) {
                    // Reduces in proportion: rounding changes the number by less than one for each client.
                    next = (int) Math.min(next, (pools.get(c).length + 2L * clients) * possible / needed[c]);
                }
            }
            possible = next;
        }
        return possible;
    }

    private static boolean areEnough(List<int[]> pools, int clients, int size, double chi) {
        long[] needed = needed(pools.size(), clients, size, chi);
        return IntStream.range(0, needed.length).allMatch(c -> needed[c] <= pools.get(c).length);
    }

    /** Returns the number of images of each class that all clients need together. */
    private static long[] needed(int classes, int clients, int size, double chi) {
        var needed = new long[classes];
        for (int dominant = 0; dominant < Math.min(classes, clients); dominant++) {
            int times = (clients - 1 - dominant) / classes + 1;
            int[] counts = counts(classes, dominant, size, chi);
            for (int c = 0; c < classes; c++) {
                needed[c] += (long) times * counts[c];
            }
        }
        return needed;
    }

    private static void requireClients(int clients) {
        if (clients < 1) {
            throw new IllegalArgumentException("%d clients; 1 is the least".formatted(clients));
        }
    }

    /** Returns the number of clients. */
    public int clients() {
        return clients.size();
    }

    /** Returns the number of images of {@code client}. */
    public int size(int client) {
        return clients.get(client).length;
    }

    /** Returns the indices of the images of {@code client}, in no particular order. */
    public int[] indices(int client) {
        return clients.get(client).clone();
    }
}
