package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.problem.Sample.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TwoClassBatchesTest {
    /** Every fifth of a hundred is positive. */
    private static final ExampleSet SET = new ArraySet(
            List.of(1),
            2,
            new float[100],
            IntStream.range(0, 100).map(i -> i % 5 == 0 ? 1 : 0).toArray());

    private static final int[] ALL = IntStream.range(0, 100).toArray();

    private static Sample sample(long draw) {
        return new Sample(42, 3, Stream.INNER, draw);
    }

    @ParameterizedTest
    @CsvSource({
        "10, 0.5, 5, 5",
        "8, 0.25, 2, 6",
        "2, 0.5, 1, 1",
        "10, 0.001, 1, 9",
        "10, 0.999, 9, 1",
        "60, 0.5, 20, 30",
        "3, 0.5, 2, 1",
        "400, 0.5, 20, 80"
    })
    void everyBatchHasBothClasses(int batch, double share, int positive, int negative) {
        var batches = new TwoClassBatches(SET::label, 0, ALL, batch, share);
        assertThat(batches.batchSize()).isEqualTo(positive + negative);
        assertThat(batches.positives()).isEqualTo(positive);
        for (long draw = 0; draw < 50; draw++) {
            int[] drawn = batches.indices(sample(draw));
            assertThat(drawn).hasSize(positive + negative).doesNotHaveDuplicates();
            assertThat(Arrays.stream(drawn, 0, positive)).allMatch(i -> SET.label(i) == 1);
            assertThat(Arrays.stream(drawn, positive, drawn.length)).allMatch(i -> SET.label(i) == 0);
        }
    }

    /** 20 positive ones in fours are 5 batches, 80 negative ones in sixteens as well. */
    @Test
    void eachClassIsDrawnWithoutReplacement() {
        var batches = new TwoClassBatches(SET::label, 0, ALL, 20, 0.2);
        for (int epoch = 0; epoch < 3; epoch++) {
            Set<Integer> seen = new HashSet<>();
            for (int i = 0; i < 5; i++) {
                Arrays.stream(batches.indices(sample(5 * epoch + i))).forEach(seen::add);
            }
            assertThat(seen).hasSize(100);
        }
        var halves = new TwoClassBatches(SET::label, 0, ALL, 20, 0.5);
        Set<Integer> positive = new HashSet<>();
        Set<Integer> negative = new HashSet<>();
        for (int i = 0; i < 8; i++) {
            int[] drawn = halves.indices(sample(i));
            Arrays.stream(drawn, 0, 10).forEach(positive::add);
            Arrays.stream(drawn, 10, 20).forEach(negative::add);
            assertThat(positive).hasSize(i == 0 ? 10 : 20); // two batches are an epoch
            assertThat(negative).hasSize(10 * (i + 1));
        }
    }

    @Test
    void onlyTheSampleMatters() {
        var batches = new TwoClassBatches(SET::label, 0, ALL, 20, 0.5);
        int[] first = batches.indices(sample(7));
        batches.indices(sample(1000));
        assertThat(batches.indices(sample(7))).isEqualTo(first);
        assertThat(new TwoClassBatches(SET::label, 0, ALL, 20, 0.5).indices(sample(7)))
                .isEqualTo(first);
        assertThat(batches.indices(new Sample(42, 3, Stream.OUTER, 7))).isNotEqualTo(first);
    }

    /** Where there are as many of one class as of the other, they do not come in the same order. */
    @Test
    void theOrdersOfBothClassesAreIndependent() {
        var even = new ArraySet(
                List.of(1),
                2,
                new float[100],
                IntStream.range(0, 100).map(i -> i % 2).toArray());
        int[] drawn = new TwoClassBatches(even::label, 0, ALL, 100, 0.5).indices(sample(0));
        long same = IntStream.range(0, 50)
                .filter(i -> drawn[i] == drawn[50 + i] + 1)
                .count();
        assertThat(same).isLessThan(8); // one is expected
    }

    @Test
    void aClientWithoutAClassIsRefused() {
        int[] positive = {0, 5, 10};
        int[] negative = {1, 2};
        assertThatThrownBy(() -> new TwoClassBatches(SET::label, 7, positive, 10, 0.5))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith(
                        "client 7 has no negative example among its 3; every client needs examples of both");
        assertThatThrownBy(() -> new TwoClassBatches(SET::label, 8, negative, 10, 0.5))
                .hasMessageStartingWith("client 8 has no positive example among its 2;");
    }

    @Test
    void whatCannotBeIsRefused() {
        assertThatThrownBy(() -> new TwoClassBatches(i -> i, 0, new int[] {0, 1, 2}, 2, 0.5))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("example 2 has class 2; of two classes 0 and 1 are possible");
        assertThatThrownBy(() -> new TwoClassBatches(SET::label, 0, ALL, 1, 0.5))
                .hasMessage("a batch of 1 examples; at least 2 are needed, one of each class");
        for (double share : new double[] {0, 1, -1, Double.NaN}) {
            assertThatThrownBy(() -> new TwoClassBatches(SET::label, 0, ALL, 10, share))
                    .hasMessage("a share of %s positive examples; between 0 and 1 is possible".formatted(share));
        }
    }
}
