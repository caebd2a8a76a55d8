package org.fedcomuon.cluster.spark;

import java.io.Serializable;
import java.util.Collections;
import java.util.LinkedHashMap;
import org.fedcomuon.federation.Evaluation;

/** An {@link Evaluation} on its way to the listeners of the driver. */
record ToldEvaluation(
        long step,
        long round,
        LinkedHashMap<String, Double> metrics,
        long communicatedBytes,
        double seconds,
        double stepSeconds,
        double gradientSeconds,
        double orthogonalizeSeconds,
        double exchangeSeconds,
        double evaluateSeconds)
        implements Serializable {
    static ToldEvaluation of(Evaluation told) {
        return new ToldEvaluation(
                told.step(),
                told.round(),
                new LinkedHashMap<>(told.metrics()),
                told.communicatedBytes(),
                told.seconds(),
                told.stepSeconds(),
                told.gradientSeconds(),
                told.orthogonalizeSeconds(),
                told.exchangeSeconds(),
                told.evaluateSeconds());
    }

    Evaluation evaluation() {
        return new Evaluation(
                step,
                round,
                Collections.unmodifiableMap(metrics),
                communicatedBytes,
                seconds,
                stepSeconds,
                gradientSeconds,
                orthogonalizeSeconds,
                exchangeSeconds,
                evaluateSeconds);
    }
}
