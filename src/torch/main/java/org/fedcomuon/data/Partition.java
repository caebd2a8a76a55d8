package org.fedcomuon.data;

import static java.util.stream.Collectors.joining;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.SplittableRandom;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;

/** A partition of examples, or of blocks of text, among clients. None belongs to two clients. Immutable. */
public final class Partition {
    /** How often {@link #dirichlet} draws shares before it gives up. */
    static final int MOST_DRAWS = 100;

    /** The least that {@link #dirichlet} takes: every class belongs to one client. */
    static final double LEAST_CONCENTRATION = 1e-6;

    /** The most that {@link #dirichlet} takes: all clients have equal shares. */
    static final double MOST_CONCENTRATION = 1e6;

    private final List<int[]> clients;

    /** Owns the arrays, which have no example in common. */
    Partition(List<int[]> clients) {
        this.clients = clients;
    }

    /**
     * Deals examples out at random, {@code sizes.get(k)} to client k; the paper's split of MNIST is 5000 to one client
     * and 20 to each of nine others.
     *
     * @param available how many examples there are
     * @param seed equal seeds give equal partitions
     * @throws IllegalArgumentException when there are too few examples
     */
    public static Partition imbalanced(int available, List<Integer> sizes, long seed) {
        long total = 0;
        for (int k = 0; k < sizes.size(); k++) {
            if (sizes.get(k) < 1) {
                throw new IllegalArgumentException(
                        "client %d would have %d examples; every client needs one".formatted(k, sizes.get(k)));
            }
            total += sizes.get(k);
        }
        if (total > available) {
            throw new IllegalArgumentException("%d clients need %d examples together, but there are only %d"
                    .formatted(sizes.size(), total, available));
        }
        int[] examples = Shuffle.draw(available, (int) total, new SplittableRandom(seed));
        var clients = new ArrayList<int[]>();
        int at = 0;
        for (int size : sizes) {
            clients.add(Arrays.copyOfRange(examples, at, at + size));
            at += size;
        }
        return new Partition(clients);
    }

    /**
     * Deals all of them out at random, so that the first client has a share of about {@code share} and the others have
     * equal shares of the rest; the paper's split of WikiText-2 is half of the blocks to one client. The remainder goes
     * to the first client.
     *
     * @param available how many examples, or blocks of text, there are
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
     * Deals all of them out at random, equally many to each client; what is left over goes to the first clients, one to
     * each.
     *
     * @param available how many examples, or blocks of text, there are
     * @param seed equal seeds give equal partitions
     * @throws IllegalArgumentException when there are fewer than clients
     */
    public static Partition iid(int available, int clients, long seed) {
        requireClients(clients);
        var sizes = new ArrayList<Integer>();
        for (int k = 0; k < clients; k++) {
            sizes.add(available / clients + (k < available % clients ? 1 : 0));
        }
        if (available < clients) {
            throw new IllegalArgumentException(
                    "%d are too few for %d clients; every client needs one".formatted(available, clients));
        }
        return imbalanced(available, sizes, seed);
    }

