package org.fedcomuon.data;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import org.fedcomuon.file.MalformedFileException;

/**
 * Text files for language models, for data of your own: words in UTF-8, separated by white space, not changed in any
 * way; the end of a line is a word of its own. A file may be compressed with gzip, and has at most {@value #MOST_BYTES}
 * bytes when it is not. The vocabulary consists of the words of the training text, and every other word of the test
 * text is unknown.
 *
 * <p>Immutable.
 */
public final class TextFile {
    /** The limit of a file; WikiText-2's training text has 10.8 MB. */
    static final int MOST_BYTES = 256 << 20;

    /** The least vocabulary: a word, and the two that every vocabulary has. */
    private static final int LEAST_VOCABULARY = 3;

    private final Path name;
    private final byte[] content;

    private TextFile(Path name, byte[] content) {
        this.name = name;
        this.content = content;
    }

    /**
     * Reads a text for training and one for testing.
     *
     * @param length the number of words per block
     * @param vocabulary the most words of the vocabulary, with the two that stand for unknown words and ends of lines:
     *     the most frequent ones are kept, and the others are unknown; {@link Integer#MAX_VALUE} keeps all
     * @throws MalformedFileException when a file is not a text, or is too short for a block
     * @throws IOException when a file is missing or cannot be read; every message is one line that names the file
     * @throws IllegalArgumentException when the length or the vocabulary is not possible
     */
    public static TextDataset load(Path train, Path test, int length, int vocabulary) throws IOException {
        return dataset("text of %s".formatted(train.getFileName()), of(train), of(test), length, vocabulary);
    }

    /**
     * Reads a text whose end is for testing: the lines that begin in the last {@code testShare} of its bytes. They are
     * not drawn at random, because neighbouring lines resemble each other.
     *
     * @param testShare between 0 and 1
     * @param length the number of words per block
     * @param vocabulary as in {@link #load(Path, Path, int, int)}, of the training part
     * @throws MalformedFileException when the file is not a text, or one part of it is too short for a block
     * @throws IOException when the file is missing or cannot be read; every message is one line that names the file
     * @throws IllegalArgumentException when the share, the length or the vocabulary is not possible
     */
    public static TextDataset load(Path train, double testShare, int length, int vocabulary) throws IOException {
        if (!(testShare > 0 && testShare < 1)) {
            throw new IllegalArgumentException("a test share of %s; between 0 and 1 is possible".formatted(testShare));
        }
        TextFile whole = of(train);
        int cut = BigDecimal.ONE
                .subtract(BigDecimal.valueOf(testShare))
                .multiply(BigDecimal.valueOf(whole.content.length))
                .setScale(0, RoundingMode.CEILING)
                .intValueExact();
        while (cut > 0 && cut < whole.content.length && whole.content[cut - 1] != '\n') {
            cut++;
        }
        if (cut >= whole.content.length) {
            throw new MalformedFileException(
                    train,
                    "no line is left for a test share of %s; give more lines, or a test text".formatted(testShare));
        }
        return dataset(
                "text of %s, whose end is for testing".formatted(train.getFileName()),
                new TextFile(train, Arrays.copyOf(whole.content, cut)),
                new TextFile(train, Arrays.copyOfRange(whole.content, cut, whole.content.length)),
                length,
                vocabulary);
    }

    /** Reads a file. */
    static TextFile of(Path file) throws IOException {
        return new TextFile(file, FileContent.read(file, "a text", MOST_BYTES));
    }

    /** Reads the content of a file; messages call it {@code name}. */
    static TextFile of(Path name, byte[] content) throws IOException {
        return new TextFile(name, FileContent.read(name, content, MOST_BYTES));
    }

    /** Returns the SHA-256 of the text. */
    String sha256() {
        var digest = new ContentDigest();
        digest.update(content, content.length);
        return digest.hex();
    }

    /** Makes a data set; {@code which} begins its description. */
    static TextDataset dataset(String which, TextFile train, TextFile test, int length, int vocabulary)
            throws IOException {
        if (vocabulary < LEAST_VOCABULARY) {
            throw new IllegalArgumentException(
                    "a vocabulary of %d words; %d are the least".formatted(vocabulary, LEAST_VOCABULARY));
        }
        Both<Words> both = Both.of(() -> Words.of(train.name, train.content), () -> Words.of(test.name, test.content));
        Words words = both.train();
        if (words.different() < 2) {
            throw new MalformedFileException(
                    train.name, "the text repeats a single word; a vocabulary needs at least two");
        }
        TextDataset.Vocabulary known = words.vocabulary(vocabulary);
        Both<TextBlocks> blocks = Both.of(
                () -> blocks(train, "training", words, known, length),
                () -> blocks(test, "testing", both.test(), known, length));
        TextBlocks trainBlocks = blocks.train();
        TextBlocks testBlocks = blocks.test();
        var digest = new ContentDigest();
        digest.update(train.content, train.content.length);
        digest.update(test.content, test.content.length);
        return new TextDataset(
                trainBlocks, testBlocks, known, describe(which, trainBlocks, testBlocks, known), digest.hex());
    }

    private static TextBlocks blocks(
            TextFile text, String use, Words words, TextDataset.Vocabulary vocabulary, int length)
            throws MalformedFileException {
        if (words.size() <= length) {
            throw new MalformedFileException(
                    text.name,
                    "%d words for %s, including ends of lines; a block of %d and the word after it are needed"
                            .formatted(words.size(), use, length));
        }
        return new TextBlocks(words.tokens(vocabulary), length);
    }

    private static String describe(String which, TextBlocks train, TextBlocks test, TextDataset.Vocabulary vocabulary) {
        int unknown = vocabulary.id(TextDataset.Vocabulary.UNKNOWN);
        var tokens = new int[test.tokens()];
        Arrays.setAll(tokens, test::token);
        double share =
                (double) Arrays.stream(tokens).filter(id -> id == unknown).count() / tokens.length;
        return String.format(
                Locale.ROOT,
                "%s: %d training and %d test tokens, %.1f%% of these %s, a vocabulary of %d, %d training and %d test"
                        + " blocks of %d",
                which,
                train.tokens(),
                test.tokens(),
                100 * share,
                TextDataset.Vocabulary.UNKNOWN,
                vocabulary.size(),
                train.count(),
                test.count(),
                train.length());
    }
}
