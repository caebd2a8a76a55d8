package org.fedcomuon.experiment;

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

    @Override
    void close();
}