    /**
     * Deals all examples out so that the shares of the clients in each class are drawn from a symmetric Dirichlet
     * distribution: the smaller its concentration, the fewer clients share a class. Shares are rounded to whole numbers
     * of examples by the largest remainder method, where the client with the smaller number is preferred among equals.
     *
     * <p>Every client needs an example. If a client has none, all shares are drawn anew, up to {@value #MOST_DRAWS}
     * times.
     *
     * @param concentration from {@value #LEAST_CONCENTRATION} to {@value #MOST_CONCENTRATION}; 0.1 to 1 are usual
     * @param seed equal seeds give equal partitions
     * @throws IllegalArgumentException when a client remains without an example; the message says with which
     *     concentration or how many clients none does
     */
    public static Partition dirichlet(ExampleSet examples, int clients, double concentration, long seed) {
        requireClients(clients);
        if (!(concentration >= LEAST_CONCENTRATION && concentration <= MOST_CONCENTRATION)) {
            throw new IllegalArgumentException("a concentration of %s; from %s to %s is possible"
                    .formatted(concentration, LEAST_CONCENTRATION, MOST_CONCENTRATION));
        }
        if (examples.count() < clients) {
            throw new IllegalArgumentException(
                    "%d are too few for %d clients; every client needs one".formatted(examples.count(), clients));
        }
        var random = new SplittableRandom(seed);
        List<int[]> pools = byClass(examples, random);
        int[][] counts = dirichletCounts(pools, clients, concentration, random);
        if (empty(counts).length > 0) {
            OptionalDouble enough = enoughConcentration(pools, clients, concentration, seed);
            throw new IllegalArgumentException(
                    "a concentration of %s leaves clients without examples in each of %d draws, in the last %s; %s%d clients would do"
                            .formatted(
                                    concentration,
                                    MOST_DRAWS,
                                    name(empty(counts)),
                                    enough.isPresent()
                                            ? "a concentration of %s or ".formatted(enough.getAsDouble())
                                            : "",
                                    enoughClients(pools, clients, concentration, seed)));
        }
        var used = new int[pools.size()];
        var dealt = new ArrayList<int[]>();
        for (int k = 0; k < clients; k++) {
            var own = new int[Arrays.stream(counts[k]).sum()];
            int at = 0;
            for (int c = 0; c < used.length; c++) {
                System.arraycopy(pools.get(c), used[c], own, at, counts[k][c]);
                used[c] += counts[k][c];
                at += counts[k][c];
            }
            dealt.add(mixed(own, random));
        }
        return new Partition(dealt);
    }

    /** Returns counts by client and class: the first in which no client is empty, or else the last of all draws. */
    private static int[][] dirichletCounts(
            List<int[]> pools, int clients, double concentration, SplittableRandom random) {
        var counts = new int[clients][pools.size()];
        for (int draw = 0; draw < MOST_DRAWS; draw++) {
            for (int c = 0; c < pools.size(); c++) {
                int[] ofClass = rounded(Dirichlet.draw(clients, concentration, random), pools.get(c).length);
                for (int k = 0; k < clients; k++) {
                    counts[k][c] = ofClass[k];
                }
            }
            if (empty(counts).length == 0) {
                return counts;
            }
        }
        return counts;
    }

    /** Returns whole numbers in proportion to shares whose sum is 1. */
    static int[] rounded(double[] shares, int total) {
        var counts = new int[shares.length];
        var remainders = new double[shares.length];
        int left = total;
        for (int k = 0; k < shares.length; k++) {
            counts[k] = (int) Math.min(shares[k] * total, left); // the sum of shares may be a bit above 1
            remainders[k] = shares[k] * total - counts[k];
            left -= counts[k];
        }
        List<Integer> order = IntStream.range(0, shares.length)
                .boxed()
                .sorted(Comparator.comparingDouble((Integer k) -> -remainders[k])) // stable
                .toList();
        for (int i = 0; i < left; i++) {
            counts[order.get(i % order.size())]++;
        }
        return counts;
    }

    private static int[] empty(int[][] counts) {
        return IntStream.range(0, counts.length)
                .filter(k -> Arrays.stream(counts[k]).allMatch(count -> count == 0))
                .toArray();
    }

    private static String name(int[] clients) {
        int shown = 5;
        String names =
                Arrays.stream(clients).limit(shown).mapToObj(String::valueOf).collect(joining(", "));
        return (clients.length == 1 ? "client " : "clients ") + names + (clients.length > shown ? ", ..." : "");
    }

    /** Returns the first of twice, four times, ... the concentration with which no client is empty, if there is one. */
    private static OptionalDouble enoughConcentration(List<int[]> pools, int clients, double concentration, long seed) {
        return DoubleStream.iterate(2 * concentration, each -> each <= MOST_CONCENTRATION, each -> 2 * each)
                .filter(each -> suffices(pools, clients, each, seed))
                .findFirst();
    }

    /** Returns the first of a half, a quarter, ... of the clients of which none is empty. */
    private static int enoughClients(List<int[]> pools, int clients, double concentration, long seed) {
        int enough = clients;
        do {
            enough /= 2;
        } while (enough > 1 && !suffices(pools, enough, concentration, seed));
        return enough;
    }

