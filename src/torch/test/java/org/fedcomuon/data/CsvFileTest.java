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
import java.util.Optional;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CsvFileTest {
    private static final long SEED = Long.getLong("tests.seed", 18_11_2026L);
    private static final int MUTATIONS = Soak.mutations(5_000);

    private static final String TABLE = """
            age,y,weight,city
            1,0,0.5,Bern
            2,2,-1e3,"Zürich, Stadt"
            3,0,+.25,Bern
            """;

    @TempDir
    Path directory;

    private CsvFile file(String text) throws IOException {
        return new CsvFile(Files.writeString(directory.resolve("t.csv"), text), "y", Optional.empty());
    }

    private CsvFile grouped(String text) throws IOException {
        return new CsvFile(file(text).file(), "y", Optional.of("city"));
    }

    private static LabelledDataset load(CsvFile file) throws IOException {
        return CsvFile.load(file, file);
    }

    // ---- what is read

    @Test
    void featuresLabelsAndClientsAreRead() throws IOException {
        LabelledDataset dataset = load(grouped(TABLE));
        ExampleSet set = dataset.train();

        assertThat(set.shape()).containsExactly(2);
        assertThat(set.classes()).isEqualTo(3);
        assertThat(labelsOf(set)).containsExactly(0, 2, 0);
        assertThat(valuesOf(set, 0)).containsExactly(1, 0.5f);
        assertThat(valuesOf(set, 1)).containsExactly(2, -1000);
        assertThat(valuesOf(set, 2)).containsExactly(3, 0.25f);
        assertThat(IntStream.range(0, 3).mapToObj(i -> set.group(i).orElseThrow()))
                .containsExactly("Bern", "Zürich, Stadt", "Bern");
        assertThat(dataset.description())
                .isEqualTo("table t.csv: 3 training and 3 test examples of 2 values in 3 classes");
    }

    @Test
    void everyWayToWriteTheSameTableIsRead() throws IOException {
        ExampleSet right = load(file("a,y\n1,0\n2,1\n")).train();
        for (String text : List.of(
                "a,y\r\n1,0\r\n2,1\r\n",
                "a,y\n1,0\n2,1",
                "\ufeffa,y\n1,0\n2,1\n",
                "\"a\",\"y\"\n\"1\",\"0\"\n\"2\",\"1\"\n",
                " a , y \n 1 , 0\n\n2,1.0\n\n",
                "y,a\n0,1\n1,2e0\n")) {
            ExampleSet set = load(file(text)).train();
            assertThat(labelsOf(set)).as("%s", text).isEqualTo(labelsOf(right));
            assertThat(valuesOf(set, 0)).isEqualTo(valuesOf(right, 0));
            assertThat(valuesOf(set, 1)).isEqualTo(valuesOf(right, 1));
            assertThat(set.group(0)).isEmpty();
        }
    }

    @ParameterizedTest
    @CsvSource({
        "spam ham spam eggs, 2 1 2 0, 'table t.csv with classes eggs, ham, spam: '",
        "-1 1 -1 10, 0 1 0 2, 'table t.csv with classes -1, 1, 10: '",
        "9 10 2 2.0, 9 10 2 2, 'table t.csv: '",
        "b 10 9 b, 2 0 1 2, 'table t.csv with classes 10, 9, b: '",
    })
    void labelsStandForClasses(String labels, String classes, String description) throws IOException {
        String[] words = labels.split(" ", -1);
        LabelledDataset set = load(file("a,y\n"
                + IntStream.range(0, 4).mapToObj(i -> i + "," + words[i]).collect(Collectors.joining("\n"))));
        assertThat(IntStream.of(labelsOf(set.train())).mapToObj(String::valueOf).collect(Collectors.joining(" ")))
                .isEqualTo(classes);
        assertThat(set.description()).startsWith(description);
    }

    @Test
    void trainingAndTestLabelsAreTakenTogether() throws IOException {
        CsvFile train = file("a,y\n1,b\n2,d\n");
        Path other = Files.writeString(directory.resolve("u.csv"), "a,y\n1,c\n2,a\n");
        LabelledDataset set = CsvFile.load(train, new CsvFile(other, "y", Optional.empty()));
        assertThat(labelsOf(set.train())).containsExactly(1, 3);
        assertThat(labelsOf(set.test())).containsExactly(2, 0);
        assertThat(set.train().classes()).isEqualTo(4);
    }

    @Test
    void aShareIsHeldBackWithItsGroups() throws IOException {
        String lines = IntStream.range(0, 100)
                .mapToObj(i -> i + "," + i % 4 + "," + i % 3)
                .collect(Collectors.joining("\n"));
        LabelledDataset set = CsvFile.load(grouped("a,y,city\n" + lines), 0.2, 42);
        assertThat(set.test().count()).isEqualTo(20);
        assertThat(SmallMnist.histogram(set.test())).containsOnly(5);
        for (ExampleSet part : List.of(set.train(), set.test())) {
            for (int i = 0; i < part.count(); i++) {
                int number = (int) valuesOf(part, i)[0];
                assertThat(part.label(i)).isEqualTo(number % 4);
                assertThat(part.group(i)).contains("" + number % 3);
            }
        }
    }

    /** More than one piece of the memory that values are collected in. */
    @Test
    void longTablesAreWhole() throws IOException {
        var text = new StringBuilder("a,b,c,y\n");
        int count = 50_000;
        for (int i = 0; i < count; i++) {
            text.append("%d,%d,%d,%d%n".formatted(i, -i, 2 * i, i % 2));
        }
        ExampleSet set = load(file(text.toString())).train();
        assertThat(set.count()).isEqualTo(count);
        for (int i = 0; i < count; i += 17) {
            assertThat(valuesOf(set, i)).containsExactly(i, -i, 2 * i);
        }
    }

    @Test
    void wideTablesAreWhole() throws IOException {
        int columns = 20_000;
        String names = IntStream.range(0, columns).mapToObj(i -> "c" + i).collect(Collectors.joining(","));
        String cells = IntStream.range(0, columns).mapToObj(i -> i + ".5").collect(Collectors.joining(","));
        ExampleSet set =
                load(file(names + ",y\n" + cells + ",0\n" + cells + ",1\n")).train();
        assertThat(set.shape()).containsExactly(columns);
        assertThat(valuesOf(set, 1)[columns - 1]).isEqualTo(columns - 0.5f);
    }

    @Test
    void theDigestIsThatOfTheFiles() throws IOException {
        byte[] both = (TABLE + TABLE).getBytes(StandardCharsets.UTF_8);
        assertThat(load(grouped(TABLE)).sha256()).isEqualTo(SmallMnist.sha256(both));
        assertThat(CsvFile.load(grouped(TABLE), 0.5, 1).sha256())
                .isEqualTo(SmallMnist.sha256(TABLE.getBytes(StandardCharsets.UTF_8)));
    }

    // ---- what is refused

    @ParameterizedTest
    @ValueSource(strings = {"nan", "NaN", "inf", "Infinity", "1f", "0x1p3", "1,5", "one", "1e99", "--1", "1_000", "."})
    void featuresThatAreNoNumbersAreRefused(String cell) throws IOException {
        CsvFile file = file("a,b,y\n1,2,0\n1,\"" + cell + "\",1\n");
        refused(file, "line 3, column 'b' is '" + cell + "'; a feature is a decimal number");
    }

    @Test
    void cellsThatAreMissingAreRefused() throws IOException {
        refused(file("a,b,y\n1,,0\n"), "line 2, column 'b' is empty; every cell needs a value");
        refused(file("a,b,y\n1,2,\n"), "line 2, column 'y' is empty");
        refused(grouped("a,city,y\n1,  ,1\n"), "line 2, column 'city' is empty");
        refused(file("a,b,y\n1,2,0\n1,2\n"), "line 3 has 2 cells, but the first line has 3 columns");
        refused(file("a,b,y\n\n1,2,0,9\n"), "line 3 has 4 cells, but the first line has 3 columns");
        refused(file("a,y\n1,0.5\n"), "line 2, column 'y' is '0.5'; a label is a whole number or a word");
    }

    @Test
    void quotesThatAreNotClosedAreRefused() throws IOException {
        refused(file("a,y\n1,0\n2,\"1"), "a quote is not closed, or the file is truncated");
        refused(file("a,y\n1,\"0\n2,1\n"), "line 2, column 'y' has a line end; is a quote not closed?");
        refused(file("a,y\n1,\"0\"x\n2,1\n"), "not a table: ");
        assertThat(load(file("a,y\n1,\"x\"\"y\"\n2,\"1\"")).train().count()).isEqualTo(2);
    }

    @Test
    void columnsThatDoNotFitAreRefused() throws IOException {
        refused(file("a,a,y\n1,2,0\n"), "the column 'a' is there twice");
        refused(file("a,b\n1,2\n"), "no column 'y' for the label; the first line has a, b");
        refused(file("1,2,0\n1,2,0\n"), "no column 'y' for the label; the first line has 1, 2, 0");
        refused(grouped("a,y\n1,2\n"), "no column 'city' for the client; the first line has a, y");
        refused(file("y\n1\n"), "no column is a feature; its columns are y");
        refused(new CsvFile(file("a,y\n1,1\n").file(), "y", Optional.of("y")), "is the label and the client");
        CsvFile train = file("a,b,y\n1,2,0\n");
        Path other = Files.writeString(directory.resolve("u.csv"), "b,a,y\n1,2,0\n");
        assertThatThrownBy(() -> CsvFile.load(train, new CsvFile(other, "y", Optional.empty())))
                .isInstanceOf(MalformedFileException.class)
                .hasMessage(other + ": the features are b, a, but those of " + train.file()
                        + " are a, b; they have to be equal, in the same order");
    }

    @Test
    void whatIsNoTableIsRefused() throws IOException {
        refused(file(""), "the file is empty; a line with the names of the columns is needed");
        refused(file("\ufeff"), "the file is empty");
        refused(file("a,y\n"), "no line follows the names of the columns");
        refused(file("a,y\n1,\"" + "x".repeat(5000) + "\"\n"), "not a table: ");
        refused(file("a,y\n1,\"" + "x".repeat(500_000)), "not a table: ");
        refused(file(",".repeat(70_000)), "not a table: ");
        refused(file("a,y\n1,1000000\n"), "column 'y' has the label '1000000'; at most 1000000 classes are possible");
        Files.write(file("").file(), new byte[] {'a', ',', 'y', '\n', (byte) 0xff, ',', '1', '\n'});
        assertThatThrownBy(() -> load(new CsvFile(directory.resolve("t.csv"), "y", Optional.empty())))
                .isInstanceOf(MalformedFileException.class)
                .hasMessageEndingWith("t.csv: not in UTF-8; convert it");
    }

    @Test
    void whatIsNoFileIsNamed() {
        Path none = directory.resolve("none.csv");
        assertThatThrownBy(() -> load(new CsvFile(none, "y", Optional.empty())))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(none + ": no such file");
        assertThatThrownBy(() -> load(new CsvFile(directory, "y", Optional.empty())))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("is a directory");
    }

    @Test
    @Tag(Soak.TAG)
    void mutationsAreReadOrRefused() throws IOException {
        var random = new Random(SEED);
        List<String> pieces =
                List.of(",", "\"", "\n", "\r", "\n\n", "nan", "1e999", "-", "\ufeff", "\0", "y", "0.5", "'");
        try (var mutations = new Mutations("CSV", SEED, MalformedFileException.class).allocating(64, 1 << 20)) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] bytes = Mutations.text(TABLE, pieces, random).getBytes(StandardCharsets.UTF_8);
                if (random.nextInt(8) == 0 && bytes.length > 0) {
                    bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(256);
                }
                CsvFile file = grouped("");
                Files.write(file.file(), bytes);
                mutations.feed(bytes, file.file() + ": ", () -> {
                    ExampleSet set = load(file).train();
                    for (int k = 0; k < set.count(); k++) {
                        for (float value : valuesOf(set, k)) {
                            assertThat(value).isFinite();
                        }
                        assertThat(set.group(k)).isPresent();
                    }
                    return true;
                });
            }
            mutations.end(0.02, 0.6);
        }
    }

    private static void refused(CsvFile file, String words) {
        assertThatThrownBy(() -> load(file))
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(file.file() + ": ")
                .hasMessageContaining(words)
                .satisfies(e -> assertThat(e.getMessage()).doesNotContainPattern("\\R"));
    }
}
