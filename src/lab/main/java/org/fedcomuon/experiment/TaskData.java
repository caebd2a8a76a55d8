package org.fedcomuon.experiment;

import java.util.Optional;
import org.fedcomuon.data.ExampleSet;
import org.fedcomuon.data.LabelledDataset;
import org.fedcomuon.data.TextDataset;
import org.fedcomuon.model.Examples;

/** The data of a run: their size, and the examples that a run needs as tensors. Immutable. */
public interface TaskData {
    /** Returns the kind of an example. */
    Input input();

    /** Returns the number of training examples, or of blocks of training text. */
    int trainCount();

    /** Returns the number of test examples, or of blocks of test text. */
    int testCount();

    /** Returns the number of classes of a prediction: those of examples, or the vocabulary. */
    int classes();

    /** Returns some examples of the training set as tensors, in this order. */
    Examples train(int[] which);

    /** Returns some examples of the test set as tensors, in this order. */
    Examples test(int[] which);

    /** Returns the size of an example as tensors, in bytes. */
    long exampleBytes();

    /** Returns whether a model of the data is judged by its perplexity; otherwise by its accuracy. */
    boolean hasPerplexity();

    /** Returns the training set, if each example is of one class. */
    Optional<ExampleSet> labelledTrain();

    /** Returns the test set, if each example is of one class. */
    Optional<ExampleSet> labelledTest();

    /** Returns a description of the data. */
    String description();

    /** Returns the SHA-256 of the content. */
    String sha256();

    /** Images or rows of features, each of one class. */
    record Labelled(LabelledDataset set) implements TaskData {
        @Override
        public Input input() {
            return new Input.Values(set.train().shape());
        }

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
            return (long) set.train().size() * Float.BYTES + Long.BYTES;
        }

        @Override
        public boolean hasPerplexity() {
            return false;
        }

        @Override
        public Optional<ExampleSet> labelledTrain() {
            return Optional.of(set.train());
        }

        @Override
        public Optional<ExampleSet> labelledTest() {
            return Optional.of(set.test());
        }

        @Override
        public String description() {
            return set.description();
        }

        @Override
        public String sha256() {
            return set.sha256();
        }
    }

    /** Blocks of words. */
    record Text(TextDataset set) implements TaskData {
        @Override
        public Input input() {
            return new Input.Words(set.train().length());
        }

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
        public boolean hasPerplexity() {
            return true;
        }

        @Override
        public Optional<ExampleSet> labelledTrain() {
            return Optional.empty();
        }

        @Override
        public Optional<ExampleSet> labelledTest() {
            return Optional.empty();
        }

        @Override
        public String description() {
            return set.description();
        }

        @Override
        public String sha256() {
            return set.sha256();
        }
    }
}