    private static boolean suffices(List<int[]> pools, int clients, double concentration, long seed) {
        var random = new SplittableRandom(seed);
        for (int[] pool : pools) { // as often as byClass draws
            Shuffle.draw(pool.length, pool.length, random);
        }
        return empty(dirichletCounts(pools, clients, concentration, random)).length == 0;
    }

    /**
     * Deals examples of two classes out so that every client has {@code size} of them, client k a share of
     * {@code shares[k % shares.length]} positive ones, rounded, but at least one of each class.
     *
     * @param examples of classes 0 and 1
     * @param seed equal seeds give equal partitions
     * @throws IllegalArgumentException when there are too few examples of a class
     */
    public static Partition byShares(ExampleSet examples, int clients, int size, List<Double> shares, long seed) {
        requireClients(clients);
        if (examples.classes() != 2) {
            throw new IllegalArgumentException("%d classes; exactly 2 are needed".formatted(examples.classes()));
        }
        if (size < 2 || shares.isEmpty() || shares.stream().anyMatch(share -> !(share > 0 && share < 1))) {
            throw new IllegalArgumentException(
                    "%d examples per client with shares of %s; at least 2 and shares between 0 and 1 are needed"
                            .formatted(size, shares));
        }
        List<int[]> pools = byClass(examples, new SplittableRandom(seed));
        var random = new SplittableRandom(~seed);
        var used = new int[2];
        var dealt = new ArrayList<int[]>();
        for (int k = 0; k < clients; k++) {
            int positives = Math.clamp(Math.round(size * shares.get(k % shares.size())), 1, size - 1);
            int[] counts = {size - positives, positives};
            var own = new int[size];
            for (int c = 0, at = 0; c < 2; at += counts[c], c++) {
                if (used[c] + counts[c] > pools.get(c).length) {
                    throw new IllegalArgumentException(
                            "client %d would need %d examples of class %d, but of %d only %d are left"
                                    .formatted(k, counts[c], c, pools.get(c).length, pools.get(c).length - used[c]));
                }
                System.arraycopy(pools.get(c), used[c], own, at, counts[c]);
                used[c] += counts[c];
            }
            int[] order = Shuffle.draw(size, size, random); // so that a client's examples are not grouped by class
            dealt.add(Arrays.stream(order).map(i -> own[i]).toArray());
        }
        return new Partition(dealt);
    }

    /**
     * Gives every client the examples of one group, which the data name, such as a column of a table. Clients are in
     * the order of {@link #groups}.
     *
     * @param clients how many there should be, if somebody has said so
     * @throws IllegalArgumentException when the data name no groups, or another number of them
     */
    public static Partition byGroup(ExampleSet examples, OptionalInt clients) {
        List<String> groups = groups(examples);
        if (clients.isPresent() && clients.getAsInt() != groups.size()) {
            throw new IllegalArgumentException(
                    "%d clients, but the data have %d groups, which are a client each; leave clients out, or set %d"
                            .formatted(clients.getAsInt(), groups.size(), groups.size()));
        }
        Map<String, Integer> numbers = new HashMap<>();
        groups.forEach(group -> numbers.put(group, numbers.size()));
        int[] client = IntStream.range(0, examples.count())
                .map(i -> Objects.requireNonNull(numbers.get(group(examples, i))))
                .toArray();
        var sizes = new int[groups.size()];
        Arrays.stream(client).forEach(k -> sizes[k]++);
        List<int[]> dealt = Arrays.stream(sizes).mapToObj(int[]::new).toList();
        for (int i = client.length - 1; i >= 0; i--) {
            dealt.get(client[i])[--sizes[client[i]]] = i;
        }
        return new Partition(dealt);
    }

    /**
     * Returns the names of the groups of a set: in ascending order if all of them are whole numbers, otherwise in the
     * order of their characters.
     *
     * @throws IllegalArgumentException when an example belongs to no group
     */
    public static List<String> groups(ExampleSet examples) {
        List<String> names = IntStream.range(0, examples.count())
                .mapToObj(i -> group(examples, i))
                .distinct()
                .sorted()
                .toList();
        return names.stream().allMatch(name -> name.matches("-?[0-9]{1,18}"))
                ? names.stream()
                        .sorted(Comparator.comparingLong(Long::parseLong))
                        .toList()
                : names;
    }

