package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.fedcomuon.data.Cifar10;
import org.fedcomuon.data.Mnist;
import org.fedcomuon.data.TextDataset;
import org.fedcomuon.data.WikiText2;

/**
 * A data set.
 *
 * @param download the size of the download of {@code fedcomuon data get} where the data are not packaged; empty
 *     otherwise
 * @param loader reads it
 */
record DataChoice(String name, List<Setting> settings, String download, Loader loader) implements Choice {
    /** Reads a data set. */
    @FunctionalInterface
    interface Loader {
        /**
         * Reads it.
         *
         * @param directory the user's own files; otherwise what is packaged, or what is in the user's cache
         */
        TaskData load(Configuration c, Optional<Path> directory) throws IOException;
    }

    static final Registry<DataChoice> ALL = new Registry<>(
            "data",
            new DataChoice(
                    "mnist",
                    List.of(),
                    "",
                    (c, directory) ->
                            new TaskData.Images(directory.isPresent() ? Mnist.load(directory.get()) : Mnist.bundled())),
            new DataChoice(
                    "cifar10",
                    List.of(),
                    "139 MB",
                    (c, directory) ->
                            new TaskData.Images(Cifar10.load(directory.orElseGet(Cifar10::defaultDirectory)))),
            new DataChoice(
                    "wikitext2",
                    List.of(Setting.integer("length", 1, 100_000).withDefault("128")),
                    "",
                    (c, directory) -> new TaskData.Text(text(directory, c.integer("length")))));

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
            return loader.load(c, directory);
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
