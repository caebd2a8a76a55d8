package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.fedcomuon.data.SmallMnist.histogram;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.assertj.core.api.AbstractThrowableAssert;
import org.fedcomuon.file.MalformedFileException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MnistTest {
    private static final Path RESOURCES = Path.of("main/resources/org/fedcomuon/data/mnist");

    @TempDir
    Path directory;

    // ---- what is packaged

    @Test
    void thePackagedPoolIsFoundInTheModule() {
        assertThat(Mnist.class.getModule().isNamed()).isTrue();
        LabelledDataset mnist = Mnist.bundled();

        assertThat(mnist.sha256()).isEqualTo("576deb008c7d910516b38cf027b14ea1cfc6a0c5e445d3b28207696a1424652b");
        assertThat(mnist.description()).isEqualTo("MNIST, the packaged pool: 12000 training and 10000 test images");
        assertThat(mnist.train()).hasToString("12000 images of 1 x 28 x 28 in 10 classes");
        assertThat(mnist.test()).hasToString("10000 images of 1 x 28 x 28 in 10 classes");
        assertThat(histogram(mnist.train()))
                .containsExactly(1161, 1329, 1169, 1273, 1232, 1076, 1158, 1245, 1141, 1216);
        assertThat(histogram(mnist.test())).containsExactly(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009);
    }

    /** As another program reads them. */
    @Test
    void labelsAndPixelsOfThePoolAreWhereTheyBelong() {
        LabelledDataset mnist = Mnist.bundled();

        assertThat(labels(mnist.train(), 12)).containsExactly(9, 3, 6, 9, 1, 1, 4, 7, 3, 7, 8, 5);
        assertThat(labels(mnist.test(), 10)).containsExactly(7, 2, 1, 0, 4, 1, 4, 9, 5, 9);
        assertThat(Arrays.copyOfRange(image(mnist.train(), 0), 207, 214))
                .containsExactly(0, 55 / 255f, 148 / 255f, 210 / 255f, 253 / 255f, 253 / 255f, 113 / 255f);
        assertThat(Arrays.copyOfRange(image(mnist.test(), 0), 201, 205))
                .containsExactly(0, 84 / 255f, 185 / 255f, 159 / 255f);
        assertThat(sum(mnist.test(), 9999) * 255).isCloseTo(41_833, within(0.1));
        double total = 0;
        for (int i = 0; i < mnist.train().count(); i++) {
            total += sum(mnist.train(), i);
        }
        assertThat(total * 255).isCloseTo(311_830_812, within(1000.0));
    }

    @Test
    void thePoolIsSmallAndSaysWhoseItIs() throws IOException {
        long bytes = 0;
        for (Path file : Mnist.files(RESOURCES)) {
            bytes += Files.size(file);
        }
        assertThat(bytes).isBetween(3_450_000L, 3_550_000L); // 3.5 MB, as 'data list' says
        assertThat(RESOURCES.resolve("LICENSE.md")).content().contains("LeCun", "Cortes", "Burges", "by-sa/3.0");
        assertThat(RESOURCES.resolve("README.md"))
                .content()
                .contains("Partition.imbalanced(60_000, List.of(12_000), " + Mnist.POOL_SEED + ")");
    }

    @Test
    void thePackagedFilesAreALoadableDirectory() throws IOException {
        LabelledDataset mnist = Mnist.load(RESOURCES);
        assertThat(mnist.sha256()).isEqualTo(Mnist.POOL_SHA256);
        assertThat(mnist.description()).startsWith("MNIST, the packaged pool");
    }

    // ---- what is loaded

    @ParameterizedTest
    @ValueSource(strings = {"-idx", "-idx gz", ".idx", ".idx gz"})
    void everyUsualNameIsFound(String form) throws IOException {
        List<byte[]> files = SmallMnist.files(30, 20, 1);
        for (int i = 0; i < 4; i++) {
            String name = Mnist.FILES.get(i).replace("-idx", form.substring(0, 4));
            boolean compressed = form.endsWith("gz");
            Files.write(
                    directory.resolve(compressed ? name + ".gz" : name),
                    compressed ? SmallMnist.gzip(files.get(i)) : files.get(i));
        }

        LabelledDataset loaded = Mnist.load(directory);

        assertThat(loaded.train().count()).isEqualTo(30);
        assertThat(loaded.test().count()).isEqualTo(20);
        assertThat(labels(loaded.train(), 12)).containsExactly(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1);
        assertThat(image(loaded.test(), 1)[5]).isEqualTo(Byte.toUnsignedInt(files.get(2)[16 + 784 + 5]) / 255f);
        assertThat(loaded.description())
                .isEqualTo("images in MNIST's format, but not MNIST: 30 training and 20 test images");
        var all = new ByteArrayOutputStream();
        files.forEach(all::writeBytes);
        assertThat(loaded.sha256()).isEqualTo(SmallMnist.sha256(all.toByteArray()));
    }

    @Test
    void theNameDoesNotDecideWhetherAFileIsCompressed() throws IOException {
        List<byte[]> files = SmallMnist.files(3, 2, 1);
        SmallMnist.write(directory, files);
        Files.write(directory.resolve(Mnist.FILES.getFirst()), SmallMnist.gzip(files.getFirst()));
        Files.move(directory.resolve(Mnist.FILES.get(1)), directory.resolve(Mnist.FILES.get(1) + ".gz"));

        assertThat(Mnist.load(directory).sha256())
                .isEqualTo(SmallMnist.expected(files).all());
    }

    @Test
    void aMissingFileIsNamed() throws IOException {
        SmallMnist.write(directory, SmallMnist.files(3, 2, 1));
        Files.delete(directory.resolve("t10k-labels-idx1-ubyte"));

        assertThatThrownBy(() -> Mnist.load(directory))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(directory + ": t10k-labels-idx1-ubyte and t10k-labels-idx1-ubyte.gz are missing");
        assertThatThrownBy(() -> Mnist.load(directory.resolve("none")))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessageContaining("none: train-images-idx3-ubyte");
    }

    @Test
    void swappedFilesAreRefused() throws IOException {
        List<byte[]> files = SmallMnist.files(3, 2, 1);
        refused(List.of(files.get(1), files.get(0), files.get(2), files.get(3)), "train-labels-idx1-ubyte")
                .hasMessageContaining("3 dimensions, as images have");
        refused(List.of(files.get(0), files.get(3), files.get(2), files.get(1)), "train-images-idx3-ubyte")
                .hasMessageContaining("3 images, but 2 labels in train-labels-idx1-ubyte; every image has one");
        refused(List.of(files.get(1), files.get(1), files.get(2), files.get(3)), "train-images-idx3-ubyte")
                .hasMessageContaining("1 dimension, as labels have");
        refused(List.of(files.get(0), files.get(1), files.get(0), files.get(3)), "t10k-images-idx3-ubyte")
                .hasMessageContaining("3 images, but 2 labels in t10k-labels-idx1-ubyte");
    }

    @Test
    void otherSizesAreRefused() throws IOException {
        List<byte[]> files = SmallMnist.files(2, 2, 1);
        byte[] images = files.getFirst();
        images[3 * 4 - 1] = 14;
        images[4 * 4 - 1] = 56;
        refused(List.of(images, files.get(1), files.get(2), files.get(3)), "train-images-idx3-ubyte")
                .hasMessageContaining("images of 14 x 56 pixels; MNIST's are of 28 x 28");
    }

    @Test
    void labelsThatAreNoDigitsAreRefused() throws IOException {
        for (int label : new int[] {10, 128, 255}) {
            List<byte[]> files = SmallMnist.files(3, 2, 1);
            files.get(3)[8 + 1] = (byte) label;
            refused(files, "t10k-labels-idx1-ubyte")
                    .hasMessageContaining("label %d of image 1 is not a digit".formatted(label));
        }
    }

    /** A million labels are 1 MB; what a few bytes of gzip can claim is more. */
    @Test
    void moreLabelsThanCanBeAreRefusedUnread() throws IOException {
        List<byte[]> files = SmallMnist.files(3, 2, 1);
        byte[] labels = Arrays.copyOf(SmallMnist.labels(3), 8 + 1_000_001);
        labels[5] = 0x0f;
        labels[6] = 0x42;
        labels[7] = 0x41;
        refused(List.of(files.get(0), SmallMnist.gzip(labels), files.get(2), files.get(3)), "train-labels-idx1-ubyte")
                .hasMessageContaining("1000001 labels; at most 1000000 are possible");
    }

    @Test
    void theConstantIsThePublishedSet() {
        assertThat(MnistDownload.PUBLISHED.files()).hasSize(4).allMatch(sha256 -> sha256.matches("[0-9a-f]{64}"));
        assertThat(Mnist.PUBLISHED_SHA256).matches("[0-9a-f]{64}").isNotEqualTo(Mnist.POOL_SHA256);
    }

    private AbstractThrowableAssert<?, ? extends Throwable> refused(List<byte[]> files, String named)
            throws IOException {
        SmallMnist.write(directory, files);
        return assertThatThrownBy(() -> Mnist.load(directory))
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(directory.resolve(named) + ": ")
                .satisfies(e -> assertThat(e.getMessage()).doesNotContainPattern("\\R"));
    }

    private static int[] labels(ExampleSet set, int count) {
        var labels = new int[count];
        Arrays.setAll(labels, set::label);
        return labels;
    }

    private static float[] image(ExampleSet set, int image) {
        var pixels = new float[set.size()];
        set.copyTo(image, pixels, 0);
        return pixels;
    }

    private static double sum(ExampleSet set, int image) {
        double sum = 0;
        for (float pixel : image(set, image)) {
            sum += pixel;
        }
        return sum;
    }
}
