package org.fedcomuon.data;

import java.io.IOException;
import org.fedcomuon.file.MalformedFileException;

/**
 * What is read of a training file and of a test file.
 *
 * @param train of the training file
 * @param test of the test file
 */
record Both<T>(T train, T test) {
    /** Reads one of the two. */
    @FunctionalInterface
    interface Reading<T> {
        T read() throws IOException;
    }

    /**
     * Reads both.
     *
     * @throws MalformedFileException when one is malformed; if both are, the second exception is suppressed by the
     *     first one, so that a user learns of both at once
     */
    static <T> Both<T> of(Reading<T> train, Reading<T> test) throws IOException {
        T first;
        try {
            first = train.read();
        } catch (MalformedFileException e) {
            try {
                test.read();
            } catch (MalformedFileException another) {
                e.addSuppressed(another);
            }
            throw e;
        }
        return new Both<>(first, test.read());
    }
}
