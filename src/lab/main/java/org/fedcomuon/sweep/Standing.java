package org.fedcomuon.sweep;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import org.fedcomuon.experiment.ValidationMetric;
import org.fedcomuon.experiment.statistics.Summary;

/**
 * The trials of a method with the same settings, one per seed, and the metric over them. Immutable.
 *
 * @param trials those that have ended
 * @param summary of the metric; empty unless all seeds have a finite value
 */
record Standing(
        String method, Map<String, String> settings, String minimized, List<Trial> trials, Optional<Summary> summary) {
    Standing {
        trials = List.copyOf(trials);
    }

    private record Key(String method, Map<String, String> settings) {}

    /**
     * Returns all standings, the best first; those without a summary are at the end, in the order of their trials.
     *
     * @param seeds how many trials are needed for a summary
     */
    static List<Standing> of(List<Trial> trials, ValidationMetric metric, int seeds) {
        Map<Key, List<Trial>> groups = new LinkedHashMap<>();
        trials.forEach(
                trial -> groups.computeIfAbsent(new Key(trial.method(), trial.settings()), _ -> new ArrayList<>())
                        .add(trial));
        return groups.values().stream()
                .map(group -> of(group, metric.name(), seeds))
                .sorted(byMean(metric))
                .toList();
    }

    private static Standing of(List<Trial> group, String metric, int seeds) {
        List<Double> values = group.stream()
                .map(trial -> trial.metric(metric))
                .flatMapToDouble(OptionalDouble::stream)
                .filter(Double::isFinite)
                .boxed()
                .toList();
        Trial first = group.getFirst();
        return new Standing(
                first.method(),
                first.settings(),
                first.minimized(),
                group,
                values.size() == seeds ? Optional.of(Summary.of(values)) : Optional.empty());
    }

    private static Comparator<Standing> byMean(ValidationMetric metric) {
        double sign = metric.greaterIsBetter() ? -1 : 1;
        return Comparator.comparingDouble((Standing standing) ->
                standing.summary.map(summary -> sign * summary.mean()).orElse(Double.POSITIVE_INFINITY));
    }

    /** Returns the settings for readers. */
    String text() {
        var text = new StringBuilder();
        settings.forEach((name, value) ->
                text.append(text.isEmpty() ? "" : ", ").append(name).append(' ').append(value));
        return text.isEmpty() ? "as in the preset" : text.toString();
    }
}
