package org.fedcomuon.experiment;

/** The kind of an example: data and models with an equal input fit together. */
sealed interface Input {
    /** Pixels. */
    record Image(int channels, int rows, int cols) implements Input {
        @Override
        public String toString() {
            return "images of %d x %d x %d values".formatted(channels, rows, cols);
        }
    }

    /** A block of words. */
    record Words() implements Input {
        @Override
        public String toString() {
            return "text";
        }
    }
}
