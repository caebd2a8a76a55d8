package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class NormalizationTest {
    private static ImageSet set(int rows, int cols, int channels, byte... pixels) {
        int count = pixels.length / (rows * cols * channels);
        return new ImageSet(
                rows, cols, channels, 10, MemorySegment.ofArray(pixels), MemorySegment.ofArray(new byte[count]));
    }

    private static float[] image(ImageSet set, int image) {
        var pixels = new float[set.size()];
        set.copyTo(image, pixels, 0);
        return pixels;
    }

    /** Two images of 1 x 2 in two channels: 0, 51, 102, 255 and 204, 204, 204, 0. */
    @Test
    void everyChannelHasItsOwn() {
        Normalization normalization = Normalization.of(set(
                1, 2, 2, (byte) 0, (byte) 51, (byte) 204, (byte) 204, (byte) 102, (byte) 255, (byte) 204, (byte) 0));

        assertThat(normalization.means()).containsExactly(0.4, 0.6);
        assertThat(normalization.deviations().get(0)).isCloseTo(Math.sqrt((0.16 + 0.04 + 0 + 0.36) / 4), within(1e-15));
        assertThat(normalization.deviations().get(1)).isCloseTo(Math.sqrt((3 * 0.04 + 0.36) / 4), within(1e-15));
    }

    @Test
    void normalizedImagesHaveMeanZeroAndDeviationOne() {
        var pixels = new byte[50 * 3 * 64];
        new Random(1).nextBytes(pixels);
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = (byte) (i / 64 % 3 == 0 ? pixels[i] & 0x1f : pixels[i] | 0x40); // channels that differ
        }
        ImageSet set = set(8, 8, 3, pixels);
        ImageSet normalized = set.normalized(Normalization.of(set));
        var sums = new double[3];
        var squares = new double[3];
        for (int i = 0; i < 50; i++) {
            float[] image = image(normalized, i);
            for (int j = 0; j < image.length; j++) {
                sums[j / 64] += image[j] / 3200.0;
                squares[j / 64] += image[j] * (double) image[j] / 3200;
            }
        }
        assertThat(sums).containsExactly(new double[3], within(1e-6));
        assertThat(squares).containsExactly(new double[] {1, 1, 1}, within(1e-6));
        assertThat(normalized.label(3)).isEqualTo(set.label(3));
        assertThat(normalized).hasToString(set.toString());
    }

    /** What MNIST is trained on must not change by a bit. */
    @Test
    void theOthersStayAsTheyAre() {
        ImageSet set = set(1, 2, 1, (byte) 7, (byte) 200);
        ImageSet normalized = set.normalized(new Normalization(List.of(0.5), List.of(0.25)));

        assertThat(image(set, 0)).containsExactly(7 / 255f, 200 / 255f);
        assertThat(image(normalized, 0))
                .containsExactly((float) ((7 / 255.0 - 0.5) / 0.25), (float) ((200 / 255.0 - 0.5) / 0.25));
    }

    @Test
    void aChannelThatIsTheSameEverywhereIsShiftedOnly() {
        ImageSet set = set(1, 2, 1, (byte) 99, (byte) 99, (byte) 99, (byte) 99);
        Normalization normalization = Normalization.of(set);
        assertThat(normalization).isEqualTo(new Normalization(List.of(99 / 255.0), List.of(1.0)));
        assertThat(image(set.normalized(normalization), 1)).containsExactly(0, 0);
    }

    @Test
    void whatDoesNotFitIsRefused() {
        ImageSet grey = set(1, 1, 1, (byte) 1);
        assertThatThrownBy(() -> grey.normalized(new Normalization(List.of(0.0, 0.0), List.of(1.0, 1.0))))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("a normalization of 2 channels does not fit images with 1");
        assertThatThrownBy(() -> new Normalization(List.of(0.0), List.of(1.0, 1.0)))
                .hasMessageContaining("1 means and 2 deviations");
        for (double wrong : new double[] {0, -1, Double.NaN, Double.POSITIVE_INFINITY}) {
            assertThatThrownBy(() -> new Normalization(List.of(0.0), List.of(wrong)))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("deviations above 0");
        }
        assertThatThrownBy(() -> new Normalization(List.of(Double.NaN), List.of(1.0)))
                .isInstanceOf(IllegalArgumentException.class);
        ImageSet none = set(1, 1, 1);
        assertThatThrownBy(() -> Normalization.of(none)).hasMessage("no images have no mean");
    }
}
