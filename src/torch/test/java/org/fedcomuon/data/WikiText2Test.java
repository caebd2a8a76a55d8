package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.assertj.core.api.AbstractThrowableAssert;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class WikiText2Test {
    private static final long SEED = Long.getLong("tests.seed", 16_11_2026L);
    private static final int MUTATIONS = Soak.mutations(10_000);

    private static final Path RESOURCES = Path.of("main/resources/org/fedcomuon/data/wikitext2");

    private static final String TRAIN = " \n = A title = \n \n b a <unk> b , c \n a b .\n";
    private static final String TEST = "a new b\nc\n";

    @TempDir
    Path directory;

    private void write(String name, String text) throws IOException {
        Path file = directory.resolve(name);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
    }

    private static List<String> words(TextBlocks blocks, TextDataset.Vocabulary vocabulary) {
        return IntStream.range(0, blocks.tokens())
                .mapToObj(i -> vocabulary.word(blocks.token(i)))
                .toList();
    }

    private static List<String> vocabulary(TextDataset dataset) {
        return IntStream.range(0, dataset.vocabulary().size())
                .mapToObj(dataset.vocabulary()::word)
                .toList();
    }

    // ---- what is read

    @Test
    void wordsAreNumberedByFrequencyAndThenByAppearance() throws IOException {
        write("train.txt", TRAIN);
        write("test.txt", TEST);
        TextDataset dataset = WikiText2.load(directory, 4);

        // <eos> five times, b three times, = and a twice, the others once.
        assertThat(vocabulary(dataset)).containsExactly("<eos>", "b", "=", "a", "A", "title", "<unk>", ",", "c", ".");
        assertThat(words(dataset.train(), dataset.vocabulary()))
                .containsExactly(
                        "<eos>", "=", "A", "title", "=", "<eos>", "<eos>", "b", "a", "<unk>", "b", ",", "c", "<eos>",
                        "a", "b", ".", "<eos>");
        assertThat(words(dataset.test(), dataset.vocabulary()))
                .containsExactly("a", "<unk>", "b", "<eos>", "c", "<eos>");
        assertThat(dataset.description())
                .isEqualTo("text in WikiText-2's format, but not WikiText-2: 18 training and 6 test tokens, 16.7% of"
                        + " these <unk>, a vocabulary of 10, 4 training and 1 test blocks of 4");
        assertThat(dataset.sha256()).isEqualTo(SmallMnist.sha256((TRAIN + TEST).getBytes(StandardCharsets.UTF_8)));
    }

    @Test
    void theTwoSpecialWordsAreAlwaysThere() throws IOException {
        write("train.txt", "one two one three");
        write("test.txt", "four <unk> <eos>");
        TextDataset dataset = WikiText2.load(directory, 1);
        assertThat(vocabulary(dataset)).containsExactly("one", "two", "three", "<eos>", "<unk>");
        assertThat(words(dataset.test(), dataset.vocabulary())).containsExactly("<unk>", "<unk>", "<eos>", "<eos>");
    }

    @Test
    void whiteSpaceIsOfEveryKindAndTheLastLineMayBeOpen() throws IOException {
        write("train.txt", "\ufeffone\ttwo\r\n\u000b three\f\u00a0four ä");
        write("test.txt", "one\n\ntwo");
        TextDataset dataset = WikiText2.load(directory, 2);
        assertThat(words(dataset.train(), dataset.vocabulary()))
                .containsExactly("one", "two", "<eos>", "three", "\u00a0four", "ä", "<eos>");
        assertThat(words(dataset.test(), dataset.vocabulary()))
                .containsExactly("one", "<eos>", "<eos>", "two", "<eos>");
    }

    @ParameterizedTest
    @CsvSource({
        "wiki.train.tokens, wiki.test.tokens",
        "train.txt, test.txt",
        "wiki.train.txt, wiki.test.txt",
        "wikitext-2/wiki.train.tokens, wikitext-2/wiki.test.tokens",
        "wikitext-2/train.txt, test.txt",
    })
    void filesHaveOneOfTheirNames(String train, String test) throws IOException {
        write(train, TRAIN);
        write(test, TEST);
        write("valid.txt", "not of interest");
        assertThat(WikiText2.files(directory)).containsExactly(directory.resolve(train), directory.resolve(test));
        assertThat(WikiText2.hasTrainingText(directory)).isTrue();
        assertThat(WikiText2.load(directory, 4).train().tokens()).isEqualTo(18);
    }

    @Test
    void compressedFilesAreTheSame() throws IOException {
        write("train.txt", TRAIN);
        write("test.txt", TEST);
        TextDataset plain = WikiText2.load(directory, 4);
        Path other = Files.createDirectory(directory.resolve("other"));
        Files.write(other.resolve("wiki.train.tokens.gz"), SmallMnist.gzip(TRAIN.getBytes(StandardCharsets.UTF_8)));
        Files.write(other.resolve("test.txt"), SmallMnist.gzip(TEST.getBytes(StandardCharsets.UTF_8)));

        TextDataset compressed = WikiText2.load(other, 4);
        assertThat(compressed.sha256()).isEqualTo(plain.sha256());
        assertThat(compressed.description()).isEqualTo(plain.description());
    }

    @Test
    void withoutATrainingTextTheValidationTextIsTrainedOn() throws IOException {
        write("wiki.valid.tokens", TRAIN);
        write("test.txt", TEST);
        assertThat(WikiText2.hasTrainingText(directory)).isFalse();
        assertThat(WikiText2.load(directory, 4).description())
                .startsWith("text in WikiText-2's format, but not WikiText-2, quick form: without a training text,"
                        + " the validation text is used for training: 18 training");
    }

    // ---- blocks

    @Test
    void targetsAreTheWordsThatFollow() {
        var blocks = new TextBlocks(IntStream.range(100, 110).toArray(), 3);
        var inputs = new long[7];
        var targets = new long[7];
        assertThat(blocks.count()).isEqualTo(3);
        blocks.copyTo(1, inputs, targets, 2);
        assertThat(inputs).containsExactly(0, 0, 103, 104, 105, 0, 0);
        assertThat(targets).containsExactly(0, 0, 104, 105, 106, 0, 0);
        blocks.copyTo(2, inputs, targets, 4);
        assertThat(targets).containsExactly(0, 0, 104, 105, 107, 108, 109);
        assertThat(blocks).hasToString("10 words in 3 blocks of 3");
    }

    @ParameterizedTest
    @CsvSource({"4, 3, 1", "6, 3, 1", "7, 3, 2", "2, 1, 1", "217646, 128, 1700"})
    void theWordAfterTheLastBlockIsNeededToo(int tokens, int length, int count) {
        assertThat(new TextBlocks(new int[tokens], length).count()).isEqualTo(count);
    }

    @Test
    void blocksThatCannotBeAreRefused() {
        assertThatThrownBy(() -> new TextBlocks(new int[3], 3))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("3 words; a block of 3 and the word after it are needed");
        assertThatThrownBy(() -> new TextBlocks(new int[3], 0)).hasMessage("blocks of 0 words; 1 is the least");
        var blocks = new TextBlocks(new int[10], 3);
        for (int block : new int[] {-1, 3}) {
            assertThatThrownBy(() -> blocks.copyTo(block, new long[3], new long[3], 0))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
        assertThatThrownBy(() -> blocks.copyTo(0, new long[3], new long[2], 0))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> blocks.copyTo(0, new long[3], new long[3], 1))
                .isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void whatItWasMadeOfMayChange() {
        var tokens = new int[5];
        var blocks = new TextBlocks(tokens, 2);
        tokens[0] = 7;
        assertThat(blocks.token(0)).isZero();
    }

    @Test
    void aVocabularyHasNoWordTwice() {
        assertThatThrownBy(() -> new TextDataset.Vocabulary(List.of("a", "<unk>", "<eos>", "a")))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> new TextDataset.Vocabulary(List.of("a", "<unk>")))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> new TextDataset.Vocabulary(List.of("a", "<eos>")))
                .isInstanceOf(IllegalArgumentException.class);
        var vocabulary = new TextDataset.Vocabulary(List.of("a", "<eos>", "<unk>"));
        assertThat(vocabulary.id("<eos>")).isEqualTo(1);
        assertThat(vocabulary.id("b")).isEqualTo(2);
    }

    // ---- what is packaged

    /** Every number by another program, from the same text. */
    @Test
    void thePackagedTextIsWikiText2s() {
        TextDataset dataset = WikiText2.bundled();

        assertThat(dataset.description())
                .isEqualTo("WikiText-2, quick form: without a training text, the validation text is used for training:"
                        + " 217646 training and 245569 test tokens, 11.0% of these <unk>, a vocabulary of 13777, 1700"
                        + " training and 1918 test blocks of 128");
        assertThat(dataset.sha256()).isEqualTo("ee8e179331812a9025fac9f2602faeb12e773d051d55ee6e50ce15da3bc784c1");
        assertThat(vocabulary(dataset)).startsWith("the", "<unk>", ",", ".", "of", "and", "in", "to", "<eos>");
        assertThat(SmallMnist.sha256(vocabulary(dataset).stream()
                        .collect(Collectors.joining("\n"))
                        .getBytes(StandardCharsets.UTF_8)))
                .isEqualTo("e424a3ab9e2f4e62bc93848a35bf3b5a84d7cda77d938a848111d10684416636");
        assertThat(sha256(dataset.train()))
                .isEqualTo("880ffa88f037ff1b24e1ae4a233a7b85b59a2ebfdb5dce5b50bde7220d994d18");
        assertThat(sha256(dataset.test()))
                .isEqualTo("7273e7a826eddd213abd912fdedaa6e140fc9ef08df40f2e2d23a73e9b2d838d");
        assertThat(WikiText2.bundled(32).train().count()).isEqualTo(6801);
    }

    private static String sha256(TextBlocks blocks) {
        ByteBuffer bytes = ByteBuffer.allocate(blocks.tokens() * Integer.BYTES);
        IntStream.range(0, blocks.tokens()).map(blocks::token).forEach(bytes::putInt);
        return SmallMnist.sha256(bytes.array());
    }

    /** The files as they come, in a directory of one's own, are recognized. */
    @Test
    void thePackagedTextInADirectoryIsTheSame() throws IOException {
        assertThat(WikiText2.load(RESOURCES).description())
                .isEqualTo(WikiText2.bundled().description());
    }

    @Test
    void whatIsPackagedIsSmallAndSaysWhoseItIs() throws IOException {
        assertThat(Files.size(RESOURCES.resolve("valid.txt.gz")) + Files.size(RESOURCES.resolve("test.txt.gz")))
                .isBetween(750_000L, 850_000L); // 0.8 MB, as 'data list' says
        assertThat(RESOURCES.resolve("LICENSE.md")).content().contains("Merity", "Wikipedia", "by-sa/3.0");
        assertThat(RESOURCES.resolve("README.md"))
                .content()
                .contains(WikiText2.VALID_SHA256, WikiText2.TEST_SHA256, "217646", "245569", "13777");
    }

    // ---- what is refused

    @Test
    void missingFilesAreNamed() throws IOException {
        assertThatThrownBy(() -> WikiText2.load(directory))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(directory
                        + ": train.txt and wiki.train.tokens are missing;"
                        + " valid.txt, which could replace it, is missing too");
        write("train.txt", TRAIN);
        assertThatThrownBy(() -> WikiText2.load(directory))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(directory + ": test.txt and wiki.test.tokens are missing");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "\n", " \n \n\t\r\n", "\ufeff"})
    void aTextWithoutWordsIsRefused(String text) throws IOException {
        refused("train.txt", text.getBytes(StandardCharsets.UTF_8)).hasMessageContaining("no words; a text is needed");
        refused("test.txt", text.getBytes(StandardCharsets.UTF_8)).hasMessageContaining("no words; a text is needed");
    }

    @Test
    void aVocabularyOfOneIsRefused() throws IOException {
        refused("train.txt", "a a a a a a\na a <unk> a a a <eos>\n".getBytes(StandardCharsets.UTF_8))
                .hasMessageContaining("the text repeats a single word");
        refused("train.txt", "<unk> <unk> <unk>\n<unk>\n<unk>\n".getBytes(StandardCharsets.UTF_8))
                .hasMessageContaining("repeats a single word");
    }

    @Test
    void aTextWithoutABlockIsRefused() throws IOException {
        refused("train.txt", "one two three".getBytes(StandardCharsets.UTF_8))
                .hasMessageContaining(
                        "4 words for training, including ends of lines; a block of 4 and the word after it");
        refused("test.txt", "one two three".getBytes(StandardCharsets.UTF_8))
                .hasMessageContaining("4 words for testing, including ends of lines");
    }

    @Test
    void whatIsNoTextIsRefused() throws IOException {
        for (String bytes :
                List.of("\u00ff", "a\u00c3", "\u00c0\u0080", "\u00ed\u00a0\u0080", "\u00f5\u0080\u0080\u0080")) {
            refused("train.txt", ("one two\nthree " + bytes + " four\n").getBytes(StandardCharsets.ISO_8859_1))
                    .hasMessageContaining("line 2 is not in UTF-8");
        }
        refused("test.txt", "one two".getBytes(StandardCharsets.UTF_16LE))
                .hasMessageContaining("a zero byte in line 1");
        refused("train.txt", ("one\n\n" + "x".repeat(1001) + " two").getBytes(StandardCharsets.UTF_8))
                .hasMessageContaining("a word of 1001 bytes in line 3; at most 1000 are possible");
        write("train.txt", TRAIN + "x".repeat(1000));
        assertThat(WikiText2.load(directory, 4).train().tokens()).isEqualTo(20);
    }

    @Test
    void tooManyWordsAreRefused() throws IOException {
        var text = new StringBuilder();
        for (int i = 0; i < 1_000_001; i++) {
            text.append(Integer.toString(i, 36)).append(' ');
        }
        refused("train.txt", text.toString().getBytes(StandardCharsets.UTF_8))
                .hasMessageContaining("more than 1000000 different words");
    }

    private AbstractThrowableAssert<?, ? extends Throwable> refused(String name, byte[] content) throws IOException {
        write("train.txt", TRAIN);
        write("test.txt", TEST);
        Files.write(directory.resolve(name), content);
        return assertThatThrownBy(() -> WikiText2.load(directory, 4))
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(directory.resolve(name) + ": ")
                .satisfies(e -> assertThat(e.getMessage()).doesNotContainPattern("\\R"));
    }

    // ---- whatever comes

    @Test
    @Tag(Soak.TAG)
    void mutationsAreReadOrRefused() throws IOException {
        var random = new Random(SEED);
        write("test.txt", TEST);
        byte[] original = (TRAIN + "Größe – 東京 <unk> \n").getBytes(StandardCharsets.UTF_8);
        byte[] compressed = SmallMnist.gzip(original);
        try (var mutations = new Mutations("text tokens", SEED, MalformedFileException.class)) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] bytes = (random.nextBoolean() ? original : compressed).clone();
                if (random.nextInt(4) == 0) {
                    bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length + 3));
                }
                for (int changes = random.nextInt(3); changes > 0 && bytes.length > 0; changes--) {
                    bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(256);
                }
                Files.write(directory.resolve("train.txt"), bytes);
                mutations.feed(bytes, "" + directory, () -> {
                    TextDataset dataset = WikiText2.load(directory, 4);
                    assertThat(dataset.train().tokens()).isGreaterThan(4);
                    int words = dataset.vocabulary().size();
                    return assertThat(
                                    IntStream.range(0, dataset.train().tokens()).map(dataset.train()::token))
                            .allMatch(token -> token >= 0 && token < words);
                });
            }
            mutations.end(0.01, 0.75);
        }
    }
}
