package org.fedcomuon.data;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Stream;
import org.fedcomuon.file.MalformedFileException;

/**
 * WikiText-2, articles of Wikipedia, word by word: files in a directory, or the texts that are packaged with these
 * classes. Only the validation and the test text are packaged, not the larger training text; models are then trained on
 * the validation text, which the description states. This is the quick form: its losses and perplexities are not
 * comparable with those of WikiText-2, whose vocabulary is more than twice as large.
 *
 * <p>Thread-safe.
 */
public final class WikiText2 {
    /** The number of words per block, as in the paper. */
    public static final int BLOCK = 128;

    /** The SHA-256 of each of the published texts. */
    static final String TRAIN_SHA256 = "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f";

    static final String VALID_SHA256 = "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8";
    static final String TEST_SHA256 = "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0";

    /** The limit for a file; WikiText-2's training text has 10.8 MB. */
    private static final int MOST_BYTES = 256 << 20;

    private WikiText2() {}

    /** The content of a text file, and its name. */
    private static final class Text {
        final Path name;
        final byte[] content;

        Text(Path name, byte[] content) {
            this.name = name;
            this.content = content;
        }

        String sha256() {
            var digest = new ContentDigest();
            digest.update(content, content.length);
            return digest.hex();
        }
    }

    /** Returns the packaged texts, in the quick form, in blocks of {@value #BLOCK} words. */
    public static TextDataset bundled() {
        return bundled(BLOCK);
    }

    /** Returns the packaged texts, in the quick form, in blocks of {@code length} words. */
    public static TextDataset bundled(int length) {
        try {
            return read(false, packaged("valid.txt.gz"), packaged("test.txt.gz"), length);
        } catch (IOException e) {
            throw new UncheckedIOException("the packaged WikiText-2 cannot be read: " + e.getMessage(), e);
        }
    }

    private static Text packaged(String name) throws IOException {
        try (InputStream in = WikiText2.class.getResourceAsStream("wikitext2/" + name)) {
            if (in == null) {
                throw new NoSuchFileException(name, null, "not packaged with these classes");
            }
            return new Text(Path.of(name), FileContent.read(Path.of(name), in.readAllBytes(), MOST_BYTES));
        }
    }

    /** Returns the default directory of the files, in the user's cache. */
    public static Path defaultDirectory() {
        return DataCache.directory("wikitext2");
    }

    /** Reads the texts of a directory in blocks of {@value #BLOCK} words, as {@link #load(Path, int)}. */
    public static TextDataset load(Path directory) throws IOException {
        return load(directory, BLOCK);
    }

    /**
     * Reads the texts of a directory: WikiText-2 itself, or another in its format. See {@link #files} for their names.
     * Without a training text, the validation text is used for training.
     *
     * @param length the number of words per block
     * @throws MalformedFileException when a file is damaged or is not of the kind that its name indicates
     * @throws IOException when a file is missing or cannot be read; every message is one line that names the file
     */
    public static TextDataset load(Path directory, int length) throws IOException {
        List<Path> files = files(directory);
        return read(hasTrainingText(directory), text(files.get(0)), text(files.get(1)), length);
    }

    /**
     * Returns the files in a directory, or in {@code wikitext-2} in it, that {@link #load} reads: the text to train on
     * and the text to test with. Their names are {@code wiki.train.tokens}, {@code train.txt} or
     * {@code wiki.train.txt}, optionally with {@code .gz} at the end, and the same with {@code test} or, if there is no
     * training text, with {@code valid} in place of {@code train}.
     *
     * @throws NoSuchFileException when a file is missing
     */
    public static List<Path> files(Path directory) throws NoSuchFileException {
        Path train = find(directory, "train")
                .or(() -> find(directory, "valid"))
                .orElseThrow(() -> missing(directory, "train", "; valid.txt, which could replace it, is missing too"));
        Path test = find(directory, "test").orElseThrow(() -> missing(directory, "test", ""));
        return List.of(train, test);
    }

    /** Returns whether a directory has a training text; without it, {@link #load} returns the quick form. */
    public static boolean hasTrainingText(Path directory) {
        return find(directory, "train").isPresent();
    }

    private static Optional<Path> find(Path directory, String split) {
        return Stream.of(directory, directory.resolve("wikitext-2"))
                .flatMap(place -> names(split).map(place::resolve))
                .filter(Files::isRegularFile)
                .findFirst();
    }

    private static Stream<String> names(String split) {
        return Stream.of("wiki.%s.tokens", "%s.txt", "wiki.%s.txt")
                .map(name -> name.formatted(split))
                .flatMap(name -> Stream.of(name, name + ".gz"));
    }

    private static NoSuchFileException missing(Path directory, String split, String more) {
        return new NoSuchFileException(
                MalformedFileException.oneLine("" + directory),
                null,
                "%s.txt and wiki.%s.tokens are missing%s".formatted(split, split, more));
    }

    private static Text text(Path file) throws IOException {
        return new Text(file, FileContent.read(file, "a text", MOST_BYTES));
    }

    private static TextDataset read(boolean whole, Text trained, Text test, int length) throws IOException {
        Words words = Words.of(trained.name, trained.content);
        if (words.different() < 2) {
            throw new MalformedFileException(
                    trained.name, "the text repeats a single word; a vocabulary needs at least two");
        }
        Words unseen = Words.of(test.name, test.content);
        TextDataset.Vocabulary vocabulary = words.vocabulary();
        TextBlocks trainBlocks = blocks(trained, words, vocabulary, length);
        TextBlocks testBlocks = blocks(test, unseen, vocabulary, length);
        var digest = new ContentDigest();
        digest.update(trained.content, trained.content.length);
        digest.update(test.content, test.content.length);
        return new TextDataset(
                trainBlocks,
                testBlocks,
                vocabulary,
                describe(which(whole, trained, test), trainBlocks, testBlocks, vocabulary),
                digest.hex());
    }

    private static TextBlocks blocks(Text text, Words words, TextDataset.Vocabulary vocabulary, int length)
            throws MalformedFileException {
        if (words.size() <= length) {
            throw new MalformedFileException(
                    text.name,
                    "%d words, including ends of lines; a block of %d and the word after it are needed"
                            .formatted(words.size(), length));
        }
        return new TextBlocks(words.tokens(vocabulary), length);
    }

    private static String which(boolean whole, Text trained, Text test) {
        boolean published = trained.sha256().equals(whole ? TRAIN_SHA256 : VALID_SHA256)
                && test.sha256().equals(TEST_SHA256);
        String name = published ? "WikiText-2" : "text in WikiText-2's format, but not WikiText-2";
        return whole ? name : name + ", quick form: without a training text, the validation text is used for training";
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
