package org.fedcomuon.federation;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/** An {@link Evaluation} in a flight recording. */
@Name("org.fedcomuon.Evaluation")
@Label("Evaluation")
@Category("FedCoMuon")
@Description("The average model, judged by the run's evaluator")
@StackTrace(false)
final class EvaluationEvent extends Event {
    @Label("Run")
    String run = "";

    @Label("Steps Done")
    long step;

    @Label("Metrics")
    String metrics = "";

    void commit(String name, Evaluation evaluation) {
        end();
        if (shouldCommit()) {
            run = name;
            step = evaluation.step();
            metrics = evaluation.metrics().toString();
            commit();
        }
    }
}