    private static String group(ExampleSet examples, int example) {
        return examples.group(example)
                .orElseThrow(() -> new IllegalArgumentException(
                        "the data do not say which client an example belongs to; name a column for it"));
    }

    /**
     * Deals examples out so that every client has {@code size} of them, client k a share of {@code chi} from class k
     * modulo the number of classes, and equally many from every other one. Shares are rounded to whole numbers of
     * examples by the largest remainder method. Ties go to the dominant class first and then to the classes that follow
     * it cyclically, so that no class is favoured over all clients.
     *
     * @param chi the share of the dominant class, at least that of every other class
     * @param seed equal seeds give equal partitions
     * @throws IllegalArgumentException when there are too few examples of a class
     */
    public static Partition dominant(ExampleSet examples, int clients, int size, double chi, long seed) {
        requireClients(clients);
        int classes = examples.classes();
        if (size < 1) {
            throw new IllegalArgumentException(
                    "every client would have %d examples; every client needs one".formatted(size));
        }
        if (classes < 2 || !(chi <= 1 && chi * classes >= 1 - 1e-9)) {
            throw new IllegalArgumentException("a dominant share of %s with %d classes; from 1/%d to 1 is possible"
                    .formatted(chi, classes, classes));
        }
        List<int[]> pools = byClass(examples, new SplittableRandom(seed));
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
            dealt.add(mixed(own, random));
        }
        return new Partition(dealt);
    }

    /** Returns them in random order, so that the examples of a client are not grouped by class. */
    private static int[] mixed(int[] own, SplittableRandom random) {
        return Arrays.stream(Shuffle.draw(own.length, own.length, random))
                .map(i -> own[i])
                .toArray();
    }

    /** Returns the number of examples of each class for a client whose dominant class is {@code dominant}. */
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

    /** Returns the examples of each class, in random order. */
    private static List<int[]> byClass(ExampleSet examples, SplittableRandom random) {
        var sizes = new int[examples.classes()];
        for (int i = 0; i < examples.count(); i++) {
            sizes[examples.label(i)]++;
        }
        List<int[]> pools = Arrays.stream(sizes).mapToObj(int[]::new).toList();
        for (int i = examples.count() - 1; i >= 0; i--) {
            int label = examples.label(i);
            pools.get(label)[--sizes[label]] = i;
        }
        for (int[] pool : pools) {
            int[] ordered = pool.clone();
            int[] order = Shuffle.draw(pool.length, pool.length, random);
            Arrays.setAll(pool, i -> ordered[order[i]]);
        }
        return pools;
    }

    private static void requireEnough(List<int[]> pools, int clients, int size, double chi) {
        long[] needed = needed(pools.size(), clients, size, chi);
        for (int c = 0; c < needed.length; c++) {
            if (needed[c] > pools.get(c).length) {
                throw new IllegalArgumentException(
                        ("%d clients with %d examples each and a dominant share of %s need %d"
                                        + " examples of class %d, but there are only %d; %d per client are possible")
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

    /** Returns the largest size below {@code size} for which there are enough examples. */
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

    /** Returns the number of examples of each class that all clients need together. */
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

    /**
     * Counts the examples of each class that each client has, for reports.
     *
     * @param examples the set that was dealt out
     * @return a row per client, with a count per class
     */
    public int[][] table(ExampleSet examples) {
        var table = new int[clients()][examples.classes()];
        for (int k = 0; k < table.length; k++) {
            for (int i : clients.get(k)) {
                table[k][examples.label(i)]++;
            }
        }
        return table;
    }

    /** Returns the number of clients. */
    public int clients() {
        return clients.size();
    }

    /** Returns the number of examples of {@code client}. */
    public int size(int client) {
        return clients.get(client).length;
    }

    /** Returns the number of examples of all clients. */
    public long total() {
        return clients.stream().mapToLong(own -> own.length).sum();
    }

    /** Returns the indices of the examples of {@code client}, in no particular order. */
    public int[] indices(int client) {
        return clients.get(client).clone();
    }
}
