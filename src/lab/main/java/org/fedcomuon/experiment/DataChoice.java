package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.fedcomuon.data.ArrayFiles;
import org.fedcomuon.data.Cifar10;
import org.fedcomuon.data.CsvFile;
import org.fedcomuon.data.ImageDirectory;
import org.fedcomuon.data.LabelledDataset;
import org.fedcomuon.data.Mnist;
import org.fedcomuon.data.TextDataset;
import org.fedcomuon.data.TextFile;
import org.fedcomuon.data.WikiText2;

/**
 * A data set.
 *
 * <p>Immutable.
 *
 * @param download the size of the download of {@code fedcomuon data get} where the data are not packaged; empty
 *     otherwise
 * @param loader reads it
 */
public record DataChoice(String name, List<Setting> settings, String download, Loader loader) implements Choice {
    /** Reads a data set. Called by many threads. */
    @FunctionalInterface
    public interface Loader {
        /**
         * Reads it.
         *
         * @param directory the user's own files; otherwise what is packaged, or what is in the user's cache
         */
        TaskData load(Configuration c, Optional<Path> directory) throws IOException;
    }

    /** The classes that count as positive; the others are then negative ones. */
    static final Setting POSITIVES = new Setting("positives", "a list of classes such as 5,6,7", text -> {
                positives(text);
                return text;
            })
            .optional();

    private static Set<Integer> positives(String text) {
        return Arrays.stream(text.split(",", -1))
                .map(label -> Integer.valueOf(label.strip()))
                .collect(Collectors.toSet());
    }

    private static TaskData twoClasses(Configuration c, TaskData data) {
        if (!(data instanceof TaskData.Labelled labelled)) {
            throw new ConfigurationException("positives needs classes, which a text does not have");
        }
        String positives = c.text(POSITIVES.name());
        try {
            return new TaskData.Labelled(labelled.set().twoClasses(positives(positives)));
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException("positives = %s: %s".formatted(positives, e.getMessage()), e);
        }
    }

    private static final String TEST = "test";
    private static final Setting TEST_SHARE = Setting.share("testShare").optional();

    static final Registry<DataChoice> ALL = new Registry<>(
            "data",
            ChoiceProvider::dataSets,
            new DataChoice(
                    "mnist",
                    List.of(),
                    "",
                    (c, directory) -> new TaskData.Labelled(
                            directory.isPresent() ? Mnist.load(directory.get()) : Mnist.bundled())),
            new DataChoice(
                    "cifar10",
                    List.of(),
                    "139 MB",
                    (c, directory) ->
                            new TaskData.Labelled(Cifar10.load(directory.orElseGet(Cifar10::defaultDirectory)))),
            new DataChoice(
                    "wikitext2",
                    List.of(Setting.integer("length", 1, 100_000).withDefault("128")),
                    "",
                    (c, directory) -> new TaskData.Text(text(directory, c.integer("length")))),
            new DataChoice(
                    "arrays",
                    List.of(
                            Setting.path("train.x"),
                            Setting.path("train.y"),
                            Setting.path("test.x").optional(),
                            Setting.path("test.y").optional(),
                            TEST_SHARE),
                    "",
                    (c, directory) -> new TaskData.Labelled(arrays(c))),
            new DataChoice(
                    "csv",
                    List.of(
                            Setting.path("train.file"),
                            Setting.text("train.label"),
                            Setting.text("train.client").optional(),
                            Setting.path("test.file").optional(),
                            TEST_SHARE),
                    "",
                    (c, directory) -> new TaskData.Labelled(csv(c))),
            new DataChoice(
                    "images",
                    List.of(Setting.path("train"), Setting.path("test").optional(), TEST_SHARE),
                    "",
                    (c, directory) -> new TaskData.Labelled(images(c))),
            new DataChoice(
                    "text",
                    List.of(
                            Setting.path("train"),
                            Setting.path("test").optional(),
                            TEST_SHARE,
                            Setting.integer("length", 1, 100_000).withDefault("128"),
                            Setting.integer("vocabulary", 3, Setting.MANY).withDefault(Integer.toString(Setting.MANY))),
                    "",
                    (c, directory) -> new TaskData.Text(ownText(c))),
            new DataChoice(
                    "returns",
                    List.of(
                            Setting.integer("assets", 1, 100_000).withDefault("20"),
                            Setting.count("markets").withDefault("10"),
                            Setting.count("days").withDefault("500")),
                    "",
                    (c, directory) -> new TaskData.Labelled(
                            ReturnsData.of(c.integer("markets"), c.integer("days"), c.integer("assets"), c.seed()))),
            new DataChoice(
                    "markov-chain",
                    List.of(
                            Setting.integer("states", 1, 100_000).withDefault("10"),
                            Setting.integer("features", 1, 100_000).withDefault("4"),
                            Setting.count("chains").withDefault("10"),
                            Setting.count("transitions").withDefault("500")),
                    "",
                    (c, directory) -> new TaskData.Labelled(MarkovData.of(
                            c.integer("chains"),
                            c.integer("transitions"),
                            c.integer("states"),
                            c.integer("features"),
                            c.seed()))));

