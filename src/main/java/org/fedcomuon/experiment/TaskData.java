package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Optional;
import org.fedcomuon.data.Cifar10;
import org.fedcomuon.data.Cifar10Download;
import org.fedcomuon.data.ImageDataset;
import org.fedcomuon.data.Mnist;
import org.fedcomuon.data.Partition;
import org.fedcomuon.data.TextDataset;
import org.fedcomuon.data.WikiText2;
import org.fedcomuon.model.Examples;

/** The data of a run, before and after they become tensors. */
sealed interface TaskData {
    /** Training images, or blocks of text. */
    int trainCount();

    /** How many classes a prediction chooses from: those of images, or the vocabulary. */
    int classes();

    /** Some of the training set, in this order. */
    Examples train(int[] which);

    /** Some of the test set, in this order. */
    Examples test(int[] which);

    /** How many there are for testing. */
    int testCount();

    /** Bytes of an example as tensors. */
    long exampleBytes();

    /** For people. */
    String description();

    /** Of the content. */
    String sha256();

    /** Deals the training set, or the test set, out by classes. */
    Partition dominant(boolean test, int clients, int size, double chi, long seed);

    /** Photographs or digits. */
    record Images(ImageDataset set) implements TaskData {
        @Override
        public int trainCount() {
            return set.train().count();
        }

        @Override
        public int testCount() {
            return set.test().count();
        }

        @Override
        public int classes() {
            return set.train().classes();
        }

        @Override
        public Examples train(int[] which) {
            return Examples.of(set.train(), which);
        }

        @Override
        public Examples test(int[] which) {
            return Examples.of(set.test(), which);
        }

        @Override
        public long exampleBytes() {
            return (long) set.train().imageSize() * Float.BYTES + Long.BYTES;
        }

        @Override
        public String description() {
            return set.description();
        }

        @Override
        public String sha256() {
            return set.sha256();
        }

        @Override
        public Partition dominant(boolean test, int clients, int size, double chi, long seed) {
            return Partition.dominant(test ? set.test() : set.train(), clients, size, chi, seed);
        }
    }

    /** Blocks of words. */
    record Text(TextDataset set) implements TaskData {
        @Override
        public int trainCount() {
            return set.train().count();
        }

        @Override
        public int testCount() {
            return set.test().count();
        }

        @Override
        public int classes() {
            return set.vocabulary().size();
        }

        @Override
        public Examples train(int[] which) {
            return Examples.of(set.train()).select(which);
        }

        @Override
        public Examples test(int[] which) {
            return Examples.of(set.test()).select(which);
        }

        @Override
        public long exampleBytes() {
            return 2L * set.train().length() * Long.BYTES;
        }

        @Override
        public String description() {
            return set.description();
        }

        @Override
        public String sha256() {
            return set.sha256();
        }

        @Override
        public Partition dominant(boolean test, int clients, int size, double chi, long seed) {
            throw new ConfigurationException(
                    "split = dominant needs classes, which a text does not have; one-large or imbalanced is possible");
        }
    }

    /**
     * Reads what a configuration names.
     *
     * @param directory a user's own; otherwise what is packaged, or what is in the user's cache
     * @throws ConfigurationException when it is not there
     */
    static TaskData of(Configuration c, Optional<Path> directory) throws IOException {
        try {
            return switch (c.text("data")) {
                case "mnist" -> new Images(directory.isPresent() ? Mnist.load(directory.get()) : Mnist.bundled());
                case "cifar10" -> new Images(Cifar10.load(directory.orElseGet(Cifar10Download::defaultDirectory)));
                case "wikitext2" -> new Text(text(directory, c.integer("length")));
                default -> throw new IllegalStateException("no such data: " + c.text("data"));
            };
        } catch (NoSuchFileException e) {
            String hint = c.text("data").equals("cifar10")
                    ? "; get it (139 MB) with: ./fedcomuon data get cifar10%s"
                            .formatted(
                                    directory.map(" --data-dir %s"::formatted).orElse(""))
                    : "";
            throw new ConfigurationException("the data are not there: " + e.getMessage() + hint, e);
        }
    }

    private static TextDataset text(Optional<Path> directory, int length) throws IOException {
        if (directory.isPresent()) {
            return WikiText2.load(directory.get(), length);
        }
        Path cache = WikiText2.defaultDirectory();
        return WikiText2.hasTrainingText(cache) ? WikiText2.load(cache, length) : WikiText2.bundled(length);
    }
}
