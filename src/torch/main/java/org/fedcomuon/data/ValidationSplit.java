package org.fedcomuon.data;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * Holds back a share of each client's training examples, by which settings can be chosen without the test set.
 *
 * <p>A client with n examples gives {@code share * n} of them, rounded, but at least one; each class gives the same
 * share of that, rounded by the largest remainder method. A client keeps at least one example of each of its classes
 * for training, so that one with a single example of each gives none. Which examples of a class these are is drawn by a
 * seed. What a client keeps, and what it gives, have the order that its examples had.
 *
 * <p>Immutable.
 *
 * @param train what clients keep for training
 * @param held what they give, by client; nothing of some clients is possible
 */
public record ValidationSplit(Partition train, Partition held) {
    /** Makes the draw independent of that of a {@link Partition} or a {@link Holdout} with the same seed. */
    private static final long SALT = 0x76616c69_64617465L;

    /** Returns the split in which every client keeps all of its examples. */
    public static ValidationSplit none(Partition all) {
        return new ValidationSplit(all, new Partition(Collections.nCopies(all.clients(), new int[0])));
    }

    /**
     * Divides the examples of each client.
     *
     * @param share between 0 and 1
     * @param classOf returns the class of an example; one class for all where they have none, such as blocks of text
     * @param seed equal seeds give equal splits
     */
    public static ValidationSplit of(Partition all, double share, IntUnaryOperator classOf, long seed) {
        var random = new SplittableRandom(seed ^ SALT);
        var train = new ArrayList<int[]>();
        var held = new ArrayList<int[]>();
        for (int k = 0; k < all.clients(); k++) {
            int[] own = all.indices(k);
            BitSet drawn = draw(own, share, classOf, random);
            train.add(some(own, drawn, false));
            held.add(some(own, drawn, true));
        }
        return new ValidationSplit(new Partition(train), new Partition(held));
    }

    private static int[] some(int[] own, BitSet drawn, boolean which) {
        return IntStream.range(0, own.length)
                .filter(i -> drawn.get(i) == which)
                .map(i -> own[i])
                .toArray();
    }

    /** Returns the positions of the examples that a client gives. */
    private static BitSet draw(int[] own, double share, IntUnaryOperator classOf, SplittableRandom random) {
        Map<Integer, List<Integer>> byClass = new LinkedHashMap<>();
        for (int i = 0; i < own.length; i++) {
            byClass.computeIfAbsent(classOf.applyAsInt(own[i]), _ -> new ArrayList<>())
                    .add(i);
        }
        List<List<Integer>> classes = List.copyOf(byClass.values());
        int spare = own.length - classes.size();
        int[] quotas = quotas(
                classes.stream().mapToInt(List::size).toArray(),
                spare == 0 ? 0 : Math.min(Holdout.size(own.length, share), spare));
        var drawn = new BitSet(own.length);
        for (int c = 0; c < quotas.length; c++) {
            for (int i : Shuffle.draw(classes.get(c).size(), quotas[c], random)) {
                drawn.set(classes.get(c).get(i));
            }
        }
        return drawn;
    }

    /**
     * Divides a number in proportion to the sizes of classes, one less than its size for each class at most.
     *
     * @param total up to the sum of these
     */
    static int[] quotas(int[] sizes, int total) {
        long count = Arrays.stream(sizes).sum();
        int[] quotas = Arrays.stream(sizes)
                .map(size -> (int) ((long) size * total / count))
                .toArray();
        int left = total - Arrays.stream(quotas).sum();
        List<Integer> order = IntStream.range(0, sizes.length)
                .boxed()
                .sorted(Comparator.comparingLong((Integer c) -> -((long) sizes[c] * total % count))) // stable
                .toList();
        for (int i = 0; left > 0; i++) {
            int c = order.get(i % order.size());
            if (quotas[c] < sizes[c] - 1) {
                quotas[c]++;
                left--;
            }
        }
        return quotas;
    }
}
