package org.fedcomuon.data;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/**
 * Holds back a share of a set for testing. The share is rounded to a whole number of examples, at least one; each class
 * gives the same share of it, rounded by the largest remainder method, where the class with the smaller number is
 * preferred among equals. Which examples of a class these are is drawn by a seed. Both parts keep the order of the
 * examples.
 */
final class Holdout {
    /** Makes the draw independent of that of a {@link Partition} with the same seed. */
    private static final long SALT = 0x74657374_73686172L;

    private Holdout() {}

    /**
     * Divides a set.
     *
     * @throws IllegalArgumentException when the share is not between 0 and 1, or there is only one example
     */
    static LabelledDataset of(ExampleSet all, double share, long seed, String what, String sha256) {
        int tested = size(all.count(), share);
        var random = new SplittableRandom(seed ^ SALT);
        List<int[]> classes = byClass(all);
        int[] quotas = quotas(classes, all.count(), tested);
        var test = new BitSet(all.count());
        for (int c = 0; c < quotas.length; c++) {
            int[] members = classes.get(c);
            for (int i : Shuffle.draw(members.length, quotas[c], random)) {
                test.set(members[i]);
            }
        }
        var train = new BitSet(all.count());
        train.set(0, all.count());
        train.andNot(test);
        return dataset(
                new Subset(all, train.stream().toArray()),
                new Subset(all, test.stream().toArray()),
                "%s, of which %d examples were drawn for testing".formatted(what, tested),
                sha256);
    }

    /** Returns a data set whose description has the numbers of its examples. */
    static LabelledDataset dataset(ExampleSet train, ExampleSet test, String what, String sha256) {
        return new LabelledDataset(
                train,
                test,
                "%s: %d training and %d test examples of %s values in %d classes"
                        .formatted(what, train.count(), test.count(), IdxArray.text(train.shape()), train.classes()),
                sha256);
    }

    /**
     * Returns how many of {@code count} are held back, half of them rounded up.
     *
     * @throws IllegalArgumentException when it cannot be done
     */
    static int size(int count, double share) {
        if (!(share > 0 && share < 1)) {
            throw new IllegalArgumentException("a test share of %s; between 0 and 1 is possible".formatted(share));
        }
        if (count < 2) {
            throw new IllegalArgumentException(
                    "%d example cannot be divided into one for training and one for testing".formatted(count));
        }
        int rounded = BigDecimal.valueOf(share)
                .multiply(BigDecimal.valueOf(count))
                .setScale(0, RoundingMode.HALF_UP)
                .intValueExact();
        return Math.clamp(rounded, 1, count - 1);
    }

    /** Returns the examples of each class that has some: memory is for examples, not for the largest label. */
    private static List<int[]> byClass(ExampleSet all) {
        var keys = new long[all.count()];
        Arrays.setAll(keys, i -> (long) all.label(i) << Integer.SIZE | i);
        Arrays.sort(keys);
        var classes = new ArrayList<int[]>();
        int from = 0;
        for (int to = 1; to <= keys.length; to++) {
            if (to == keys.length || keys[to] >> Integer.SIZE != keys[from] >> Integer.SIZE) {
                classes.add(
                        Arrays.stream(keys, from, to).mapToInt(key -> (int) key).toArray());
                from = to;
            }
        }
        return classes;
    }

    private static int[] quotas(List<int[]> classes, int count, int tested) {
        var quotas = new int[classes.size()];
        var remainders = new long[classes.size()];
        for (int c = 0; c < quotas.length; c++) {
            long share = (long) classes.get(c).length * tested;
            quotas[c] = (int) (share / count);
            remainders[c] = share % count;
        }
        int left = tested - Arrays.stream(quotas).sum();
        var order = new ArrayList<>(IntStream.range(0, quotas.length).boxed().toList());
        order.sort(Comparator.comparingLong((Integer c) -> -remainders[c])); // stable
        order.subList(0, left).forEach(c -> quotas[c]++);
        return quotas;
    }
}
