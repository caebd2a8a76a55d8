package org.fedcomuon.data;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
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

    private WikiText2() {}

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

    private static TextFile packaged(String name) throws IOException {
        try (InputStream in = WikiText2.class.getResourceAsStream("wikitext2/" + name)) {
            if (in == null) {
                throw new NoSuchFileException(name, null, "not packaged with these classes");
            }
            return TextFile.of(Path.of(name), in.readAllBytes());
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
        return read(hasTrainingText(directory), TextFile.of(files.get(0)), TextFile.of(files.get(1)), length);
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

    private static TextDataset read(boolean whole, TextFile trained, TextFile test, int length) throws IOException {
        return TextFile.dataset(which(whole, trained, test), trained, test, length, Integer.MAX_VALUE);
    }

    private static String which(boolean whole, TextFile trained, TextFile test) {
        boolean published = trained.sha256().equals(whole ? TRAIN_SHA256 : VALID_SHA256)
                && test.sha256().equals(TEST_SHA256);
        String name = published ? "WikiText-2" : "text in WikiText-2's format, but not WikiText-2";
        return whole ? name : name + ", quick form: without a training text, the validation text is used for training";
    }
}
