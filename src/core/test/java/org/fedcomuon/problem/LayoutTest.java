package org.fedcomuon.problem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class LayoutTest {
    private static final Layout LAYOUT =
            Layout.of(Block.matrix("a", 3, 4), Block.vector("b", 5), Block.kernel("c", 2, 3, 2, 1));

    @Test
    void blocksFollowEachOther() {
        assertThat(LAYOUT.length()).isEqualTo(12 + 5 + 12);
        assertThat(LAYOUT.offset(0)).isZero();
        assertThat(LAYOUT.offset(1)).isEqualTo(12);
        assertThat(LAYOUT.offset(2)).isEqualTo(17);
        assertThat(LAYOUT.position("c")).isEqualTo(2);
        assertThat(LAYOUT.blocks()).extracting(Block::name).containsExactly("a", "b", "c");
    }

    @Test
    void everyElementHasItsBlock() {
        for (int i = 0; i < 29; i++) {
            assertThat(LAYOUT.blockAt(i).name()).isEqualTo(i < 12 ? "a" : i < 17 ? "b" : "c");
        }
        assertThatThrownBy(() -> LAYOUT.blockAt(29)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> LAYOUT.blockAt(-1)).isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void unknownNamesAreAnsweredWithThoseThatAre() {
        assertThatThrownBy(() -> LAYOUT.position("d"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("'d'")
                .hasMessageContaining("[a, b, c]");
    }

    @Test
    void twoBlocksOfOneNameAreRefused() {
        assertThatThrownBy(() -> Layout.of(Block.vector("a", 1), Block.matrix("a", 2, 2)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("'a'");
    }

    @Test
    void theTextOfALayoutIsReadBack() {
        assertThat(LAYOUT.text()).isEqualTo("a [3, 4] ORTHOGONAL; b [5] VECTOR; c [2, 3, 2, 1] ORTHOGONAL;");
        assertThat(Layout.parse(LAYOUT.text())).isEqualTo(LAYOUT);
        Layout odd = Layout.of(
                new Block("[1] a;", List.of(2, Integer.MAX_VALUE), Block.Update.VECTOR), Block.vector(" b; c", 1));
        assertThat(Layout.parse(odd.text())).isEqualTo(odd);
        for (String wrong : List.of(
                "", "a", "a [3, 4] ORTHOGONAL; b", "a [3] ORTHOGONAL;", "a [3] ROUND;", "a [9999999999] VECTOR;")) {
            assertThatThrownBy(() -> Layout.parse(wrong)).isInstanceOf(IllegalArgumentException.class);
        }
    }

    @Test
    void noBlockIsNoModel() {
        assertThatThrownBy(() -> Layout.of(List.of())).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void aModelOfMoreThanLongElementsIsRefused() {
        int huge = Integer.MAX_VALUE;
        Block half = new Block("a", List.of(huge, huge), Block.Update.ORTHOGONAL);
        assertThat(half.size()).isEqualTo((long) huge * huge);
        assertThatThrownBy(() -> Layout.of(
                        half,
                        new Block("b", List.of(huge, huge), Block.Update.ORTHOGONAL),
                        new Block("c", List.of(huge, huge), Block.Update.ORTHOGONAL)))
                .isInstanceOf(RuntimeException.class);
    }

    @Test
    void equalsByItsBlocks() {
        Layout same = Layout.of(List.copyOf(LAYOUT.blocks()));
        assertThat(same).isEqualTo(LAYOUT).hasSameHashCodeAs(LAYOUT);
        assertThat(Layout.of(Block.matrix("a", 3, 4)))
                .isNotEqualTo(Layout.of(Block.matrix("a", 4, 3)))
                .isNotEqualTo(Layout.of(Block.matrix("a", 3, 4).asVector()));
    }

    @Test
    void pointsAreViewsOfTheirBlocks() {
        var values = new float[29];
        var point = new Point(LAYOUT, Floats.of(values));
        point.block("b").set(2, 7);
        point.block(2).set(0, 8);
        assertThat(values[14]).isEqualTo(7);
        assertThat(values[17]).isEqualTo(8);
        assertThat(point.block("a").length()).isEqualTo(12);
        assertThatThrownBy(() -> new Point(LAYOUT, Floats.of(new float[28])))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("28")
                .hasMessageContaining("29");
    }
}
