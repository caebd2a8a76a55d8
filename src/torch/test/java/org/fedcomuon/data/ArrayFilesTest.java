package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.fedcomuon.data.SmallArrays.labelsOf;
import static org.fedcomuon.data.SmallArrays.npy;
import static org.fedcomuon.data.SmallArrays.valuesOf;
import static org.fedcomuon.data.SmallArrays.write;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ArrayFilesTest {
    private static final long SEED = Long.getLong("tests.seed", 18_11_2026L);
    private static final int MUTATIONS = Soak.mutations(2_000);

    @TempDir
    Path directory;

    private ArrayFiles files(String descr, String shape, double... values) throws IOException {
        int count = Integer.parseInt(shape.substring(1, shape.indexOf(',')));
        double[] labels = IntStream.range(0, count).mapToDouble(i -> i % 2).toArray();
        return new ArrayFiles(
                write(directory, "x.npy", descr, shape, values),
                write(directory, "y.npy", "<i8", "(%d,)".formatted(count), labels));
    }

    private static ExampleSet read(ArrayFiles files) throws IOException {
        return ArrayFiles.load(files, files).train();
    }

    // ---- what is read

    @ParameterizedTest
    @ValueSource(strings = {"|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8"})
    void rowsOfFeaturesKeepTheirValues(String descr) throws IOException {
        ExampleSet set = read(files(descr, "(2, 3)", 0, 1, 2, 100, 4, 5));

        assertThat(set.count()).isEqualTo(2);
        assertThat(set.classes()).isEqualTo(2);
        assertThat(set.shape()).containsExactly(3);
        assertThat(valuesOf(set, 0)).containsExactly(0, 1, 2);
        assertThat(valuesOf(set, 1)).containsExactly(100, 4, 5);
        assertThat(labelsOf(set)).containsExactly(0, 1);
    }

    @Test
    void imagesOfBytesArePixels() throws IOException {
        ExampleSet grey = read(files("|u1", "(2, 1, 2)", 0, 255, 51, 128));
        assertThat(grey).isInstanceOf(ImageSet.class);
        assertThat(grey.shape()).containsExactly(1, 1, 2);
        assertThat(valuesOf(grey, 0)).containsExactly(0, 1);
        assertThat(valuesOf(grey, 1)).containsExactly(0.2f, 128 / 255f);
        ExampleSet colours = read(files("|u1", "(1, 3, 1, 2)", 0, 255, 51, 102, 153, 204));
        assertThat(colours.shape()).containsExactly(3, 1, 2);
        assertThat(valuesOf(colours, 0)).containsExactly(0, 1, 0.2f, 0.4f, 0.6f, 0.8f);
    }

    @Test
    void otherImagesKeepTheirValues() throws IOException {
        ExampleSet set = read(files("<f8", "(2, 1, 2)", 0.5, -1, 1e-50, 255));
        assertThat(set.shape()).containsExactly(1, 1, 2);
        assertThat(valuesOf(set, 0)).containsExactly(0.5f, -1);
        assertThat(valuesOf(set, 1)).containsExactly(0, 255);
        assertThat(valuesOf(read(files("<i2", "(1, 1, 2)", 0, 255)), 0)).containsExactly(0, 255);
        assertThat(read(files("<f4", "(1, 1, 1, 2, 1)", 0, 255)).shape()).containsExactly(1, 1, 2, 1);
    }

    /** Each value says where it is; the order is that of {@code numpy.asfortranarray(x).ravel('K')}. */
    @ParameterizedTest
    @ValueSource(strings = {"<f4", "|u1", "<i4"})
    void fortranOrderIsUndone(String descr) throws IOException {
        var stored = new double[2 * 3 * 4];
        int at = 0;
        for (int c = 0; c < 4; c++) {
            for (int r = 0; r < 3; r++) {
                for (int n = 0; n < 2; n++) {
                    stored[at++] = 100 * n + 10 * r + c;
                }
            }
        }
        ArrayFiles files = files(descr, "(2, 3, 4)", stored);
        Files.write(files.x(), npy(descr, true, "(2, 3, 4)", stored));
        ExampleSet set = read(files);
        float scale = descr.equals("|u1") ? 255 : 1;
        for (int n = 0; n < 2; n++) {
            float[] image = valuesOf(set, n);
            for (int i = 0; i < 12; i++) {
                assertThat(image[i]).isEqualTo((100 * n + 10 * (i / 4) + i % 4) / scale);
            }
        }
    }

    @Test
    void labelsAreOfAnyTypeAndCountTheClassesOfBothSets() throws IOException {
        for (String descr : List.of("|u1", "|i1", "<u2", "<i4", "<u8", "<f4", "<f8")) {
            for (String shape : List.of("(3,)", "(3, 1)")) {
                Path x = write(directory, "x.npy", "<f4", "(3, 1)", 1, 2, 3);
                var train = new ArrayFiles(x, write(directory, "y.npy", descr, shape, 4, 0, 1));
                var test = new ArrayFiles(x, write(directory, "z.npy", descr, shape, 0, 6, 0));
                LabelledDataset set = ArrayFiles.load(train, test);
                assertThat(labelsOf(set.train())).containsExactly(4, 0, 1);
                assertThat(labelsOf(set.test())).containsExactly(0, 6, 0);
                assertThat(set.train().classes()).isEqualTo(7);
            }
        }
        Path x = write(directory, "x.npy", "<f4", "(2, 1)", 1, 2);
        Path y = write(directory, "y.npy", "|b1", "(2,)", 1, 0);
        assertThat(labelsOf(read(new ArrayFiles(x, y)))).containsExactly(1, 0);
    }

    @Test
    void arraysOfAnArchiveAreRead() throws IOException {
        Path archive = directory.resolve("data.npz");
        try (var out = new ZipOutputStream(Files.newOutputStream(archive))) {
            out.putNextEntry(new ZipEntry("x.npy"));
            out.write(npy("<f4", false, "(3, 2)", 1, 2, 3, 4, 5, 6));
            out.putNextEntry(new ZipEntry("y.npy"));
            out.write(npy("<i8", false, "(3,)", 0, 1, 1));
        }
        ExampleSet set = read(new ArrayFiles(directory.resolve("data.npz#x"), directory.resolve("data.npz#y")));
        assertThat(valuesOf(set, 2)).containsExactly(5, 6);
        assertThat(labelsOf(set)).containsExactly(0, 1, 1);
    }

    @Test
    void theDescriptionAndTheDigestTellDataApart() throws IOException {
        ArrayFiles files = files("<f4", "(2, 3)", 0, 1, 2, 100, 4, 5);
        LabelledDataset one = ArrayFiles.load(files, files);
        assertThat(one.description())
                .isEqualTo("arrays of x.npy: 2 training and 2 test examples of 3 values in 2 classes");
        assertThat(one.sha256())
                .matches("[0-9a-f]{64}")
                .isEqualTo(ArrayFiles.load(files, files).sha256());
        assertThat(ArrayFiles.load(files("<f4", "(2, 3)", 0, 1, 2, 100, 4, 6), files)
                        .sha256())
                .isNotEqualTo(one.sha256());
        assertThat(ArrayFiles.load(files("<f4", "(2, 3, 1)", 0, 1, 2, 100, 4, 5), files)
                        .sha256())
                .isNotEqualTo(one.sha256());
    }

    // ---- a share for testing

    private ArrayFiles many(int count, int classes) throws IOException {
        double[] numbers = IntStream.range(0, count).asDoubleStream().toArray();
        return new ArrayFiles(
                write(directory, "x.npy", "<f4", "(%d, 1)".formatted(count), numbers),
                write(
                        directory,
                        "y.npy",
                        "<i8",
                        "(%d,)".formatted(count),
                        Arrays.stream(numbers).map(i -> i % classes).toArray()));
    }

    @ParameterizedTest
    @CsvSource({
        "100, 4, 0.2, 20, 5, 5",
        "100, 4, 0.25, 25, 6, 7",
        "10, 3, 0.5, 5, 1, 2",
        "7, 7, 0.01, 1, 0, 1",
        "7, 7, 0.99, 6, 0, 1",
        "10, 1, 0.25, 3, 3, 3"
    })
    void everyClassGivesItsShare(int count, int classes, double share, int tested, int least, int most)
            throws IOException {
        LabelledDataset set = ArrayFiles.load(many(count, classes), share, 42);

        assertThat(set.test().count()).isEqualTo(tested);
        assertThat(set.train().count()).isEqualTo(count - tested);
        var seen = new boolean[count];
        for (ExampleSet part : List.of(set.train(), set.test())) {
            int before = -1;
            for (int i = 0; i < part.count(); i++) {
                int number = (int) valuesOf(part, i)[0];
                assertThat(seen[number]).isFalse();
                seen[number] = true;
                assertThat(part.label(i)).isEqualTo(number % classes);
                assertThat(number).isGreaterThan(before);
                before = number;
            }
        }
        int[] histogram = SmallMnist.histogram(set.test());
        assertThat(Arrays.stream(histogram)).allMatch(n -> n >= least && n <= most);
        assertThat(set.description()).contains("of which %d examples were drawn for testing".formatted(tested));
    }

    @Test
    void theSeedDrawsThem() throws IOException {
        ArrayFiles files = many(100, 4);
        float[] one = numbers(ArrayFiles.load(files, 0.2, 42).test());
        assertThat(numbers(ArrayFiles.load(files, 0.2, 42).test())).isEqualTo(one);
        assertThat(numbers(ArrayFiles.load(files, 0.2, 43).test())).isNotEqualTo(one);
        // As another program draws them: a run has to find its data again.
        assertThat(numbers(ArrayFiles.load(many(12, 2), 0.5, 42).test())).containsExactly(0, 4, 5, 7, 8, 9);
    }

    /** The digest is that of the files. */
    @Test
    void theShareDoesNotChangeTheDigest() throws IOException {
        ArrayFiles files = many(100, 4);
        assertThat(ArrayFiles.load(files, 0.2, 42).sha256())
                .isEqualTo(ArrayFiles.load(files, 0.3, 1).sha256());
    }

    private static float[] numbers(ExampleSet set) {
        var numbers = new float[set.count()];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = valuesOf(set, i)[0];
        }
        return numbers;
    }

    @Test
    void sharesThatAreNoneAreRefused() throws IOException {
        ArrayFiles files = many(10, 2);
        for (double share : new double[] {0, 1, -0.5, 2, Double.NaN}) {
            assertThatThrownBy(() -> ArrayFiles.load(files, share, 1))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("a test share of %s; between 0 and 1 is possible".formatted(share));
        }
        assertThatThrownBy(() -> ArrayFiles.load(many(1, 1), 0.5, 1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("1 example cannot be divided into one for training and one for testing");
    }

    // ---- what is refused

    @Test
    void filesThatDoNotFitTogetherAreRefused() throws IOException {
        Path x = write(directory, "x.npy", "<f4", "(3, 2)", 1, 2, 3, 4, 5, 6);
        Path y = write(directory, "y.npy", "<i8", "(2,)", 0, 1);
        refused(() -> read(new ArrayFiles(x, y)), x, "shape (3, 2), but " + y + " has 2 labels; every example has one");
        ArrayFiles train = files("<f4", "(2, 3)", 1, 2, 3, 4, 5, 6);
        var test = new ArrayFiles(write(directory, "other.npy", "<f4", "(2, 1, 3)", 1, 2, 3, 4, 5, 6), train.y());
        refused(
                () -> ArrayFiles.load(train, test),
                test.x(),
                "examples of 1 x 1 x 3 values, but those of " + train.x() + " have 3; they have to be equal");
    }

    @Test
    void shapesOfAnotherKindAreRefused() throws IOException {
        refused(() -> read(files("<f4", "(2,)", 1, 2)), "x.npy", "shape (2,); (count, features), (count, rows, cols)");
        refused(() -> read(files("<f4", "(2, 0)")), "x.npy", "shape (2, 0); an example has from 1 to 2147483647");
        refused(
                () -> read(files("|u1", "(1, 5, 5, 3)", new double[75])),
                "x.npy",
                "shape (1, 5, 5, 3) looks like images with their channels last; save x.transpose(0, 3, 1, 2)");
        assertThat(read(files("|u1", "(1, 3, 5, 3)", new double[45])).shape()).containsExactly(3, 5, 3);
        Path x = write(directory, "x.npy", "<f4", "(2, 1)", 1, 2);
        refused(
                () -> read(new ArrayFiles(x, write(directory, "y.npy", "<f4", "(2, 3)", new double[6]))),
                "y.npy",
                "shape (2, 3); labels have shape (count,): of labels that are one-hot, save y.argmax(axis=1)");
        refused(
                () -> read(new ArrayFiles(x, write(directory, "y.npy", "<f4", "(2, 3, 1)", new double[6]))),
                "y.npy",
                "is it the other file of the two?");
        refused(() -> read(new ArrayFiles(x, write(directory, "y.npy", "<f4", "()", 1))), "y.npy", "shape ();");
        refused(() -> read(new ArrayFiles(x, write(directory, "y.npy", "<f4", "(0,)"))), "y.npy", "0 labels");
    }

    @ParameterizedTest
    @CsvSource({
        "<i8, -1, -1",
        "<f4, 0.5, 0.5",
        "<f8, NaN, NaN",
        "<i8, 1000000, 1000000",
        "<u8, -1, 18446744073709552000",
        "<f4, Infinity, Infinity",
        "|i1, -128, -128"
    })
    void labelsThatAreNoClassesAreRefused(String descr, double value, String text) throws IOException {
        Path x = write(directory, "x.npy", "<f4", "(3, 1)", 1, 2, 3);
        Path y = write(directory, "y.npy", descr, "(3,)", 0, 1, value);
        refused(
                () -> read(new ArrayFiles(x, y)),
                y,
                "label " + text + " of example 2; labels are whole numbers from 0 to 999999");
    }

    @ParameterizedTest
    @CsvSource({"<f4, NaN", "<f2, Infinity", "<f8, 1e300", "<f8, -Infinity", "<f4, -Infinity"})
    void valuesThatAreNotFiniteAreRefused(String descr, double value) throws IOException {
        refused(
                () -> read(files(descr, "(2, 3)", 1, 2, 3, 4, value, 6)),
                "x.npy",
                "value %s of example 1, at x[1, 1]; every value has to be finite".formatted(value));
        refused(() -> read(files(descr, "(1, 2, 2)", 1, 2, 3, value)), "x.npy", "at x[0, 1, 1];");
        refused(() -> read(files(descr, "(1, 1, 2, 2)", 1, 2, value, 3)), "x.npy", "at x[0, 0, 1, 0];");
    }

    @Test
    void missingFilesAreNamed() throws IOException {
        ArrayFiles files = files("<f4", "(2, 1)", 1, 2);
        Path none = directory.resolve("none.npy");
        assertThatThrownBy(() -> read(new ArrayFiles(none, files.y())))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(none + ": no such file");
        assertThatThrownBy(() -> read(new ArrayFiles(files.x(), none))).hasMessage(none + ": no such file");
    }

    @Test
    @Tag(Soak.TAG)
    void mutationsAreReadOrRefused() throws IOException {
        var random = new Random(SEED);
        ArrayFiles files = files("<f4", "(4, 1, 2)", 1, 2, 3, 4, 5, 6, 7, 8);
        byte[] x = npy("<f2", true, "(4, 1, 2)", 1, 2, 3, 4, 5, 6, 7, 8);
        byte[] y = npy("<f8", false, "(4,)", 0, 1, 2, 1);
        try (var mutations = new Mutations("arrays", SEED, MalformedFileException.class)) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] first = i % 2 == 0 ? mutate(x, random) : x;
                byte[] second = i % 2 == 1 ? mutate(y, random) : y;
                Files.write(files.x(), first);
                Files.write(files.y(), second);
                mutations.feed(i % 2 == 0 ? first : second, directory.toString(), () -> {
                    ExampleSet set = ArrayFiles.load(files, 0.5, 1).train();
                    for (float value : valuesOf(set, 0)) {
                        assertThat(value).isFinite();
                    }
                    return true;
                });
            }
            mutations.end(0.05, 0.8);
        }
    }

    private static byte[] mutate(byte[] original, Random random) {
        byte[] bytes = original.clone();
        int at = random.nextInt(4) == 0 ? random.nextInt(bytes.length) : random.nextInt(80);
        switch (random.nextInt(4)) {
            case 0 -> bytes[at] = (byte) random.nextInt(256);
            case 1 -> bytes[at] = (byte) "0123456789<>|fiub".charAt(random.nextInt(17));
            case 2 -> bytes[bytes.length - 1 - random.nextInt(16)] = (byte) random.nextInt(256);
            default -> bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length + 8));
        }
        return bytes;
    }

    private void refused(ThrowingCallable call, String file, String words) {
        refused(call, directory.resolve(file), words);
    }

    private static void refused(ThrowingCallable call, Path file, String words) {
        assertThatThrownBy(call)
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(file + ": ")
                .hasMessageContaining(words)
                .satisfies(e -> assertThat(e.getMessage()).doesNotContainPattern("\\R"));
    }
}
