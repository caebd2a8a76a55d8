package org.fedcomuon.data;

import java.util.Arrays;
import java.util.random.RandomGenerator;

/**
 * Permutations that do not depend on the version of the JDK. Its shuffle and its bounded random numbers are not
 * specified, so both are implemented here with {@code nextLong} alone.
 */
final class Shuffle {
    private Shuffle() {}

    /**
     * Returns {@code count} different numbers below {@code n} in random order; the first of them do not depend on
     * count.
     */
    static int[] draw(int n, int count, RandomGenerator random) {
        var all = new int[n];
        for (int i = 0; i < n; i++) {
            all[i] = i;
        }
        for (int i = 0; i < count; i++) { // Fisher and Yates, from the front
            int j = i + below(n - i, random);
            int drawn = all[j];
            all[j] = all[i];
            all[i] = drawn;
        }
        return Arrays.copyOf(all, count);
    }

    /** Returns the upper half of the product, which is practically uniform, because bound is far below 2^64. */
    private static int below(int bound, RandomGenerator random) {
        return (int) Math.unsignedMultiplyHigh(random.nextLong(), bound);
    }
}
