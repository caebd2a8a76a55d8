package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class ImageSetTest {
    /** Two images of 1 x 2 in three channels. */
    private final byte[] pixels = {0, (byte) 255, 51, 102, (byte) 128, (byte) 204, 1, 2, 3, 4, 5, 6};

    private final byte[] labels = {3, (byte) 200};
    private final ImageSet set = set(1, 2, 3, 201);

    private ImageSet set(int rows, int cols, int channels, int classes) {
        return new ImageSet(
                rows, cols, channels, classes, MemorySegment.ofArray(pixels), MemorySegment.ofArray(labels));
    }

    @Test
    void saysWhatItHolds() {
        assertThat(set.count()).isEqualTo(2);
        assertThat(set.rows()).isEqualTo(1);
        assertThat(set.cols()).isEqualTo(2);
        assertThat(set.channels()).isEqualTo(3);
        assertThat(set.shape()).containsExactly(3, 1, 2);
        assertThat(set.group(0)).isEmpty();
        assertThat(set.size()).isEqualTo(6);
        assertThat(set.classes()).isEqualTo(201);
        assertThat(set.label(0)).isEqualTo(3);
        assertThat(set.label(1)).isEqualTo(200);
        assertThat(set).hasToString("2 images of 3 x 1 x 2 in 201 classes");
    }

    @Test
    void imagesAreNumbersFromZeroToOne() {
        var into = new float[9];
        set.copyTo(0, into, 2);
        assertThat(into).containsExactly(0, 0, 0, 1, 0.2f, 0.4f, 128 / 255f, 0.8f, 0);
        set.copyTo(1, into, 3);
        assertThat(into).containsExactly(0, 0, 0, 1 / 255f, 2 / 255f, 3 / 255f, 4 / 255f, 5 / 255f, 6 / 255f);
    }

    @Test
    void nativeMemoryIsWrittenToAsWell() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment into = arena.allocate(ValueLayout.JAVA_FLOAT, 8);
            set.copyTo(0, into, 1);
            assertThat(into.toArray(ValueLayout.JAVA_FLOAT)).containsExactly(0, 0, 1, 0.2f, 0.4f, 128 / 255f, 0.8f, 0);
        }
    }

    @Test
    void whatItWasMadeOfMayChange() {
        pixels[0] = 77;
        labels[0] = 77;
        var into = new float[6];
        set.copyTo(0, into, 0);
        assertThat(into[0]).isZero();
        assertThat(set.label(0)).isEqualTo(3);
    }

    @Test
    void nothingIsWrittenBeyondTheBounds() {
        var into = new float[9];
        for (int offset : new int[] {-1, 4, Integer.MAX_VALUE}) {
            assertThatThrownBy(() -> set.copyTo(0, into, offset)).isInstanceOf(IndexOutOfBoundsException.class);
        }
        for (int image : new int[] {-1, 2}) {
            assertThatThrownBy(() -> set.copyTo(image, into, 0)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> set.label(image)).isInstanceOf(IndexOutOfBoundsException.class);
        }
        assertThat(into).containsOnly(0);
    }

    @Test
    void whatDoesNotFitTogetherIsRefused() {
        assertThatThrownBy(() -> set(1, 2, 2, 201))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("2 labels and 12 pixels do not fit together: an image has 4 pixels");
        assertThatThrownBy(() -> set(1, 2, 3, 200))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("label 200 of image 1 is not among 0 to 199");
        assertThatThrownBy(() -> set(1, 2, 3, 0)).hasMessageContaining("0 classes");
        assertThatThrownBy(() -> set(1, 2, 3, 1_000_001)).hasMessage("1000001 classes; from 1 to 1000000 are possible");
        assertThatThrownBy(() -> set(-1, -2, 3, 10)).hasMessageContaining("-1 x -2");
    }
}
