package org.fedcomuon.federation;

import java.util.Arrays;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * Who takes part in a round: a cohort of a fixed number of clients, drawn without replacement from the seed and the
 * round alone. So every process knows it, on any machine and after a restart, and drawing it takes as long as the
 * cohort is large, whatever the number of clients.
 *
 * <p>Immutable and thread-safe.
 */
final class Participation {
    /** How many draws per client of a cohort may be in vain before the rest is drawn by a look at every client. */
    private static final int PATIENCE = 16;

    private final int clients;
    private final int count;
    private final long seed;
    private final @Nullable Alias unequal;

    private Participation(int clients, int count, long seed, @Nullable Alias unequal) {
        this.clients = clients;
        this.count = count;
        this.seed = new SplittableRandom(seed).nextLong(); // rounds of neighbouring seeds have nothing in common
        this.unequal = unequal;
    }

    /** Cohorts of {@code count} clients, all equally likely. */
    static Participation of(int clients, int count, long seed) {
        return new Participation(clients, count, seed, null);
    }

    /**
     * Cohorts drawn one client after the other, each in proportion to the weights of those that are left.
     *
     * @param weights of the clients, at least {@code count} of them positive
     */
    static Participation of(double[] weights, int count, long seed) {
        return new Participation(weights.length, count, seed, new Alias(weights));
    }

    /** Returns the number of all clients. */
    int clients() {
        return clients;
    }

    /** Returns the number of clients in a cohort. */
    int count() {
        return count;
    }

    /** Returns what checkpoints say about it. */
    @Override
    public String toString() {
        return "%d of %d%s".formatted(count, clients, unequal == null ? "" : ", " + unequal);
    }

    /** Returns whether clients sit out rounds. */
    boolean isPartial() {
        return count < clients;
    }

    /** Returns the clients that take part in a round, ascending. */
    int[] cohort(long round) {
        var chosen = new int[count];
        if (!isPartial()) {
            Arrays.setAll(chosen, k -> k);
            return chosen;
        }
        var random = new SplittableRandom(seed ^ round * 0xD1342543DE82EF95L);
        if (unequal == null) {
            drawEqually(random, chosen);
        } else {
            unequal.draw(random, chosen);
        }
        Arrays.sort(chosen);
        return chosen;
    }

    /** Floyd's algorithm: every set of this size is equally likely, and one draw per client is enough. */
    private void drawEqually(SplittableRandom random, int[] chosen) {
        var taken = new IntSet(count);
        for (int i = 0; i < count; i++) {
            int last = clients - count + i;
            int drawn = random.nextInt(last + 1);
            if (!taken.add(drawn)) {
                drawn = last; // which was out of reach of all draws before
                taken.add(last);
            }
            chosen[i] = drawn;
        }
    }

    /** Draws clients in proportion to weights, in the same time for any number of them (Walker, 1977; Vose, 1991). */
    private static final class Alias {
        private final double[] weights;
        private final double[] share; // of a column, that its own client has
        private final int[] other; // who has the rest of the column

        Alias(double[] weights) {
            this.weights = weights.clone();
            int n = weights.length;
            share = new double[n];
            other = new int[n];
            double mean = Arrays.stream(weights).sum() / n;
            var small = new int[n];
            var large = new int[n];
            int smalls = 0;
            int larges = 0;
            for (int k = 0; k < n; k++) {
                share[k] = weights[k] / mean;
                if (share[k] < 1) {
                    small[smalls++] = k;
                } else {
                    large[larges++] = k;
                }
            }
            while (smalls > 0 && larges > 0) {
                int less = small[--smalls];
                int more = large[--larges];
                other[less] = more;
                share[more] -= 1 - share[less];
                if (share[more] < 1) {
                    small[smalls++] = more;
                } else {
                    large[larges++] = more;
                }
            }
            // What is left differs from 1 by rounding only, unless a weight is zero: that one must never be drawn.
            while (larges > 0) {
                share[large[--larges]] = 1;
            }
            int heaviest = 0;
            for (int k = 1; k < n; k++) {
                heaviest = weights[k] > weights[heaviest] ? k : heaviest;
            }
            while (smalls > 0) {
                int k = small[--smalls];
                share[k] = weights[k] > 0 ? 1 : 0;
                other[k] = heaviest;
            }
        }

        @Override
        public String toString() {
            return "by weights " + Sha256.of(weights).substring(0, 16);
        }

        /** Draws distinct clients; a client that is drawn again is drawn in vain. */
        void draw(SplittableRandom random, int[] chosen) {
            var taken = new IntSet(chosen.length);
            int found = 0;
            long patience = (long) PATIENCE * chosen.length;
            while (found < chosen.length && patience-- > 0) {
                int column = random.nextInt(weights.length);
                int drawn = random.nextDouble() < share[column] ? column : other[column];
                if (taken.add(drawn)) {
                    chosen[found++] = drawn;
                }
            }
            if (found < chosen.length) {
                race(random, taken, chosen, found);
            }
        }

        /**
         * Draws the rest from all that are left: the clients that come first if each takes an exponential time with its
         * weight as the rate, which is the same distribution.
         */
        private void race(SplittableRandom random, IntSet taken, int[] chosen, int found) {
            var times = new double[weights.length];
            for (int k = 0; k < times.length; k++) {
                double time = -Math.log(1 - random.nextDouble()) / weights[k]; // NaN or infinity for a weight of zero
                times[k] = weights[k] > 0 && !taken.contains(k) ? time : Double.POSITIVE_INFINITY;
            }
            Integer[] order = new Integer[weights.length];
            Arrays.setAll(order, k -> k);
            Arrays.sort(order, (a, b) -> Double.compare(times[a], times[b])); // stable
            for (int i = 0; found < chosen.length; i++) {
                chosen[found++] = order[i];
            }
        }
    }

    /** A few distinct numbers that are not negative. */
    private static final class IntSet {
        private final int[] slots; // a number plus one, or 0
        private final int mask;

        IntSet(int most) {
            slots = new int[Integer.highestOneBit(Math.max(4, 4 * most)) * 2];
            mask = slots.length - 1;
        }

        boolean contains(int value) {
            return slots[find(value)] != 0;
        }

        /** Returns whether it was new. */
        boolean add(int value) {
            int at = find(value);
            if (slots[at] != 0) {
                return false;
            }
            slots[at] = value + 1;
            return true;
        }

        private int find(int value) {
            int at = ((value * 0x9E3779B9) >>> 7) & mask;
            while (slots[at] != 0 && slots[at] != value + 1) {
                at = (at + 1) & mask;
            }
            return at;
        }
    }
}
