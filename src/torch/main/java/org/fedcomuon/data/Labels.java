package org.fedcomuon.data;

/** What all sets require of their labels. */
final class Labels {
    /** A model has a row of weights per class. */
    static final int MOST_CLASSES = 1_000_000;

    private Labels() {}

    /**
     * Checks that labels are classes.
     *
     * @param example what messages call an example
     * @throws IllegalArgumentException when one is not
     */
    static void require(int[] labels, int classes, String example) {
        if (classes < 1 || classes > MOST_CLASSES) {
            throw new IllegalArgumentException(
                    "%d classes; from 1 to %d are possible".formatted(classes, MOST_CLASSES));
        }
        for (int i = 0; i < labels.length; i++) {
            if (labels[i] < 0 || labels[i] >= classes) {
                throw new IllegalArgumentException(
                        "label %d of %s %d is not among 0 to %d".formatted(labels[i], example, i, classes - 1));
            }
        }
    }
}
