package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;

/** What a preset trains: a problem, where it starts, and how a model is judged. */
interface Task extends AutoCloseable {
    /** The clients and their losses. */
    Problem problem();

    /** W0. */
    Floats initial();

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
     * @param threads that evaluate, each a client at a time
     * @param devices among which the clients are divided
     * @param gate is told what it will take before it is taken, and may refuse by an exception
     * @throws ConfigurationException when its parts do not fit together, or data are not there
     * @throws IOException when the files are malformed
     */
    static Task of(
            Configuration configuration,
            Optional<Path> dataDirectory,
            int threads,
            int devices,
            Consumer<RunMemory> gate)
            throws IOException {
        return new NetworkTask(configuration, dataDirectory, threads, devices, gate);
    }
}
