package org.fedcomuon.experiment;

import java.util.List;
import java.util.Optional;
import org.fedcomuon.federation.Evaluator;
import org.fedcomuon.problem.Point;

/**
 * Evaluates a model by an objective, on the clients' own examples and on test examples, which no client has. Called by
 * one thread at a time.
 */
public interface TaskEvaluator extends AutoCloseable {
    /**
     * Returns the metrics of a model by the names of {@code metrics.jsonl}, and those of each client by the names of
     * {@code clients.jsonl}.
     */
    Evaluator.Scores of(Point w) throws InterruptedException;

    /**
     * Returns an evaluation that devices share, in their own memory; by default there is none, and models are evaluated
     * on the host.
     *
     * @param devices by name
     */
    default Optional<Evaluator.OnDevices> onDevices(List<String> devices) {
        return Optional.empty();
    }

    @Override
    void close();
}
