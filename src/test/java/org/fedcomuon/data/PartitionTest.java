package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
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
                .hasMessage("10 clients need 5180 images together, but only 5179 are there");
        assertThat(Partition.imbalanced(5180, SIZES, 42).clients()).isEqualTo(10);
        assertThatThrownBy(() -> Partition.imbalanced(100, List.of(Integer.MAX_VALUE, Integer.MAX_VALUE, 3), 42))
                .hasMessageContaining("need 4294967297 images");
    }

    @Test
    void aClientWithoutImagesIsRefused() {
        assertThatThrownBy(() -> Partition.imbalanced(100, List.of(5, 0), 42))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("client 1 would have 0 images; every client needs one");
        assertThatThrownBy(() -> Partition.imbalanced(100, List.of(-5, 20), 42)).hasMessageContaining("client 0");
    }
}
