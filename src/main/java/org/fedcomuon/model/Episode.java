package org.fedcomuon.model;

/**
 * A task of meta learning: what a model adapts to, and what it is then asked.
 *
 * <p>Immutable, as far as its examples are.
 *
 * @param support S
 * @param query Q
 */
public record Episode(Examples support, Examples query) {
    /** The first {@code support} of {@code examples}, and the rest. */
    public static Episode split(Examples examples, int support) {
        int count = examples.count();
        if (support < 1 || support >= count) {
            throw new IllegalArgumentException(
                    "%d of %d examples for support; at least one, and one is left for query".formatted(support, count));
        }
        return new Episode(examples.range(0, support), examples.range(support, count));
    }
}
