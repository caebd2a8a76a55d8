package org.fedcomuon.sweep;

import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.fedcomuon.experiment.ValidationMetric;

/** Sweeps as tests like them: of eta, for the seeds 1 and 2. */
final class Sweeps {
    static final ValidationMetric ACCURACY = new ValidationMetric("validation_accuracy", true, true);
    static final ValidationMetric LOSS = new ValidationMetric("validation_loss", false, false);

    private Sweeps() {}

    static SweepRecord record(ValidationMetric metric, Trial... trials) {
        List<String> methods = Stream.of(trials).map(Trial::method).distinct().toList();
        return new SweepRecord(
                "mnist-robust",
                metric,
                "grid",
                methods,
                List.of(1L, 2L),
                List.of("eta"),
                trials.length + trials.length % 2,
                List.of(trials));
    }

    private static Trial trial(
            String method, String eta, long seed, Trial.State state, String reason, Map<String, Double> metrics) {
        return new Trial(
                "%s-eta=%s-seed=%d".formatted(method, eta, seed).replaceAll("[^a-z0-9=.-]", "_"),
                method,
                Map.of("eta", eta),
                seed,
                100,
                true,
                "of " + method,
                state,
                reason,
                metrics,
                2.5);
    }

    static Trial done(String method, String eta, long seed, String metric, double value) {
        return trial(method, eta, seed, Trial.State.DONE, "", Map.of(metric, value));
    }

    static Trial ended(String method, String eta, long seed, Trial.State state, String reason) {
        return trial(method, eta, seed, state, reason, Map.of());
    }

    static Trial unranked(Trial trial) {
        return new Trial(
                trial.name(),
                trial.method(),
                trial.settings(),
                trial.seed(),
                10,
                false,
                trial.minimized(),
                trial.state(),
                trial.reason(),
                trial.metrics(),
                trial.seconds());
    }
}
