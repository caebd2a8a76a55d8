package org.fedcomuon.experiment;

import java.util.List;
import org.fedcomuon.model.MemoryEstimate;
import org.fedcomuon.model.Network;
import org.fedcomuon.problem.Problem;

/**
 * The objective of the clients, and the evaluation of models by it. Called by many threads; implementations are
 * immutable.
 */
public interface ObjectiveChoice extends Choice {
    /** Returns what a network for this objective takes; the examples by default. */
    default Input input(TaskData data) {
        return data.input();
    }

    /** Returns the number of outputs that a network for this objective has; one per class by default. */
    default int outputs(TaskData data) {
        return data.classes();
    }

    /** Returns d, the dimension of the inner function; 1 by default. */
    default int dimension(TaskData data) {
        return 1;
    }

    /** Returns why some data are not possible, a line for each reason; by default none. */
    default List<String> mistakes(TaskData data) {
        return List.of();
    }

    /**
     * Returns the metrics of validation examples that {@link #evaluator} gives; by default none, and
     * {@code validationShare} is refused. The first one decides when a run is stopped early.
     */
    default List<ValidationMetric> validationMetrics(TaskData data) {
        return List.of();
    }

    /** Returns the clients and their losses. */
    Problem problem(TaskParts parts);

    /** Returns the evaluation of models by the objective. */
    TaskEvaluator evaluator(TaskParts parts);

    /** Returns the peak memory of an evaluation of a client's gradient, in bytes; by default that of a plain one. */
    default long evaluationBytes(Configuration c, Network network) {
        return MemoryEstimate.gradient(network, c.integer("batch")).evaluation();
    }

    /** Returns the peak memory of a thread that evaluates a model, in bytes; by default that of plain predictions. */
    default long judgementBytes(Configuration c, Network network) {
        return MemoryEstimate.judgement(network).evaluation();
    }
}
