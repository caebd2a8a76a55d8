package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.fedcomuon.experiment.statistics.Summary;

/**
 * The last values of a row's runs, by metric and seed: what claims are judged by.
 *
 * <p>Immutable.
 *
 * @param label of the row
 * @param metrics for each metric the finite values of runs that ended normally, by ascending seed
 * @param diverged the seeds of runs that diverged
 */
public record RowValues(String label, Map<String, Map<Long, Double>> metrics, List<Long> diverged) {
    public RowValues {
        var copy = new LinkedHashMap<String, Map<Long, Double>>();
        metrics.forEach((metric, values) -> {
            if (!values.values().stream().allMatch(Double::isFinite)) {
                throw new IllegalArgumentException("values of %s that are not finite: %s".formatted(metric, values));
            }
            copy.put(metric, Collections.unmodifiableMap(new TreeMap<>(values)));
        });
        metrics = Collections.unmodifiableMap(copy);
        diverged = List.copyOf(diverged);
    }

    /**
     * Takes the values from runs.
     *
     * @param runs by their seeds; one that has not ended counts nowhere
     */
    static RowValues of(String label, Map<Long, RunRecord> runs) {
        var metrics = new LinkedHashMap<String, Map<Long, Double>>();
        var diverged = new ArrayList<Long>();
        runs.forEach((seed, run) -> {
            if (run.state() == RunRecord.State.DIVERGED) {
                diverged.add(seed);
            } else if (run.state() == RunRecord.State.FINISHED) {
                values(run).forEach((metric, value) -> {
                    if (Double.isFinite(value)) {
                        metrics.computeIfAbsent(metric, name -> new TreeMap<>()).put(seed, value);
                    }
                });
            }
        });
        return new RowValues(label, metrics, diverged);
    }

    private static Map<String, Double> values(RunRecord run) {
        var values = new LinkedHashMap<String, Double>();
        run.last().ifPresent(last -> values.putAll(last.metrics()));
        List<RunRecord.Evaluation> second = run.evaluations()
                .subList(run.evaluations().size() / 2, run.evaluations().size());
        double sum = 0;
        for (int i = 1; i < second.size(); i++) {
            sum += Math.abs(loss(second.get(i)) - loss(second.get(i - 1)));
        }
        values.put(Claim.UNSTEADINESS, second.size() < 2 ? Double.NaN : sum / (second.size() - 1));
        return values;
    }

    private static double loss(RunRecord.Evaluation evaluation) {
        return evaluation.metrics().getOrDefault("test_loss", Double.NaN);
    }

    /** Returns the finite values of a metric, by ascending seed; none if it was not measured. */
    public Map<Long, Double> of(String metric) {
        return metrics.getOrDefault(metric, Map.of());
    }

    /** Returns a metric over the seeds; empty if a run diverged, because a mean over the others would be too good. */
    public Optional<Summary> summary(String metric) {
        Map<Long, Double> values = of(metric);
        return values.isEmpty() || !diverged.isEmpty()
                ? Optional.empty()
                : Optional.of(Summary.of(List.copyOf(values.values())));
    }
}
