package org.fedcomuon.report;

import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.toList;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.fedcomuon.chart.Look;
import org.fedcomuon.experiment.RunRecord;

/**
 * A run with its name and its look on a page.
 *
 * @param label unique on the page
 */
record RunSeries(RunRecord run, String label, Look look) {
    /** In the order of the paper, so that a method looks the same on every page. */
    private static final List<String> METHODS = List.of(
            "fedcomuon",
            "fedcomuon-vr",
            "fedavg",
            "fedmaml",
            "fedmuon",
            "fedmuon-lga",
            "fedmuon-bc",
            "comfedl",
            "local-scgdm");

    private static final String METHOD = "method";
    private static final String SEED = "seed";
    /** Settings, in any spelling, in which repetitions of one experiment may differ. */
    private static final Set<String> CIRCUMSTANCES =
            Set.of(SEED, "devices", "threads", "datadir", "out", "checkpointevery", "resume", "dashboard", "quiet");

    private static final int MOST_SETTINGS = 3;

    /** Returns all runs of a page. Runs that differ only by their seed have the same colour and different dashes. */
    static List<RunSeries> of(List<RunRecord> runs) {
        Map<Map<String, String>, List<RunRecord>> groups =
                runs.stream().collect(groupingBy(RunSeries::experiment, LinkedHashMap::new, toList()));
        List<Integer> numbers = numbers(
                groups.values().stream().map(group -> group.getFirst().method()).toList());
        List<Map<String, String>> order = List.copyOf(groups.keySet());
        List<String> labels = labels(runs);
        int[] seen = new int[order.size()];
        var series = new ArrayList<RunSeries>();
        for (int i = 0; i < runs.size(); i++) {
            int group = order.indexOf(experiment(runs.get(i)));
            series.add(new RunSeries(runs.get(i), labels.get(i), Look.variant(numbers.get(group), seen[group]++)));
        }
        return series;
    }

    /**
     * Returns numbers for {@link Look}: that of the method, or consecutive ones if a method is unknown or occurs twice.
     */
    static List<Integer> numbers(List<String> methods) {
        boolean own = new HashSet<>(methods).size() == methods.size() && METHODS.containsAll(methods);
        var numbers = new ArrayList<Integer>();
        for (String method : methods) {
            numbers.add(own ? METHODS.indexOf(method) : numbers.size());
        }
        return numbers;
    }

    /** Returns the settings that are the same for all seeds. */
    private static Map<String, String> experiment(RunRecord run) {
        var settings = new LinkedHashMap<>(run.config());
        settings.keySet().removeIf(RunSeries::isCircumstance);
        settings.put(METHOD, run.method());
        return settings;
    }

    private static boolean isCircumstance(String key) {
        return CIRCUMSTANCES.contains(key.replace("-", "").replace("_", "").toLowerCase(Locale.ROOT));
    }

    /** Returns names from the settings that differ, if these are few and sufficient; otherwise names of directories. */
    private static List<String> labels(List<RunRecord> runs) {
        List<String> names = runs.stream().map(RunRecord::name).toList();
        if (runs.size() == 1) {
            return names;
        }
        var labels = new ArrayList<String>();
        boolean seeds = runs.stream().map(run -> run.setting(SEED)).distinct().count() > 1;
        for (RunRecord run : runs) {
            List<String> keys = differences(run, runs);
            if (keys.size() > MOST_SETTINGS) {
                return distinct(names);
            }
            var label = new StringBuilder(run.method());
            keys.forEach(key -> label.append(", %s %s"
                    .formatted(key, Objects.requireNonNullElse(run.config().get(key), "not set"))));
            if (seeds) {
                run.setting(SEED).ifPresent(seed -> label.append(", seed ").append(seed));
            }
            labels.add(label.toString());
        }
        return new HashSet<>(labels).size() == labels.size() ? labels : distinct(names);
    }

    /** Returns the settings that tell a run from others of its method. */
    private static List<String> differences(RunRecord run, List<RunRecord> runs) {
        List<RunRecord> same = runs.stream()
                .filter(other -> other.method().equals(run.method()))
                .toList();
        return same.stream()
                .flatMap(other -> other.config().keySet().stream())
                .distinct()
                .filter(key -> !isCircumstance(key))
                .filter(key -> same.stream()
                                .map(other -> other.setting(key))
                                .distinct()
                                .count()
                        > 1)
                .toList();
    }

    private static List<String> distinct(List<String> names) {
        if (new HashSet<>(names).size() == names.size()) {
            return names;
        }
        var numbered = new ArrayList<String>();
        for (String name : names) {
            numbered.add("%s (%s)".formatted(name, numbered.size() + 1));
        }
        return numbered;
    }
}
