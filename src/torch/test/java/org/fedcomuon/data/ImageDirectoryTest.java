package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.fedcomuon.data.SmallArrays.labelsOf;
import static org.fedcomuon.data.SmallArrays.valuesOf;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ImageDirectoryTest {
    private static final long SEED = Long.getLong("tests.seed", 18_11_2026L);
    private static final int MUTATIONS = Soak.mutations(1_000);

    @TempDir
    Path directory;

    private Path write(String name, byte[] content) throws IOException {
        Path file = directory.resolve(name);
        Files.createDirectories(file.getParent());
        return Files.write(file, content);
    }

    /** Of 2 x 1 pixels. */
    private Path grey(String name, int left, int right) throws IOException {
        return write(name, PngEncoder.encode(new byte[][] {{(byte) left, (byte) right}}, 1, 100, 0));
    }

    private ExampleSet train() throws IOException {
        return ImageDirectory.load(directory, directory).train();
    }

    // ---- what is read

    @Test
    void classesAndImagesAreInOrder() throws IOException {
        grey("dog/b.png", 0, 255);
        grey("dog/a.PNG", 51, 102);
        grey("Cat/10.png", 1, 2);
        grey("Cat/9.png", 3, 4);
        LabelledDataset dataset = ImageDirectory.load(directory, directory);
        ExampleSet set = dataset.train();

        assertThat(set.shape()).containsExactly(1, 1, 2);
        assertThat(set.classes()).isEqualTo(2);
        assertThat(labelsOf(set)).containsExactly(0, 0, 1, 1);
        assertThat(valuesOf(set, 0)).containsExactly(1 / 255f, 2 / 255f);
        assertThat(valuesOf(set, 2)).containsExactly(0.2f, 0.4f);
        assertThat(valuesOf(set, 3)).containsExactly(0, 1);
        assertThat(dataset.description())
                .isEqualTo(
                        "images of %s with classes Cat, dog: 4 training and 4 test examples of 1 x 1 x 2 values in 2"
                                + " classes",
                        directory.getFileName());
    }

    @Test
    void oneColouredImageGivesAllThreeChannels() throws IOException {
        grey("a/1.png", 51, 102);
        write("a/2.png", PngEncoder.encode(new byte[][] {{0, 51, 102, -1, (byte) 204, (byte) 153}}, 3, 100, 0));
        write("a/3.png", PngEncoder.encode(new byte[][] {{51, 51, 51, 0, 102, 0, 0, 9}}, 4, 100, 0));
        write("a/4.png", PngEncoder.encode(new byte[][] {{51, 0, 102, 9}}, 2, 100, 0));
        write(
                "a/5.png",
                PngEncoder.packed(
                        new int[][] {{1, 0}}, 1, (byte) 0, (byte) 51, (byte) 102, (byte) 204, (byte) 0, (byte) 51));
        ExampleSet set = train();

        assertThat(set.shape()).containsExactly(3, 1, 2);
        assertThat(valuesOf(set, 0)).containsExactly(0.2f, 0.4f, 0.2f, 0.4f, 0.2f, 0.4f);
        assertThat(valuesOf(set, 1)).containsExactly(0, 1, 0.2f, 0.8f, 0.4f, 0.6f);
        assertThat(valuesOf(set, 2)).containsExactly(0.2f, 0.4f, 0.2f, 0, 0.2f, 0);
        assertThat(valuesOf(set, 3)).containsExactly(0.2f, 0.4f, 0.2f, 0.4f, 0.2f, 0.4f);
        assertThat(valuesOf(set, 4)).containsExactly(0.8f, 0, 0, 0.2f, 0.2f, 0.4f);
    }

    @Test
    void theColoursOfOneSetGiveTheOtherItsChannels() throws IOException {
        grey("train/a/1.png", 51, 102);
        write("test/a/2.png", PngEncoder.encode(new byte[][] {{0, 51, 102, -1, (byte) 204, (byte) 153}}, 3, 100, 0));
        LabelledDataset set = ImageDirectory.load(directory.resolve("train"), directory.resolve("test"));
        assertThat(set.train().shape()).containsExactly(3, 1, 2);
        assertThat(valuesOf(set.train(), 0)).containsExactly(0.2f, 0.4f, 0.2f, 0.4f, 0.2f, 0.4f);
        LabelledDataset other = ImageDirectory.load(directory.resolve("test"), directory.resolve("train"));
        assertThat(other.test().shape()).containsExactly(3, 1, 2);
    }

    /** Told by their content, not by their names. */
    @Test
    void jpegAndPngMayBeMixed() throws IOException {
        write("a/1.jpg", JpegTest.encode(8, 4, 1, false));
        write("a/2.jpeg", JpegTest.encode(8, 4, 1, true));
        write("a/3.png", JpegTest.encode(8, 4, 1, false));
        var rows = new byte[4][8];
        rows[3][7] = -1;
        write("a/4.jpg", PngEncoder.encode(rows, 1, 100, 0));
        ExampleSet set = train();
        assertThat(set.shape()).containsExactly(1, 4, 8);
        assertThat(valuesOf(set, 2)).isEqualTo(valuesOf(set, 0));
        assertThat(valuesOf(set, 0)[8 + 5] * 255)
                .isBetween(JpegTest.sample(1, 0, 5, 1) - 2f, JpegTest.sample(1, 0, 5, 1) + 2f);
        assertThat(valuesOf(set, 3)[31]).isOne();
    }

    @Test
    void testImagesMayLackAClass() throws IOException {
        grey("train/a/1.png", 1, 2);
        grey("train/b/1.png", 1, 2);
        grey("train/c/1.png", 1, 2);
        grey("test/c/1.png", 1, 2);
        LabelledDataset set = ImageDirectory.load(directory.resolve("train"), directory.resolve("test"));
        assertThat(labelsOf(set.test())).containsExactly(2);
        assertThat(set.test().classes()).isEqualTo(3);
    }

    @Test
    void aShareIsHeldBack() throws IOException {
        for (int i = 0; i < 10; i++) {
            grey("a/%d.png".formatted(i), i, 0);
            grey("b/%d.png".formatted(i), 100 + i, 0);
        }
        LabelledDataset set = ImageDirectory.load(directory, 0.2, 42);
        assertThat(SmallMnist.histogram(set.test())).containsExactly(2, 2);
        assertThat(SmallMnist.histogram(set.train())).containsExactly(8, 8);
        assertThatThrownBy(() -> ImageDirectory.load(directory, 1.5, 42))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("a test share of 1.5; between 0 and 1 is possible");
    }

    @Test
    void hiddenFilesAreIgnored() throws IOException {
        grey("a/1.png", 1, 2);
        write(".DS_Store", new byte[3]);
        write("a/.DS_Store", new byte[3]);
        grey(".git/1.png", 1, 2);
        assertThat(train().count()).isEqualTo(1);
    }

    @Test
    void theDigestTellsDataApart() throws IOException {
        grey("a/1.png", 1, 2);
        Path second = grey("b/1.png", 3, 4);
        String before = ImageDirectory.load(directory, directory).sha256();
        assertThat(before)
                .matches("[0-9a-f]{64}")
                .isEqualTo(ImageDirectory.load(directory, directory).sha256());
        grey("b/1.png", 3, 5);
        assertThat(ImageDirectory.load(directory, directory).sha256()).isNotEqualTo(before);
        Files.delete(second);
        Files.delete(second.getParent());
        grey("c/1.png", 3, 4);
        assertThat(ImageDirectory.load(directory, directory).sha256()).isNotEqualTo(before);
    }

    /** The directory that a user names, but nothing in it. */
    @Test
    void linksInTheDirectoryAreRefused() throws IOException {
        Path image = grey("data/a/1.png", 1, 2);
        Path link = Files.createSymbolicLink(directory.resolve("link"), directory.resolve("data"));
        assertThat(ImageDirectory.load(link, link).train().count()).isEqualTo(1);
        Path inside = Files.createSymbolicLink(directory.resolve("data/a/2.png"), image);
        refused(directory.resolve("data"), inside, "a symbolic link, which is not followed");
        Files.delete(inside);
        Path whole = Files.createSymbolicLink(directory.resolve("data/b"), image.getParent());
        refused(directory.resolve("data"), whole, "a symbolic link, which is not followed");
    }

    // ---- what is refused

    @Test
    void imagesOfAnotherSizeAreRefused() throws IOException {
        Path first = grey("a/1.png", 1, 2);
        Path other = write("b/1.png", PngEncoder.encode(new byte[][] {{1}, {2}}, 1, 100, 0));
        refused(directory, other, "1 x 2 pixels, but " + first + " has 2 x 1; all images have one size");
        Path test = directory.resolve("b");
        grey("t/a/1.png", 1, 2);
        Path third = write("u/a/1.png", JpegTest.encode(8, 8, 1, false));
        assertThatThrownBy(() -> ImageDirectory.load(directory.resolve("t"), directory.resolve("u")))
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(third + ": 8 x 8 pixels, but ")
                .hasMessageContaining("has 2 x 1");
        assertThat(test).exists();
    }

    @Test
    void whatIsNoImageIsRefused() throws IOException {
        Path empty = Files.createDirectory(directory.resolve("empty"));
        refused(empty, empty, "no directories; a directory of images for each class is needed");
        Path none = Files.createDirectories(directory.resolve("one/a"));
        refused(directory.resolve("one"), none, "no images; every class has one at least");
        grey("one/a/1.png", 1, 2);
        Path text = write("one/a/2.bmp", new byte[3]);
        refused(directory.resolve("one"), text, "neither .png nor .jpg nor .jpeg; convert it");
        Files.delete(text);
        Path deep = Files.createDirectory(directory.resolve("one/a/more"));
        refused(directory.resolve("one"), deep, "a directory among the images of a class");
        Files.delete(deep);
        Path readme = write("one/readme.txt", new byte[3]);
        refused(directory.resolve("one"), readme, "not a directory; " + directory.resolve("one") + " has a directory");
        Files.delete(readme);
        Path gif = write("one/a/2.png", "GIF89a".getBytes(StandardCharsets.US_ASCII));
        refused(directory.resolve("one"), gif, "not a PNG file");
        refused(gif, gif, "not a directory");
        Path missing = directory.resolve("missing");
        assertThatThrownBy(() -> ImageDirectory.load(missing, missing))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(missing + ": no such directory");
    }

    @Test
    void hugeImagesAreRefusedByTheirHeaders() throws IOException {
        Path png =
                write("a/1.png", PngEncoder.file(PngEncoder.header(5000, 5000, 1, 0, 0), new byte[1 << 12], 1 << 12));
        refused(directory, png, "5000 x 5000 pixels; an image has at most 16777216");
    }

    @Test
    void classesThatOnlyTheTestHasAreRefused() throws IOException {
        grey("train/a/1.png", 1, 2);
        grey("test/b/1.png", 1, 2);
        assertThatThrownBy(() -> ImageDirectory.load(directory.resolve("train"), directory.resolve("test")))
                .isInstanceOf(MalformedFileException.class)
                .hasMessage(directory.resolve("test/b") + ": no class of this name in " + directory.resolve("train")
                        + "; a model knows only the classes that it is trained on");
    }

    @Test
    @Tag(Soak.TAG)
    void mutationsAreReadOrRefused() throws IOException {
        var random = new Random(SEED);
        List<byte[]> files = List.of(
                JpegTest.encode(8, 4, 3, false),
                PngEncoder.encode(new byte[4][8], 1, 100, 0),
                PngEncoder.packed(new int[4][8], 2, new byte[12]));
        write("a/1.png", files.get(0));
        try (var mutations =
                new Mutations("image directory", SEED, MalformedFileException.class).allocating(1 << 15, 1 << 22)) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] bytes = JpegTest.mutate(files.get(i % 3), random);
                write("a/2.png", bytes);
                mutations.feed(bytes, directory.toString(), () -> train().count());
            }
            mutations.end(0.02, 0.8);
        }
    }

    private static void refused(Path directory, Path file, String words) {
        assertThatThrownBy(() -> ImageDirectory.load(directory, directory))
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(file + ": ")
                .hasMessageContaining(words)
                .satisfies(e -> assertThat(e.getMessage()).doesNotContainPattern("\\R"));
    }
}
