package org.fedcomuon.experiment;

import org.fedcomuon.model.Network;
import org.fedcomuon.problem.Problem;

/** The objective of the clients, and the evaluation of models by it. */
interface ObjectiveChoice extends Choice {
    Registry<ObjectiveChoice> ALL = new Registry<>("objective", new RobustObjective(), new MetaObjective());

    /** Returns the clients and their losses. */
    Problem problem(TaskParts parts);

    /** Returns the evaluation of models by the objective. */
    Scores scores(TaskParts parts);

    /** Returns the peak memory of an evaluation of a client's gradient, in bytes. */
    long evaluationBytes(Configuration c, Network network);

    /** Returns the peak memory of a thread that evaluates a model, in bytes. */
    long judgementBytes(Configuration c, Network network);
}
