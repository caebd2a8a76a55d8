package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.problem.Sample.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BatchesTest {
    private static Sample sample(long draw) {
        return new Sample(42, 3, Stream.INNER, draw);
    }

    /** Images that are not numbered from 0. */
    private static int[] images(int count) {
        return IntStream.range(0, count).map(i -> 1000 + 7 * i).toArray();
    }

    private static int[] epoch(Batches batches, long epoch) {
        long first = epoch * batches.batchesPerEpoch();
        return LongStream.range(first, first + batches.batchesPerEpoch())
                .mapToObj(draw -> batches.indices(sample(draw)))
                .flatMapToInt(Arrays::stream)
                .toArray();
    }

    @ParameterizedTest
    @CsvSource({"5000,20,250,20", "20,20,1,20", "60,20,3,20", "7,1,7,1", "1,1,1,1"})
    void everyEpochIsAPermutation(int count, int batch, int perEpoch, int size) {
        var batches = new Batches(images(count), batch);

        assertThat(batches.batchesPerEpoch()).isEqualTo(perEpoch);
        assertThat(batches.batchSize()).isEqualTo(size);
        for (long epoch : new long[] {0, 1, 2, 1_000_000_007}) {
            assertThat(epoch(batches, epoch)).containsExactlyInAnyOrder(box(images(count)));
        }
    }

    @Test
    void everyEpochHasAnotherOrder() {
        var batches = new Batches(images(100), 10);
        assertThat(epoch(batches, 0)).isNotEqualTo(epoch(batches, 1)).isNotEqualTo(images(100));
    }

    /** 47 images in batches of 20: seven are left over, others in every epoch. */
    @Test
    void whatIsLeftOverIsDropped() {
        var batches = new Batches(images(47), 20);

        assertThat(batches.batchesPerEpoch()).isEqualTo(2);
        Map<Integer, Integer> uses = new HashMap<>();
        for (int epoch = 0; epoch < 200; epoch++) {
            int[] used = epoch(batches, epoch);
            assertThat(used).hasSize(40).doesNotHaveDuplicates();
            Arrays.stream(used).forEach(image -> uses.merge(image, 1, Integer::sum));
        }
        assertThat(uses.keySet()).containsExactlyInAnyOrder(box(images(47)));
        assertThat(uses.values()).allMatch(count -> count > 130); // 170 on average
    }

    @Test
    void aClientWithLessThanABatchHasAllOfItInEveryBatch() {
        var batches = new Batches(images(13), 20);

        assertThat(batches.batchSize()).isEqualTo(13);
        for (long draw = 0; draw < 5; draw++) {
            assertThat(batches.indices(sample(draw))).containsExactlyInAnyOrder(box(images(13)));
        }
    }

    @Test
    void theSameSampleGivesTheSameWhateverWasAskedBefore() {
        var batches = new Batches(images(50), 8);
        List<Sample> samples = IntStream.range(0, 400)
                .mapToObj(i -> new Sample(i % 3, i % 2, i % 5 == 0 ? Stream.OUTER : Stream.INNER, i % 37))
                .toList();
        Map<Sample, int[]> first = new HashMap<>();
        samples.forEach(xi -> first.put(xi, new Batches(images(50), 8).indices(xi)));

        var shuffled = new ArrayList<>(samples);
        Collections.shuffle(shuffled, new Random(5));
        for (Sample xi : shuffled) {
            assertThat(batches.indices(xi)).as("%s", xi).isEqualTo(first.get(xi));
            assertThat(batches.indices(xi)).as("%s again", xi).isEqualTo(first.get(xi));
        }
    }

    @Test
    void seedClientAndStreamMatter() {
        var batches = new Batches(images(1000), 20);
        int[] one = batches.indices(new Sample(1, 1, Stream.INNER, 0));
        assertThat(batches.indices(new Sample(2, 1, Stream.INNER, 0))).isNotEqualTo(one);
        assertThat(batches.indices(new Sample(1, 2, Stream.INNER, 0))).isNotEqualTo(one);
        assertThat(batches.indices(new Sample(1, 1, Stream.OUTER, 0))).isNotEqualTo(one);
        assertThat(batches.indices(new Sample(1, 1, Stream.INNER, 0))).isEqualTo(one);
    }

    /** What a run was trained on has to be found again. */
    @Test
    void theNumbersDoNotDependOnTheJdk() {
        var batches = new Batches(IntStream.range(0, 10).toArray(), 4);
        assertThat(batches.indices(sample(0))).containsExactly(4, 3, 8, 6);
        assertThat(batches.indices(sample(1))).containsExactly(0, 2, 9, 1);
        assertThat(batches.indices(sample(2))).containsExactly(2, 4, 9, 0);
    }

    @Test
    void whatIsHandedInOrOutIsACopy() {
        int[] images = images(5);
        var batches = new Batches(images, 5);
        images[0] = -1;
        Arrays.fill(batches.indices(sample(0)), -1);
        assertThat(batches.indices(sample(0))).containsExactlyInAnyOrder(box(images(5)));
    }

    @Test
    void nothingToDrawFromIsRefused() {
        assertThatThrownBy(() -> new Batches(new int[0], 20)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> new Batches(images(5), 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("a batch of 0 images; at least 1 is needed");
    }

    private static Integer[] box(int[] numbers) {
        return Arrays.stream(numbers).boxed().toArray(Integer[]::new);
    }
}
