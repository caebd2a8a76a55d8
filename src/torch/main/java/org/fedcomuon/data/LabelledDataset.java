package org.fedcomuon.data;

import java.util.Set;
import java.util.TreeSet;

/**
 * Training and test examples, each of one class.
 *
 * @param train for the clients
 * @param test for the evaluation only; its examples have the shape and the classes of those for training
 * @param description which data set it is, in words
 * @param sha256 of the content, 64 hexadecimal digits; it identifies the data in the configuration of a run
 */
public record LabelledDataset(ExampleSet train, ExampleSet test, String description, String sha256) {
    /**
     * Refuses sets that no model could be trained on and tested with.
     *
     * @throws IllegalArgumentException when their shapes or numbers of classes differ
     */
    public LabelledDataset {
        if (!train.shape().equals(test.shape()) || train.classes() != test.classes()) {
            throw new IllegalArgumentException("%s for training and %s for testing do not fit together"
                    .formatted(ExampleSet.describe(train), ExampleSet.describe(test)));
        }
    }

    /**
     * Returns the same examples in two classes: 1, of those of the given classes, and 0, of all others.
     *
     * @throws IllegalArgumentException when there is no such class, or none is left for the negative examples
     */
    public LabelledDataset twoClasses(Set<Integer> positives) {
        int classes = train.classes();
        if (positives.isEmpty()
                || positives.stream().anyMatch(label -> label < 0 || label >= classes)
                || positives.size() == classes) {
            throw new IllegalArgumentException("classes %s as positive ones; some of 0 to %d are possible, but not all"
                    .formatted(new TreeSet<>(positives), classes - 1));
        }
        Set<Integer> copy = Set.copyOf(positives);
        return new LabelledDataset(
                new TwoClasses(train, copy),
                new TwoClasses(test, copy),
                "%s, classes %s against the others".formatted(description, new TreeSet<>(copy)),
                sha256);
    }
}
