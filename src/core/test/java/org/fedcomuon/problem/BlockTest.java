package org.fedcomuon.problem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class BlockTest {
    @Test
    void matrices() {
        Block block = Block.matrix("w", 3, 5);
        assertThat(block.rows()).isEqualTo(3);
        assertThat(block.cols()).isEqualTo(5);
        assertThat(block.size()).isEqualTo(15);
        assertThat(block.update()).isEqualTo(Block.Update.ORTHOGONAL);
    }

    /** A kernel is out x (in * height * width), not a batch of small matrices. */
    @Test
    void kernels() {
        Block block = Block.kernel("conv", 8, 3, 5, 7);
        assertThat(block.shape()).containsExactly(8, 3, 5, 7);
        assertThat(block.rows()).isEqualTo(8);
        assertThat(block.cols()).isEqualTo(3 * 5 * 7);
        assertThat(block.size()).isEqualTo(840);
        assertThat(block.update()).isEqualTo(Block.Update.ORTHOGONAL);
    }

    @Test
    void vectors() {
        Block block = Block.vector("bias", 6);
        assertThat(block.rows()).isEqualTo(6);
        assertThat(block.cols()).isEqualTo(1);
        assertThat(block.size()).isEqualTo(6);
        assertThat(block.update()).isEqualTo(Block.Update.VECTOR);
        Block embedding = Block.matrix("embedding", 4, 2).asVector();
        assertThat(embedding.update()).isEqualTo(Block.Update.VECTOR);
        assertThat(embedding.shape()).containsExactly(4, 2);
    }

    @Test
    void whatIsNoBlockIsRefusedByName() {
        assertThatThrownBy(() -> Block.vector(" ", 3)).hasMessageContaining("name");
        assertThatThrownBy(() -> Block.matrix("w", 0, 3)).hasMessageContaining("'w'");
        assertThatThrownBy(() -> Block.matrix("w", 3, -1)).hasMessageContaining("'w'");
        assertThatThrownBy(() -> new Block("w", List.of(), Block.Update.VECTOR)).hasMessageContaining("'w'");
        assertThatThrownBy(() -> new Block("w", List.of(4), Block.Update.ORTHOGONAL))
                .hasMessageContaining("'w' is a vector");
    }

    @Test
    void sizesThatNothingCanHoldAreRefusedByName() {
        int huge = Integer.MAX_VALUE;
        assertThatThrownBy(() -> Block.kernel("w", huge, huge, huge, huge)).hasMessageContaining("'w'");
        assertThatThrownBy(() -> Block.kernel("w", 1, huge, 2, 1)).hasMessageContaining("'w'");
        assertThatThrownBy(() -> Block.kernel("w", 1, 1 << 30, 1 << 30, 16)).hasMessageContaining("'w'");
    }
}
