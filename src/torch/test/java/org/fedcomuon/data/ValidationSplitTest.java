package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What clients keep for training, and what they give for validation. */
class ValidationSplitTest {
    private static int oneClass(int example) {
        return 0;
    }

    private static List<Integer> list(int[] values) {
        return Arrays.stream(values).boxed().toList();
    }

    /** The paper's MNIST: one client with 5000 images, nine with 20. */
    @Test
    void everyClientGivesItsShareAndKeepsTheRestInOrder() {
        var sizes = new ArrayList<>(Collections.nCopies(10, 20));
        sizes.set(0, 5000);
        Partition all = Partition.imbalanced(12_000, sizes, 42);
        ValidationSplit split = ValidationSplit.of(all, 0.1, i -> i % 10, 42);
        for (int k = 0; k < 10; k++) {
            assertThat(split.held().size(k)).isEqualTo(k == 0 ? 500 : 2);
            List<Integer> own = list(all.indices(k));
            List<Integer> train = list(split.train().indices(k));
            List<Integer> held = list(split.held().indices(k));
            assertThat(train).doesNotContainAnyElementsOf(held);
            var both = new HashSet<>(train);
            both.addAll(held);
            assertThat(both).isEqualTo(new HashSet<>(own));
            assertThat(train).isEqualTo(own.stream().filter(train::contains).toList());
            assertThat(held).isEqualTo(own.stream().filter(held::contains).toList());
        }
        assertThat(split.held().total()).isEqualTo(518);
    }

    @Test
    void classesGiveTheSameShare() {
        int[] labels =
                IntStream.range(0, 100).map(i -> i < 60 ? 0 : i < 90 ? 1 : 2).toArray();
        Partition all = Partition.iid(100, 1, 7);
        ValidationSplit split = ValidationSplit.of(all, 0.2, i -> labels[i], 7);
        assertThat(list(split.held().indices(0)))
                .hasSize(20)
                .satisfies(held ->
                        assertThat(held.stream().filter(i -> labels[i] == 0)).hasSize(12))
                .satisfies(held ->
                        assertThat(held.stream().filter(i -> labels[i] == 1)).hasSize(6));
    }

    @ParameterizedTest
    @CsvSource({
        // examples, classes, share, given
        "1, 1, 0.5, 0", // the only one is for training
        "2, 1, 0.1, 1", // one at least
        "2, 2, 0.5, 0", // each is the only one of its class
        "3, 2, 0.9, 1",
        "20, 10, 0.1, 2",
        "20, 20, 0.5, 0",
        "21, 20, 0.5, 1",
        "5, 1, 0.1, 1",
        "4, 1, 0.99, 3",
        "15, 1, 0.1, 2" // half up
    })
    void everyClassKeepsAnExample(int examples, int classes, double share, int given) {
        ValidationSplit split = ValidationSplit.of(Partition.iid(examples, 1, 3), share, i -> i % classes, 3);
        assertThat(split.held().total()).isEqualTo(given);
        assertThat(Arrays.stream(split.train().indices(0)).map(i -> i % classes).distinct())
                .hasSize(classes);
    }

    @Test
    void quotasNeverTakeAWholeClass() {
        assertThat(ValidationSplit.quotas(new int[] {1, 1, 8}, 5)).containsExactly(0, 0, 5);
        assertThat(ValidationSplit.quotas(new int[] {2, 2, 2}, 3)).containsExactly(1, 1, 1);
        assertThat(ValidationSplit.quotas(new int[] {5}, 0)).containsExactly(0);
    }

    @Test
    void theSeedDecides() {
        Partition all = Partition.iid(200, 4, 1);
        ValidationSplit one = ValidationSplit.of(all, 0.25, ValidationSplitTest::oneClass, 1);
        ValidationSplit same = ValidationSplit.of(all, 0.25, ValidationSplitTest::oneClass, 1);
        ValidationSplit other = ValidationSplit.of(all, 0.25, ValidationSplitTest::oneClass, 2);
        assertThat(one.held().indices(2)).isEqualTo(same.held().indices(2));
        assertThat(one.held().indices(2)).isNotEqualTo(other.held().indices(2));
    }

    @Test
    void withoutAShareClientsKeepAll() {
        Partition all = Partition.iid(30, 3, 1);
        ValidationSplit none = ValidationSplit.none(all);
        assertThat(none.train()).isSameAs(all);
        assertThat(none.held().clients()).isEqualTo(3);
        assertThat(none.held().total()).isZero();
    }
}
