package org.fedcomuon.experiment;

import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;

/** What a preset trains: a problem, where it starts, and how a model is judged. */
interface Task extends AutoCloseable {
    /** The clients and their losses. */
    Problem problem();

    /** W0. */
    float[] initial();

    /** Weights of the clients in averages. */
    double[] weights();

    /** The metrics of a model, by the names of {@code metrics.jsonl}. */
    Map<String, Double> evaluate(Point w) throws InterruptedException;

    /** What data it is, for people. */
    String data();

    /** A hash of all data: a checkpoint goes on only with the same. */
    String dataHash();

    @Override
    void close();

    /**
     * The task that a configuration describes.
     *
     * @param dataDirectory a user's own files, instead of what comes with the program
     * @throws java.io.IOException when the files are missing or malformed
     */
    static Task of(Configuration configuration, Optional<Path> dataDirectory, int threads) throws java.io.IOException {
        return new ImageTask(configuration, dataDirectory, threads);
    }
}
