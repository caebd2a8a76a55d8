package org.fedcomuon.problem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class FloatsTest {
    @Test
    void isAViewOfTheArray() {
        float[] values = {1, 2, 3};
        Floats floats = Floats.of(values);
        assertThat(floats.length()).isEqualTo(3);
        assertThat(floats.get(1)).isEqualTo(2);
        floats.set(1, 0.1);
        assertThat(values).containsExactly(1, 0.1f, 3);
        floats.add(2, 0.5);
        assertThat(values[2]).isEqualTo(3.5f);
        floats.fill(7);
        assertThat(values).containsExactly(7, 7, 7);
        floats.set(4f, 5f, 6f);
        assertThat(values).containsExactly(4, 5, 6);
    }

    @Test
    void isAViewOfNativeMemory() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(ValueLayout.JAVA_FLOAT, 4);
            Floats floats = Floats.of(memory);
            floats.set(3, -2);
            assertThat(memory.getAtIndex(ValueLayout.JAVA_FLOAT, 3)).isEqualTo(-2);
            assertThat(floats.segment()).isEqualTo(memory);
            assertThat(floats.toArray()).containsExactly(0, 0, 0, -2);
        }
    }

    @Test
    void copiesAreCopies() {
        Floats floats = Floats.of(1, 2);
        float[] copy = floats.toArray();
        copy[0] = 9;
        assertThat(floats.get(0)).isEqualTo(1);
    }

    @Test
    void slicesAreViews() {
        float[] values = {0, 1, 2, 3, 4};
        Floats slice = Floats.of(values).slice(1, 3);
        assertThat(slice.toArray()).containsExactly(1, 2, 3);
        slice.slice(2, 1).set(0, 8);
        assertThat(values[3]).isEqualTo(8);
        assertThat(slice.slice(3, 0).length()).isZero();
    }

    @Test
    void indicesAreChecked() {
        Floats floats = Floats.of(1, 2, 3);
        assertThatThrownBy(() -> floats.get(3)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> floats.set(-1, 0)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> floats.slice(1, 3)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> floats.slice(0, 2).get(2)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> floats.set(1f, 2f))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("2 values for 3");
    }
}