    private static TextDataset ownText(Configuration c) throws IOException {
        Path train = file(c, "train");
        int length = c.integer("length");
        int vocabulary = c.integer("vocabulary");
        return holdsBack(c)
                ? TextFile.load(train, c.number(TEST_SHARE.name()), length, vocabulary)
                : TextFile.load(train, file(c, "test"), length, vocabulary);
    }

    private static LabelledDataset arrays(Configuration c) throws IOException {
        var train = new ArrayFiles(file(c, "train.x"), file(c, "train.y"));
        return holdsBack(c)
                ? ArrayFiles.load(train, c.number(TEST_SHARE.name()), c.seed())
                : ArrayFiles.load(train, new ArrayFiles(file(c, "test.x"), file(c, "test.y")));
    }

    /** Test examples are in a file with the same columns; to which clients they belong is not asked. */
    private static LabelledDataset csv(Configuration c) throws IOException {
        String label = c.text("train.label");
        Optional<String> client = c.has("train.client") ? Optional.of(c.text("train.client")) : Optional.empty();
        var train = new CsvFile(file(c, "train.file"), label, client);
        return holdsBack(c)
                ? CsvFile.load(train, c.number(TEST_SHARE.name()), c.seed())
                : CsvFile.load(train, new CsvFile(file(c, "test.file"), label, client));
    }

    private static LabelledDataset images(Configuration c) throws IOException {
        Path train = file(c, "train");
        return holdsBack(c)
                ? ImageDirectory.load(train, c.number(TEST_SHARE.name()), c.seed())
                : ImageDirectory.load(train, file(c, "test"));
    }

    private static Path file(Configuration c, String name) {
        return c.path(name).orElseThrow();
    }

    /** Returns whether test examples are a share of the training examples; otherwise they have files of their own. */
    private static boolean holdsBack(Configuration c) {
        return c.has(TEST_SHARE.name());
    }

    /** Returns what is wrong with the settings of the data together: there are test examples from one source. */
    List<String> mistakes(Configuration c) {
        if (!settings.contains(TEST_SHARE)) {
            return List.of();
        }
        List<String> files = settings.stream()
                .map(Setting::name)
                .filter(name -> name.equals(TEST) || name.startsWith(TEST + "."))
                .toList();
        List<String> given = files.stream().filter(c::has).toList();
        String names = String.join(" and ", files);
        if (holdsBack(c)) {
            return given.isEmpty()
                    ? List.of()
                    : List.of("%s and %s are both given; one of them is needed, and not both"
                            .formatted(String.join(" and ", given), TEST_SHARE.name()));
        }
        return given.size() == files.size()
                ? List.of()
                : List.of("%s; %s is needed, or else %s, the share of the training examples that is for testing"
                        .formatted(
                                given.isEmpty()
                                        ? "there are no test examples"
                                        : "%s is given alone".formatted(String.join(" and ", given)),
                                names,
                                TEST_SHARE.name()));
    }

    private static TextDataset text(Optional<Path> directory, int length) throws IOException {
        if (directory.isPresent()) {
            return WikiText2.load(directory.get(), length);
        }
        Path cache = WikiText2.defaultDirectory();
        return WikiText2.hasTrainingText(cache) ? WikiText2.load(cache, length) : WikiText2.bundled(length);
    }

    /**
     * Reads the data.
     *
     * @throws ConfigurationException when they are missing
     * @throws IOException when a file is malformed
     */
    TaskData load(Configuration c, Optional<Path> directory) throws IOException {
        try {
            TaskData data = loader.load(c, directory);
            return c.has(POSITIVES.name()) ? twoClasses(c, data) : data;
        } catch (NoSuchFileException e) {
            String hint = download.isEmpty()
                    ? ""
                    : "; get it (%s) with: ./fedcomuon data get %s%s"
                            .formatted(
                                    download,
                                    name,
                                    directory.map(" --data-dir %s"::formatted).orElse(""));
            throw new ConfigurationException("the data are missing: " + e.getMessage() + hint, e);
        }
    }
}
