package org.fedcomuon.federation;

import java.util.Map;
import org.fedcomuon.problem.Point;

/** Judges a model. Called by the thread of the first device, between steps, while every other one waits. */
@FunctionalInterface
public interface Evaluator {
    /**
     * Metrics of the model, by name.
     *
     * @param step steps done so far
     * @param average the average of the clients' W, also at a step that is no exchange; valid during the call only
     */
    Map<String, Double> evaluate(long step, Point average) throws Exception;
}
