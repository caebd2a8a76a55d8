package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
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

class TextFileTest {
    private static final long SEED = Long.getLong("tests.seed", 18_11_2026L);
    private static final int MUTATIONS = Soak.mutations(2_000);
    private static final int ALL = Integer.MAX_VALUE;

    private static final String TEXT = "a b a\nc a b\nd d a\nb e f\n"; // 16 words in 4 lines of 6 bytes

    @TempDir
    Path directory;

    private Path write(String name, String text) throws IOException {
        return Files.writeString(directory.resolve(name), text);
    }

    private static List<String> words(TextBlocks blocks, TextDataset set) {
        return IntStream.range(0, blocks.tokens())
                .mapToObj(i -> set.vocabulary().word(blocks.token(i)))
                .toList();
    }

    private static List<String> vocabulary(TextDataset set) {
        return IntStream.range(0, set.vocabulary().size())
                .mapToObj(set.vocabulary()::word)
                .toList();
    }

    @Test
    void textsAreReadWithTheVocabularyOfTheFirst() throws IOException {
        TextDataset set = TextFile.load(write("a.txt", TEXT), write("b.txt", "a z\nf\n"), 2, ALL);
        assertThat(vocabulary(set)).containsExactly("a", "<eos>", "b", "d", "c", "e", "f", "<unk>");
        assertThat(words(set.test(), set)).containsExactly("a", "<unk>", "<eos>", "f", "<eos>");
        assertThat(set.train().count()).isEqualTo(7);
        assertThat(set.description())
                .isEqualTo("text of a.txt: 16 training and 5 test tokens, 20.0% of these <unk>, a vocabulary of 8, 7"
                        + " training and 2 test blocks of 2");
        assertThat(set.sha256()).isEqualTo(SmallMnist.sha256((TEXT + "a z\nf\n").getBytes(StandardCharsets.UTF_8)));
    }

    @ParameterizedTest
    @CsvSource({
        "3, <eos> a <unk>", // in any order
        "4, <eos> a b <unk>",
        "7, <eos> a b d c e <unk>",
        "8, <eos> a b d c e f <unk>",
        "1000, <eos> a b d c e f <unk>",
    })
    void theMostFrequentWordsAreKept(int most, String words) throws IOException {
        TextDataset set = TextFile.load(write("a.txt", TEXT), write("b.txt", "a b c\n"), 2, most);
        assertThat(vocabulary(set)).containsExactlyInAnyOrder(words.split(" "));
        assertThat(set.train().tokens()).isEqualTo(16);
        assertThat(words(set.train(), set).get(4)).isEqualTo(most < 7 ? "<unk>" : "c");
    }

    /** The special words stay, however rare they are. */
    @Test
    void specialWordsAreKept() throws IOException {
        TextDataset set = TextFile.load(write("a.txt", "x x y y z z <unk> x"), write("b.txt", "x y z"), 1, 3);
        assertThat(vocabulary(set)).containsExactly("x", "<unk>", "<eos>");
    }

    /** The last lines, and never a part of one. */
    @ParameterizedTest
    @CsvSource({"0.25, 12, 4", "0.01, 16, 0", "0.26, 12, 4", "0.5, 8, 8", "0.51, 8, 8", "0.9, 4, 12", "0.2, 16, 0"})
    void theEndIsForTesting(double share, int trained, int tested) throws IOException {
        Path file = write("a.txt", TEXT);
        if (tested == 0) {
            assertThatThrownBy(() -> TextFile.load(file, share, 1, ALL))
                    .isInstanceOf(MalformedFileException.class)
                    .hasMessage(file + ": no line is left for a test share of " + share
                            + "; give more lines, or a test text");
            return;
        }
        TextDataset set = TextFile.load(file, share, 1, ALL);
        assertThat(set.train().tokens()).isEqualTo(trained);
        assertThat(set.test().tokens()).isEqualTo(tested);
        assertThat(set.sha256()).isEqualTo(SmallMnist.sha256(TEXT.getBytes(StandardCharsets.UTF_8)));
        assertThat(set.description()).startsWith("text of a.txt, whose end is for testing: ");
        // No word of the end is known by it.
        assertThat(vocabulary(set)).doesNotContain("e", "f");
    }

    @Test
    void compressedTextsAreRead() throws IOException {
        Path file = Files.write(directory.resolve("a.gz"), SmallMnist.gzip(TEXT.getBytes(StandardCharsets.UTF_8)));
        assertThat(TextFile.load(file, file, 2, ALL).train().tokens()).isEqualTo(16);
    }

    @ParameterizedTest
    @ValueSource(doubles = {0, 1, -0.1, 1.5, Double.NaN})
    void sharesThatAreNoneAreRefused(double share) throws IOException {
        Path file = write("a.txt", TEXT);
        assertThatThrownBy(() -> TextFile.load(file, share, 1, ALL))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("a test share of %s; between 0 and 1 is possible".formatted(share));
    }

    @Test
    void whatCannotBeIsRefused() throws IOException {
        Path file = write("a.txt", TEXT);
        Path none = directory.resolve("none.txt");
        assertThatThrownBy(() -> TextFile.load(file, none, 1, ALL))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(none + ": no such file");
        assertThatThrownBy(() -> TextFile.load(file, file, 1, 2))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("a vocabulary of 2 words; 3 are the least");
        assertThatThrownBy(() -> TextFile.load(file, file, 16, ALL))
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(file + ": 16 words for training, including ends of lines; a block of 16");
        assertThatThrownBy(() -> TextFile.load(write("b.txt", "x x x\n"), file, 1, ALL))
                .hasMessageContaining("the text repeats a single word");
    }

    @Test
    @Tag(Soak.TAG)
    void mutationsAreReadOrRefused() throws IOException {
        var random = new Random(SEED);
        Path file = directory.resolve("a.txt");
        List<String> pieces = List.of("\n", " ", "\0", "<unk>", "<eos>", "é", "\ufeff", "x".repeat(400), "\r\n");
        try (var mutations = new Mutations("text with a share for testing", SEED, MalformedFileException.class)
                .allocating(256, 1 << 20)) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] bytes = Mutations.text(TEXT, pieces, random).getBytes(StandardCharsets.UTF_8);
                Files.write(file, bytes);
                mutations.feed(bytes, file + ": ", () -> {
                    TextDataset set = TextFile.load(file, 0.3, 2, 5);
                    assertThat(set.vocabulary().size()).isLessThanOrEqualTo(5);
                    return assertThat(words(set.test(), set)).isNotEmpty();
                });
            }
            mutations.end(0.05, 0.95);
        }
    }
}
