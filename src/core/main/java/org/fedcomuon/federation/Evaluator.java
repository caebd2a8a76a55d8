package org.fedcomuon.federation;

import java.util.Map;
import org.fedcomuon.problem.Point;

/** Evaluates a model. Called by the thread of the first device, between steps, while all other devices wait. */
@FunctionalInterface
public interface Evaluator {
    /**
     * Returns metrics of the model, by name.
     *
     * @param step steps done so far
     * @param average the average of the clients' W, also at a step without an exchange; valid during the call only
     */
    Map<String, Double> evaluate(long step, Point average) throws Exception;
}
