package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import org.assertj.core.api.AbstractThrowableAssert;
import org.fedcomuon.data.Cifar10Source.Kind;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.testing.Cifar10Files;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class Cifar10Test {
    private static final long SEED = Long.getLong("tests.seed", 16_11_2026L);
    /** Of each kind. */
    private static final int MUTATIONS = Soak.mutations(5_000);

    private static final List<byte[]> BINARY = Cifar10Files.content(4, 1);
    private static final List<byte[]> SHEETS = SmallCifar10.sheets(BINARY, 3);

    @TempDir
    Path directory;

    private static List<byte[]> files(Kind kind) {
        return kind == Kind.BINARY ? BINARY : SHEETS;
    }

    private static float[] image(ExampleSet set, int image) {
        var pixels = new float[set.size()];
        set.copyTo(image, pixels, 0);
        return pixels;
    }

    private static void assertSame(ExampleSet one, ExampleSet other) {
        assertThat(one.count()).isEqualTo(other.count());
        for (int i = 0; i < one.count(); i++) {
            assertThat(one.label(i)).isEqualTo(other.label(i));
            assertThat(image(one, i)).isEqualTo(image(other, i));
        }
    }

    // ---- what is read

    @Test
    void imagesAndLabelsAreThoseOfTheRecords() throws IOException {
        LabelledDataset dataset = Cifar10.load(SmallCifar10.write(directory, Kind.BINARY, BINARY));

        ExampleSet train = dataset.train();
        assertThat(train).hasToString("20 images of 3 x 32 x 32 in 10 classes");
        assertThat(dataset.test()).hasToString("4 images of 3 x 32 x 32 in 10 classes");
        assertThat(dataset.description())
                .isEqualTo("images in CIFAR-10's format, but not CIFAR-10: 20 training and 4 test images");
        assertThat(train.label(6)).isEqualTo(2);
        // Image 6 is the third one of the second batch; its pixels are normalized by what all training images give.
        double[] mean = new double[3];
        double[] square = new double[3];
        for (byte[] batch : BINARY.subList(0, 5)) {
            for (int i = 0; i < batch.length; i++) {
                if (i % 3073 > 0) {
                    double value = Byte.toUnsignedInt(batch[i]) / 255.0;
                    mean[(i % 3073 - 1) / 1024] += value / (20 * 1024);
                    square[(i % 3073 - 1) / 1024] += value * value / (20 * 1024);
                }
            }
        }
        for (int i = 0; i < 3072; i++) {
            int c = i / 1024;
            double value = Byte.toUnsignedInt(BINARY.get(1)[2 * 3073 + 1 + i]) / 255.0;
            double expected = (value - mean[c]) / Math.sqrt(square[c] - mean[c] * mean[c]);
            assertThat((double) image(train, 6)[i]).isCloseTo(expected, within(1e-6));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {3, 4})
    void sheetsHoldTheSame(int channels) throws IOException {
        LabelledDataset one = Cifar10.load(SmallCifar10.write(directory.resolve("a"), Kind.BINARY, BINARY));
        LabelledDataset other = Cifar10.load(
                SmallCifar10.write(directory.resolve("b"), Kind.SHEETS, SmallCifar10.sheets(BINARY, channels)));

        assertThat(other.sha256()).isEqualTo(one.sha256());
        assertThat(other.description()).isEqualTo(one.description());
        assertSame(one.train(), other.train());
        assertSame(one.test(), other.test());
    }

    @Test
    void theChecksumIsThatOfTheBinaryFilesTogether() throws IOException {
        var all = new ByteArrayOutputStream();
        BINARY.forEach(all::writeBytes);
        assertThat(Cifar10.load(SmallCifar10.write(directory, Kind.BINARY, BINARY))
                        .sha256())
                .isEqualTo(SmallMnist.sha256(all.toByteArray()));
    }

    @ParameterizedTest
    @CsvSource({"cifar-10-batches-bin, BINARY", "package, SHEETS", "., BINARY", "., SHEETS"})
    void bothAreFoundWhereTheyAreUnpacked(String place, Kind kind) throws IOException {
        Path there = SmallCifar10.write(directory.resolve(place).normalize(), kind, files(kind));

        assertThat(Cifar10.load(directory).train().count()).isEqualTo(20);
        assertThat(Cifar10.files(directory))
                .containsExactly(kind.names().stream().map(there::resolve).toArray(Path[]::new));
    }

    @Test
    void batchesMayDifferInSize() throws IOException {
        var binary = new ArrayList<>(Cifar10Files.content(2, 3));
        binary.set(3, Cifar10Files.content(7, 4).get(0));
        LabelledDataset one = Cifar10.load(SmallCifar10.write(directory.resolve("a"), Kind.BINARY, binary));
        LabelledDataset other =
                Cifar10.load(SmallCifar10.write(directory.resolve("b"), Kind.SHEETS, SmallCifar10.sheets(binary, 3)));

        assertThat(one.train().count()).isEqualTo(15);
        assertSame(one.train(), other.train());
    }

    @Test
    void labelsMayHaveSpaceBetweenThem() throws IOException {
        var sheets = new ArrayList<>(SHEETS);
        String labels = new String(SHEETS.get(6), StandardCharsets.US_ASCII).replace(",", " ,\r\n\t");
        sheets.set(6, ('\n' + labels + '\n').getBytes(StandardCharsets.US_ASCII));
        assertThat(Cifar10.load(SmallCifar10.write(directory, Kind.SHEETS, sheets))
                        .train()
                        .label(3))
                .isEqualTo(3);
    }

    // ---- what is refused

    @Test
    void missingFilesAreNamed() throws IOException {
        assertThatThrownBy(() -> Cifar10.load(directory))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(directory + ": data_batch_1.bin and data_batch_1.png are missing");
        SmallCifar10.write(directory.resolve("package"), Kind.SHEETS, SHEETS.subList(0, 7));
        assertThatThrownBy(() -> Cifar10.load(directory))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(directory + ": package/test_lables.json is missing");
        SmallCifar10.write(directory, Kind.BINARY, BINARY);
        Files.delete(directory.resolve("data_batch_3.bin"));
        assertThatThrownBy(() -> Cifar10.load(directory))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(directory + ": data_batch_3.bin is missing");
    }

    @Test
    void recordsThatAreNoneAreRefused() throws IOException {
        refused(Kind.BINARY, 2, new byte[0]).hasMessageContaining("empty");
        refused(Kind.BINARY, 5, new byte[3072]).hasMessageContaining("3072 bytes are 0 records of 3073 bytes");
        refused(Kind.BINARY, 5, new byte[3073 * 2 + 1]).hasMessageContaining("a part of one");
        refused(Kind.BINARY, 0, new byte[3073 * 20_001]).hasMessageContaining("20001 records");
        var label = BINARY.get(4).clone();
        label[3073] = 10;
        refused(Kind.BINARY, 4, label).hasMessageContaining("label 10 of image 1 is not among 0 to 9");
        label[3073] = -1;
        refused(Kind.BINARY, 4, label).hasMessageContaining("label 255 of image 1");
    }

    @Test
    void sheetsThatAreNoneAreRefused() throws IOException {
        refused(Kind.SHEETS, 0, BINARY.get(0)).hasMessageContaining("not a PNG file");
        refused(Kind.SHEETS, 1, Arrays.copyOf(SHEETS.get(1), 5000)).hasMessageContaining("truncated");
        refused(Kind.SHEETS, 2, PngEncoder.encode(new byte[4][32 * 3], 3, 99, 0))
                .hasMessageContaining("rows of 32 pixels; an image of CIFAR-10 is a row of 1024");
        refused(Kind.SHEETS, 2, PngEncoder.encode(new byte[20_001][1024 * 3], 3, 1 << 16, 0))
                .hasMessageContaining("20001 images; 20000 are possible");
        refused(Kind.SHEETS, 3, PngEncoder.encode(new byte[9][1024 * 3], 3, 99, 0))
                .hasMessageContaining("9 images, but only 8 labels are left for them");
        refused(Kind.SHEETS, 5, PngEncoder.encode(new byte[4][1024 * 4], 4, 99, 0))
                .hasMessageContaining("image 0 has transparent pixels");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "", "[", "]", "[]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[12]", "[1,2]]", "[1,2],", "[[1]]", "[-1]",
                "[a]", "[1.0]", "{}", "1,2", "[\"1\"]", "[١]",
            })
    void listsOfLabelsThatAreNoneAreRefused(String list) throws IOException {
        refused(Kind.SHEETS, 7, list.getBytes(StandardCharsets.UTF_8)).hasMessageContaining("list of labels");
    }

    @Test
    void everyImageHasALabel() throws IOException {
        refused(Kind.SHEETS, 7, "[1,2,3]".getBytes(StandardCharsets.US_ASCII), 5)
                .hasMessageContaining("4 images, but only 3 labels");
        refused(Kind.SHEETS, 7, "[1,2,3,4,5]".getBytes(StandardCharsets.US_ASCII))
                .hasMessageContaining("5 labels for the 4 images in the sheets; every image has one");
        refused(Kind.SHEETS, 6, Arrays.copyOf(new byte[0], 400_001))
                .hasMessageContaining("larger than the limit of 400000 bytes");
    }

    private AbstractThrowableAssert<?, ? extends Throwable> refused(Kind kind, int file, byte[] content)
            throws IOException {
        return refused(kind, file, content, file);
    }

    private AbstractThrowableAssert<?, ? extends Throwable> refused(Kind kind, int file, byte[] content, int named)
            throws IOException {
        var changed = new ArrayList<>(files(kind));
        changed.set(file, content);
        SmallCifar10.write(directory, kind, changed);
        return assertThatThrownBy(() -> Cifar10.load(directory))
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(directory.resolve(kind.names().get(named)) + ": ")
                .satisfies(e -> assertThat(e.getMessage()).doesNotContainPattern("\\R"));
    }

    // ---- whatever comes

    @ParameterizedTest
    @EnumSource(Kind.class)
    @Tag(Soak.TAG)
    void mutationsAreReadOrRefused(Kind kind) throws IOException {
        var random = new Random(SEED);
        List<byte[]> binary = Cifar10Files.content(1, 5);
        List<byte[]> originals = kind == Kind.BINARY ? binary : SmallCifar10.sheets(binary, 3);
        SmallCifar10.write(directory, kind, originals);
        String reader = "CIFAR-10, " + kind.name().toLowerCase(Locale.ROOT);
        try (var mutations = new Mutations(reader, SEED, MalformedFileException.class)) {
            for (int i = 0; i < MUTATIONS; i++) {
                int which = random.nextInt(originals.size());
                Path file = directory.resolve(kind.names().get(which));
                byte[] bytes = originals.get(which).clone();
                if (random.nextInt(4) == 0) {
                    bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length + 3));
                }
                for (int changes = random.nextInt(3); changes > 0 && bytes.length > 0; changes--) {
                    // Most often near the beginning, where it matters.
                    int at = random.nextInt(random.nextBoolean() ? Math.min(60, bytes.length) : bytes.length);
                    bytes[at] = (byte) random.nextInt(256);
                }
                Files.write(file, bytes);
                mutations.feed(
                        bytes,
                        "" + directory,
                        () -> assertThat(Cifar10.load(directory).train().count())
                                .isBetween(5, 6));
                Files.write(file, originals.get(which));
            }
            mutations.end(0.01, 0.75);
        }
    }
}
