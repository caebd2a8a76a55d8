package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.OptionalInt;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PartitionTest {
    /** The paper's. */
    private static final List<Integer> SIZES = sizes();

    private static List<Integer> sizes() {
        var sizes = new ArrayList<>(List.of(5000));
        sizes.addAll(Collections.nCopies(9, 20));
        return sizes;
    }

    private static int[] all(Partition partition) {
        return IntStream.range(0, partition.clients())
                .flatMap(k -> Arrays.stream(partition.indices(k)))
                .toArray();
    }

    @ParameterizedTest
    @ValueSource(longs = {42, 43, 0, -1, Long.MIN_VALUE})
    void clientsHaveTheirSizesAndNothingInCommon(long seed) {
        Partition partition = Partition.imbalanced(12_000, SIZES, seed);

        assertThat(partition.clients()).isEqualTo(10);
        for (int k = 0; k < 10; k++) {
            assertThat(partition.indices(k)).hasSize(SIZES.get(k));
            assertThat(partition.size(k)).isEqualTo(SIZES.get(k));
        }
        assertThat(all(partition)).hasSize(5180).doesNotHaveDuplicates();
        assertThat(Arrays.stream(all(partition))).allMatch(i -> i >= 0 && i < 12_000);
    }

    @Test
    void theSameSeedGivesTheSame() {
        assertThat(all(Partition.imbalanced(12_000, SIZES, 42)))
                .isEqualTo(all(Partition.imbalanced(12_000, SIZES, 42)));
    }

    @Test
    void anotherSeedGivesOthers() {
        int[] a = all(Partition.imbalanced(12_000, SIZES, 42));
        int[] b = all(Partition.imbalanced(12_000, SIZES, 43));

        long same = IntStream.range(0, a.length).filter(i -> a[i] == b[i]).count();
        assertThat(same).isLessThan(10); // less than one is expected
    }

    /** What they are for ever, computed by another program from the description in the README of the pool. */
    @Test
    void theNumbersDoNotDependOnTheJdk() {
        assertThat(Partition.imbalanced(60_000, List.of(5, 3), 2026).indices(0))
                .containsExactly(51471, 28298, 40041, 23088, 47497);
        assertThat(Partition.imbalanced(60_000, List.of(5, 3), 2026).indices(1)).containsExactly(43585, 57180, 48274);
        assertThat(Partition.imbalanced(10, List.of(10), 42).indices(0)).containsExactly(7, 2, 4, 5, 1, 9, 6, 3, 8, 0);
    }

    @Test
    void allOfThemCanBeDealtOut() {
        int[] everything = all(Partition.imbalanced(100, List.of(1, 99), 7));

        assertThat(everything).isNotEqualTo(IntStream.range(0, 100).toArray());
        assertThat(Arrays.stream(everything).sorted())
                .containsExactly(IntStream.range(0, 100).boxed().toArray(Integer[]::new));
    }

    /** Every image in every place equally often, up to five standard deviations. */
    @Test
    void theShuffleIsFair() {
        int n = 6;
        int trials = 60_000;
        var counts = new int[n][n];
        var random = new SplittableRandom(1);
        for (int t = 0; t < trials; t++) {
            int[] order = Shuffle.draw(n, n, random);
            for (int i = 0; i < n; i++) {
                counts[i][order[i]]++;
            }
        }
        double expected = (double) trials / n;
        double deviation = Math.sqrt(expected * (1 - 1.0 / n));
        for (int[] place : counts) {
            for (int count : place) {
                assertThat(Math.abs(count - expected)).isLessThan(5 * deviation);
            }
        }
    }

    @Test
    void whatIsHandedOutIsACopy() {
        Partition partition = Partition.imbalanced(10, List.of(3), 1);
        int[] before = partition.indices(0);
        partition.indices(0)[0] = -1;
        assertThat(partition.indices(0)).isEqualTo(before);
    }

    @Test
    void tooFewImagesAreRefused() {
        assertThatThrownBy(() -> Partition.imbalanced(5179, SIZES, 42))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("10 clients need 5180 examples together, but there are only 5179");
        assertThat(Partition.imbalanced(5180, SIZES, 42).clients()).isEqualTo(10);
        assertThatThrownBy(() -> Partition.imbalanced(100, List.of(Integer.MAX_VALUE, Integer.MAX_VALUE, 3), 42))
                .hasMessageContaining("need 4294967297 examples");
    }

    @Test
    void aClientWithoutImagesIsRefused() {
        assertThatThrownBy(() -> Partition.imbalanced(100, List.of(5, 0), 42))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("client 1 would have 0 examples; every client needs one");
        assertThatThrownBy(() -> Partition.imbalanced(100, List.of(-5, 20), 42)).hasMessageContaining("client 0");
    }

    // ---- one large client

    @ParameterizedTest
    @CsvSource({
        "1700, 10, 0.5, 854, 94",
        "16317, 10, 0.5, 8163, 906",
        "10, 10, 0.1, 1, 1",
        "20, 2, 0.3, 6, 14",
    })
    void oneHasItsShareAndTheOthersAreEqual(int available, int clients, double share, int first, int others) {
        Partition partition = Partition.oneLarge(available, clients, share, 42);

        assertThat(partition.clients()).isEqualTo(clients);
        assertThat(partition.size(0)).isEqualTo(first);
        assertThat(IntStream.range(1, clients).map(partition::size)).containsOnly(others);
        assertThat(Arrays.stream(all(partition)).sorted())
                .containsExactly(IntStream.range(0, available).boxed().toArray(Integer[]::new));
    }

    @Test
    void aSingleClientHasEverything() {
        assertThat(Partition.oneLarge(7, 1, 0.5, 42).size(0)).isEqualTo(7);
    }

    @Test
    void sharesThatLeaveNothingAreRefused() {
        assertThatThrownBy(() -> Partition.oneLarge(17, 10, 0.5, 42))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("17 are too few for 10 clients of which one has a share of 0.5; every client needs one");
        assertThat(Partition.oneLarge(18, 10, 0.5, 42).size(9)).isEqualTo(1);
        for (double share : new double[] {0, 1, -1, 2, Double.NaN}) {
            assertThatThrownBy(() -> Partition.oneLarge(100, 10, share, 42))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("a share of %s; between 0 and 1 is possible".formatted(share));
        }
        assertThatThrownBy(() -> Partition.oneLarge(100, 0, 0.5, 42)).hasMessage("0 clients; 1 is the least");
    }

    // ---- a dominant class each

    /** As many of each class, in turn. */
    private static ImageSet images(int classes, int perClass) {
        var labels = new byte[classes * perClass];
        for (int i = 0; i < labels.length; i++) {
            labels[i] = (byte) (i % classes);
        }
        return new ImageSet(1, 1, 1, classes, new byte[labels.length], labels);
    }

    private static int[] histogram(ImageSet images, int[] indices) {
        var histogram = new int[images.classes()];
        Arrays.stream(indices).forEach(i -> histogram[images.label(i)]++);
        return histogram;
    }

    /** The paper's: all images are used, and what is rounded off is made up for in the next class. */
    @ParameterizedTest
    @CsvSource({"0.3, 1500, 389, 388, 8", "0.5, 2500, 278, 277, 7", "0.7, 3500, 167, 166, 6", "0.1, 500, 500, 500, 0"})
    void everyClientHasItsDominantClass(double chi, int own, int more, int less, int rounded) {
        ImageSet images = images(10, 5000);
        Partition partition = Partition.dominant(images, 10, 5000, chi, 42);

        assertThat(Arrays.stream(all(partition)).sorted())
                .containsExactly(IntStream.range(0, 50_000).boxed().toArray(Integer[]::new));
        for (int k = 0; k < 10; k++) {
            int[] histogram = histogram(images, partition.indices(k));
            assertThat(histogram[k]).isEqualTo(own);
            for (int i = 1; i < 10; i++) {
                assertThat(histogram[(k + i) % 10])
                        .as("client %d, class %d", k, (k + i) % 10)
                        .isEqualTo(i <= rounded ? more : less);
            }
        }
    }

    /** Of 64 images 44.8 and 2.13 each: 44 and nine times 2 are 62, and what lost most was the dominant class. */
    @ParameterizedTest
    @CsvSource({
        "10, 9, 64, 0.7, '3 2 2 2 2 2 2 2 2 45'",
        "10, 3, 2500, 0.3, '194 194 194 750 195 195 195 195 194 194'",
        "10, 2, 1, 0.3, '0 0 1 0 0 0 0 0 0 0'",
        "10, 2, 3, 0.3, '0 0 1 1 1 0 0 0 0 0'",
        "3, 0, 7, 0.5, '3 2 2'",
        "10, 4, 7, 1, '0 0 0 0 7 0 0 0 0 0'",
        "2, 1, 10, 0.54, '5 5'",
        "2, 1, 10, 0.55, '4 6'",
    })
    void sharesAreRoundedByLargestRemainders(int classes, int dominant, int size, double chi, String counts) {
        assertThat(Partition.counts(classes, dominant, size, chi))
                .containsExactly(Arrays.stream(counts.split(" "))
                        .mapToInt(Integer::parseInt)
                        .toArray());
    }

    @Test
    void theyAreWithinOneOfTheShareAndAddUp() {
        for (int size = 1; size < 300; size += 7) {
            for (int percent = 10; percent <= 100; percent++) {
                int[] counts = Partition.counts(10, size % 10, size, percent / 100.0);
                assertThat(Arrays.stream(counts).sum()).isEqualTo(size);
                for (int c = 0; c < 10; c++) {
                    double share = c == size % 10 ? percent / 100.0 : (1 - percent / 100.0) / 9;
                    assertThat(Math.abs(counts[c] - share * size)).isLessThan(1 + 1e-9);
                }
            }
        }
    }

    @Test
    void moreClientsThanClassesShareThem() {
        ImageSet images = images(10, 5000);
        Partition partition = Partition.dominant(images, 20, 2500, 0.3, 42);

        assertThat(all(partition)).hasSize(50_000).doesNotHaveDuplicates();
        for (int k = 0; k < 20; k++) {
            assertThat(histogram(images, partition.indices(k))[k % 10]).isEqualTo(750);
        }
    }

    /** As another program deals them out, by the words of the documentation. */
    @Test
    void theDominantOnesDoNotDependOnTheJdk() {
        Partition small = Partition.dominant(images(3, 10), 3, 7, 0.5, 42);
        assertThat(small.indices(0)).containsExactly(21, 5, 16, 7, 12, 29, 6);
        assertThat(small.indices(1)).containsExactly(3, 19, 1, 20, 15, 23, 22);
        assertThat(small.indices(2)).containsExactly(26, 8, 27, 18, 14, 10, 4);

        ByteBuffer all = ByteBuffer.allocate(50_000 * Integer.BYTES);
        Arrays.stream(all(Partition.dominant(images(10, 5000), 10, 5000, 0.3, 42)))
                .forEach(all::putInt);
        assertThat(SmallMnist.sha256(all.array()))
                .isEqualTo("9d9ed94badff937e5a6ed8d06727a57ed7fe9dc9a2f0903aaf9b7ee4910b3adf");
    }

    @Test
    void anotherSeedGivesOtherDominantOnes() {
        ImageSet images = images(10, 500);
        int[] one = Partition.dominant(images, 10, 50, 0.5, 1).indices(3);
        assertThat(Partition.dominant(images, 10, 50, 0.5, 1).indices(3)).isEqualTo(one);
        assertThat(Partition.dominant(images, 10, 50, 0.5, 2).indices(3)).isNotEqualTo(one);
    }

    /** The first few images include some of every class. */
    @Test
    void aClientsImagesAreInNoOrder() {
        ImageSet images = images(10, 500);
        int[] first = Arrays.copyOf(Partition.dominant(images, 10, 500, 0.3, 1).indices(3), 100);
        assertThat(histogram(images, first)).doesNotContain(0);
    }

    @Test
    void classesWithTooFewImagesAreRefused() {
        assertThatThrownBy(() -> Partition.dominant(images(10, 5000), 5, 10_000, 0.3, 42))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "5 clients with 10000 examples each and a dominant share of 0.3 need 6110 examples of class 0,"
                                + " but there are only 5000; 8180 per client are possible");
        assertThat(Partition.dominant(images(10, 5000), 5, 8180, 0.3, 42).size(0))
                .isEqualTo(8180);
        assertThatThrownBy(() -> Partition.dominant(images(10, 5000), 5, 8181, 0.3, 42))
                .hasMessageContaining("8180 per client are possible");
        assertThatThrownBy(() -> Partition.dominant(images(10, 5), 10, Integer.MAX_VALUE, 0.3, 42))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageEndingWith("5 per client are possible");
    }

    @Test
    void sharesThatDominateNothingAreRefused() {
        for (double chi : new double[] {0, 0.09, 1.01, -1, Double.NaN, Double.POSITIVE_INFINITY}) {
            assertThatThrownBy(() -> Partition.dominant(images(10, 50), 10, 5, chi, 42))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("a dominant share of %s with 10 classes; from 1/10 to 1 is possible".formatted(chi));
        }
        assertThatThrownBy(() -> Partition.dominant(images(10, 50), 0, 5, 0.3, 42))
                .hasMessage("0 clients; 1 is the least");
        assertThatThrownBy(() -> Partition.dominant(images(10, 50), 10, 0, 0.3, 42))
                .hasMessage("every client would have 0 examples; every client needs one");
    }

    // ---- equal shares

    @ParameterizedTest
    @CsvSource({"10, 3, 4 3 3", "9, 3, 3 3 3", "3, 3, 1 1 1", "7, 1, 7", "11, 4, 3 3 3 2"})
    void equalSharesDealAllOfThemOut(int available, int clients, String sizes) {
        Partition partition = Partition.iid(available, clients, 42);
        assertThat(IntStream.range(0, clients).map(partition::size))
                .containsExactly(
                        Arrays.stream(sizes.split(" ")).map(Integer::valueOf).toArray(Integer[]::new));
        assertThat(Arrays.stream(all(partition)).sorted())
                .containsExactly(IntStream.range(0, available).boxed().toArray(Integer[]::new));
        assertThat(all(Partition.iid(available, clients, 42))).isEqualTo(all(partition));
    }

    @Test
    void equalSharesNeedAnExampleEach() {
        assertThatThrownBy(() -> Partition.iid(2, 3, 42))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("2 are too few for 3 clients; every client needs one");
        assertThatThrownBy(() -> Partition.iid(2, 0, 42)).hasMessage("0 clients; 1 is the least");
    }

    // ---- shares of classes by chance

    @ParameterizedTest
    @CsvSource({"0.3, 20, 42", "1, 20, 43", "100, 7, 0", "0.05, 5, -1", "1e6, 10, 1", "1e-6, 3, 2"})
    void everyExampleIsDealtOutOnce(double concentration, int clients, long seed) {
        ImageSet images = images(10, 500);
        Partition partition = Partition.dirichlet(images, clients, concentration, seed);
        assertThat(partition.clients()).isEqualTo(clients);
        assertThat(Arrays.stream(all(partition)).sorted())
                .containsExactly(IntStream.range(0, 5000).boxed().toArray(Integer[]::new));
        assertThat(IntStream.range(0, clients).map(partition::size)).allMatch(size -> size > 0);
        assertThat(all(Partition.dirichlet(images, clients, concentration, seed)))
                .isEqualTo(all(partition));
        assertThat(all(Partition.dirichlet(images, clients, concentration, seed + 1)))
                .isNotEqualTo(all(partition));
    }

    /** The variance of a share of K clients is (K - 1) / K^2 / (K a + 1); 1000 classes are as many draws. */
    @ParameterizedTest
    @CsvSource({"0.1", "0.5", "1", "10"})
    void sharesSpreadAsTheConcentrationSays(double concentration) {
        int clients = 8;
        int perClass = 100;
        ExampleSet examples = examples(1000, perClass);
        int[][] table = Partition.dirichlet(examples, clients, concentration, 5).table(examples);
        double squares = 0;
        for (int[] row : table) {
            for (int count : row) {
                squares += Math.pow((double) count / perClass - 1.0 / clients, 2);
            }
        }
        double variance = squares / (clients * 1000.0);
        double right = (clients - 1.0) / (clients * clients) / (clients * concentration + 1);
        assertThat(variance / right).isBetween(0.9, 1.1);
    }

    private static ExampleSet examples(int classes, int perClass) {
        int[] labels =
                IntStream.range(0, classes * perClass).map(i -> i % classes).toArray();
        return new ArraySet(List.of(1), classes, new float[labels.length], labels);
    }

    @Test
    void spreadGrowsAsTheConcentrationFalls() {
        ImageSet images = images(10, 500);
        double before = 0;
        for (double concentration : new double[] {100, 10, 1, 0.1}) {
            int[][] table = Partition.dirichlet(images, 10, concentration, 3).table(images);
            double squares = Arrays.stream(table)
                    .flatMapToInt(Arrays::stream)
                    .mapToDouble(count -> (count - 50.0) * (count - 50.0))
                    .sum();
            assertThat(squares).isGreaterThan(2 * before);
            before = squares;
        }
    }

    /** As another program deals them out, by the words of the documentation. */
    @Test
    void theSharesDoNotDependOnTheJdk() {
        ImageSet images = images(3, 10);
        Partition partition = Partition.dirichlet(images, 3, 0.5, 42);
        assertThat(partition.table(images)).isDeepEqualTo(new int[][] {{8, 1, 0}, {2, 1, 3}, {0, 8, 7}});
        assertThat(partition.indices(0)).containsExactly(9, 21, 12, 6, 27, 18, 3, 7, 15);
    }

    @Test
    void sharesAreRounded() {
        assertThat(Partition.rounded(new double[] {0.5, 0.25, 0.25}, 5)).containsExactly(3, 1, 1);
        assertThat(Partition.rounded(new double[] {0.1, 0.45, 0.45}, 3)).containsExactly(0, 2, 1);
        assertThat(Partition.rounded(new double[] {0.25, 0.25, 0.25, 0.25}, 2)).containsExactly(1, 1, 0, 0);
        assertThat(Partition.rounded(new double[] {1.0000000000000002, 0}, 7)).containsExactly(7, 0);
        assertThat(Partition.rounded(new double[] {0.3, 0.7}, 0)).containsExactly(0, 0);
    }

    /** What the message suggests is true. */
    @Test
    void clientsWithoutExamplesAreRefused() {
        ImageSet images = images(2, 50);
        assertThatThrownBy(() -> Partition.dirichlet(images, 20, 0.01, 42))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageMatching("a concentration of 0\\.01 leaves clients without examples in each of 100 draws, in"
                        + " the last clients .*, \\.\\.\\.; a concentration of 0.32 or 2 clients would do");
        assertThat(Partition.dirichlet(images, 20, 0.32, 42).clients()).isEqualTo(20);
        assertThat(Partition.dirichlet(images, 2, 0.01, 42).clients()).isEqualTo(2);
        assertThatThrownBy(() -> Partition.dirichlet(images, 101, 1, 42))
                .hasMessage("100 are too few for 101 clients; every client needs one");
        assertThatThrownBy(() -> Partition.dirichlet(images(10, 1), 10, 1, 42))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("without examples");
        for (double concentration : new double[] {0, -1, 1e-7, 1e7, Double.NaN}) {
            assertThatThrownBy(() -> Partition.dirichlet(images, 2, concentration, 42))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("a concentration of %s; from 1.0E-6 to 1000000.0 is possible".formatted(concentration));
        }
    }

    // ---- groups

    private static ArraySet grouped(String... groups) {
        return new ArraySet(List.of(1), 2, new float[groups.length], new int[groups.length])
                .withGroups(List.of(groups));
    }

    @Test
    void everyGroupIsAClient() {
        ArraySet set = grouped("b", "a", "b", "C", "b");
        Partition partition = Partition.byGroup(set, OptionalInt.empty());
        assertThat(Partition.groups(set)).containsExactly("C", "a", "b");
        assertThat(partition.clients()).isEqualTo(3);
        assertThat(partition.indices(0)).containsExactly(3);
        assertThat(partition.indices(1)).containsExactly(1);
        assertThat(partition.indices(2)).containsExactly(0, 2, 4);
        assertThat(Partition.byGroup(set, OptionalInt.of(3)).clients()).isEqualTo(3);
        assertThat(Partition.groups(grouped("10", "9", "-1"))).containsExactly("-1", "9", "10");
        assertThat(Partition.groups(grouped("10", "9", "x"))).containsExactly("10", "9", "x");
    }

    @Test
    void groupsThatAreNotThereAreRefused() {
        assertThatThrownBy(() -> Partition.byGroup(grouped("a", "b"), OptionalInt.of(10)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("10 clients, but the data have 2 groups, which are a client each; leave clients out, or set"
                        + " 2");
        assertThatThrownBy(() -> Partition.byGroup(images(2, 2), OptionalInt.empty()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("the data do not say which client an example belongs to; name a column for it");
    }

    @Test
    void theTableCountsClasses() {
        ImageSet images = images(3, 4);
        int[][] table = Partition.imbalanced(12, List.of(5, 2), 42).table(images);
        assertThat(table).hasDimensions(2, 3);
        assertThat(Arrays.stream(table[0]).sum()).isEqualTo(5);
        assertThat(Arrays.stream(table[1]).sum()).isEqualTo(2);
        assertThat(table[1])
                .isEqualTo(histogram(
                        images, Partition.imbalanced(12, List.of(5, 2), 42).indices(1)));
    }
}
