package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.Test;

class ArraySetTest {
    private final float[] values = {1, 2, 3, 4, 5, 6};
    private final int[] labels = {1, 0, 300};
    private final ArraySet set = new ArraySet(List.of(2), 301, values, labels);

    @Test
    void saysWhatItHolds() {
        assertThat(set.count()).isEqualTo(3);
        assertThat(set.shape()).containsExactly(2);
        assertThat(set.size()).isEqualTo(2);
        assertThat(set.classes()).isEqualTo(301);
        assertThat(set.label(2)).isEqualTo(300);
        assertThat(set.group(0)).isEmpty();
        assertThat(set).hasToString("3 examples of 2 values in 301 classes");
        assertThat(new ArraySet(List.of(1, 1, 2), 301, values, labels))
                .hasToString("3 examples of 1 x 1 x 2 values in 301 classes");
    }

    @Test
    void valuesAreCopiedToArraysAndToNativeMemory() {
        var into = new float[4];
        set.copyTo(1, into, 1);
        assertThat(into).containsExactly(0, 3, 4, 0);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment outside = arena.allocate(ValueLayout.JAVA_FLOAT, 3);
            set.copyTo(2, outside, 1);
            assertThat(outside.toArray(ValueLayout.JAVA_FLOAT)).containsExactly(0, 5, 6);
        }
    }

    @Test
    void whatItWasMadeOfMayChange() {
        values[0] = 77;
        labels[0] = 77;
        var into = new float[2];
        set.copyTo(0, into, 0);
        assertThat(into).containsExactly(1, 2);
        assertThat(set.label(0)).isEqualTo(1);
    }

    @Test
    void nothingIsWrittenBeyondTheBounds() {
        var into = new float[4];
        for (int offset : new int[] {-1, 3, Integer.MAX_VALUE}) {
            assertThatThrownBy(() -> set.copyTo(0, into, offset)).isInstanceOf(IndexOutOfBoundsException.class);
        }
        for (int example : new int[] {-1, 3}) {
            assertThatThrownBy(() -> set.copyTo(example, into, 0)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> set.label(example)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> set.group(example)).isInstanceOf(IndexOutOfBoundsException.class);
        }
        assertThat(into).containsOnly(0);
    }

    @Test
    void everyExampleMayHaveAGroup() {
        ArraySet grouped = set.withGroups(List.of("b", "a", "b"));
        assertThat(grouped.group(0)).contains("b");
        assertThat(grouped.group(1)).contains("a");
        assertThat(grouped.label(2)).isEqualTo(300);
        assertThatThrownBy(() -> set.withGroups(List.of("a")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("1 groups for 3 examples; every example has one, or none has");
    }

    @Test
    void whatDoesNotFitTogetherIsRefused() {
        assertThatThrownBy(() -> new ArraySet(List.of(3), 301, values, labels))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("3 labels and 6 values do not fit together: an example has 3 values");
        assertThatThrownBy(() -> new ArraySet(List.of(2), 300, values, labels))
                .hasMessage("label 300 of example 2 is not among 0 to 299");
        assertThatThrownBy(() -> new ArraySet(List.of(2), 301, values, new int[] {0, -1, 1}))
                .hasMessage("label -1 of example 1 is not among 0 to 300");
        for (List<Integer> shape : List.of(List.of(-2), List.of(0, 5), List.of(1 << 20, 1 << 20), List.of(-1, -2))) {
            assertThatThrownBy(() -> new ArraySet(shape, 301, values, labels))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("are not possible");
        }
    }

    @Test
    void setsOfADatasetFitTogether() {
        var other = new ArraySet(List.of(1), 301, new float[] {1}, new int[] {1});
        assertThatThrownBy(() -> new LabelledDataset(set, other, "", ""))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("3 examples of 2 values in 301 classes for training and 1 examples of 1 values in 301"
                        + " classes for testing do not fit together");
        assertThat(new LabelledDataset(set, set, "d", "s").test()).isSameAs(set);
    }
}
