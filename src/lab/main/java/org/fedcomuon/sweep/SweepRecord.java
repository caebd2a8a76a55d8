package org.fedcomuon.sweep;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.fedcomuon.experiment.ValidationMetric;
import org.fedcomuon.experiment.statistics.Summary;

/**
 * What a sweep has found.
 *
 * <p>Immutable.
 *
 * @param preset by name
 * @param metric by which settings are chosen
 * @param strategy by name
 * @param methods in their order
 * @param seeds of each setting
 * @param varied the settings that the sweep varies
 * @param planned how many trials there are when all have ended
 * @param trials that have ended, in their order
 */
public record SweepRecord(
        String preset,
        ValidationMetric metric,
        String strategy,
        List<String> methods,
        List<Long> seeds,
        List<String> varied,
        int planned,
        List<Trial> trials) {
    public SweepRecord {
        methods = List.copyOf(methods);
        seeds = List.copyOf(seeds);
        varied = List.copyOf(varied);
        trials = List.copyOf(trials);
    }

    /** Returns whether all trials have ended; otherwise the sweep was stopped, or is under way. */
    public boolean isComplete() {
        return trials.size() == planned;
    }

    /**
     * Settings of a method, with the metric over seeds.
     *
     * <p>Immutable.
     */
    public record Best(Map<String, String> settings, Summary summary) {
        public Best {
            settings = Collections.unmodifiableMap(new LinkedHashMap<>(settings));
        }
    }

    /** Returns the best settings of a method, by the mean over seeds; empty if none has a value for every seed. */
    public Optional<Best> best(String method) {
        return bestStanding(method)
                .map(standing ->
                        new Best(standing.settings(), standing.summary().orElseThrow()));
    }

    Optional<Standing> bestStanding(String method) {
        return standings().stream()
                .filter(standing ->
                        standing.method().equals(method) && standing.summary().isPresent())
                .findFirst();
    }

    /** Returns the standings of all settings that are ranked, the best first. */
    List<Standing> standings() {
        return Standing.of(trials.stream().filter(Trial::ranked).toList(), metric, seeds.size());
    }

    /**
     * Returns the standings that may be compared with each other, by what their methods minimize: all in one group if
     * the metric is one of any objective.
     */
    Map<String, List<Standing>> rankings() {
        var groups = new LinkedHashMap<String, List<Standing>>();
        for (Standing standing : standings()) {
            groups.merge(
                    metric.ofAnyObjective() ? "" : standing.minimized(),
                    List.of(standing),
                    (before, one) ->
                            Stream.concat(before.stream(), one.stream()).toList());
        }
        return groups;
    }
}
