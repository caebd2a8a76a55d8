package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.HashSet;
import java.util.stream.IntStream;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.problem.Sample.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class EpisodesTest {
    private static Sample sample(long draw) {
        return new Sample(42, 3, Stream.INNER, draw);
    }

    private static int[] images(int count) {
        return IntStream.range(0, count).map(i -> 1000 + 7 * i).toArray();
    }

    @ParameterizedTest
    @CsvSource({"5000, 64, 64, 39", "128, 64, 64, 1", "127, 64, 64, 1", "100, 5, 20, 4", "47, 20, 1, 2", "2, 1, 1, 1"})
    void theTwoHaveNothingInCommonNorWithOthersOfTheEpoch(int count, int support, int query, int perEpoch) {
        var episodes = new Episodes(images(count), support, query);

        assertThat(episodes.perEpoch()).isEqualTo(perEpoch);
        for (long epoch : new long[] {0, 1, 1_000_000_007}) {
            var seen = new HashSet<Integer>();
            for (int i = 0; i < perEpoch; i++) {
                Sample xi = sample(epoch * perEpoch + i);
                assertThat(episodes.support(xi)).hasSize(episodes.supportSize());
                assertThat(episodes.query(xi)).hasSize(episodes.querySize());
                for (int[] batch : new int[][] {episodes.support(xi), episodes.query(xi)}) {
                    for (int image : batch) {
                        assertThat(seen.add(image)).isTrue();
                    }
                }
            }
            assertThat(seen).isSubsetOf(Arrays.stream(images(count)).boxed().toList());
        }
    }

    @ParameterizedTest
    @CsvSource({
        "128, 64, 64, 64, 64",
        "127, 64, 64, 63, 64",
        "3, 64, 64, 1, 2",
        "10, 1, 100, 1, 9",
        "10, 100, 1, 9, 1",
        "2, 1, 1000000000, 1, 1",
        "2, 1000000000, 1000000000, 1, 1",
    })
    void aClientWithTooFewHasAllOfThemInTheSameProportion(int count, int support, int query, int first, int second) {
        var episodes = new Episodes(images(count), support, query);
        assertThat(episodes.supportSize()).isEqualTo(first);
        assertThat(episodes.querySize()).isEqualTo(second);
    }

    @Test
    void theyAreThePartsOfABatch() {
        var episodes = new Episodes(IntStream.range(0, 10).toArray(), 1, 3);
        assertThat(episodes.support(sample(0))).containsExactly(4);
        assertThat(episodes.query(sample(0))).containsExactly(3, 8, 6);
        assertThat(episodes.query(sample(1))).containsExactly(2, 9, 1);
        assertThat(episodes.support(sample(1))).containsExactly(0);
    }

    @Test
    void whatCannotBeIsRefused() {
        assertThatThrownBy(() -> new Episodes(images(1), 1, 1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("a client with 1 images cannot have one for support and another for query");
        for (int[] sizes : new int[][] {{0, 1}, {1, 0}, {-1, 5}}) {
            assertThatThrownBy(() -> new Episodes(images(5), sizes[0], sizes[1]))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("a support batch of %d and a query batch of %d images; 1 is the least"
                            .formatted(sizes[0], sizes[1]));
        }
    }
}
