package org.fedcomuon.sweep;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.fedcomuon.experiment.Configuration;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.experiment.Preset;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.experiment.ValidationMetric;

/**
 * The trials of a sweep, all of whose settings are possible.
 *
 * <p>Immutable.
 *
 * @param metric by which settings are chosen
 * @param methods in their order
 * @param ladders for each method, its settings to begin with and its rungs
 */
record SweepPlan(
        Preset preset,
        Map<String, String> changes,
        ValidationMetric metric,
        Strategy strategy,
        List<String> methods,
        List<Long> seeds,
        List<String> varied,
        Map<String, Ladder> ladders) {
    private static final String METHOD = "method";
    private static final String SEED = "seed";
    private static final String ITERATIONS = "iterations";
    private static final String VALIDATION_SHARE = "validationShare";
    private static final String DEFAULT_SHARE = "0.1";
    private static final int MOST_SEEDS = 1000;

    /** The settings of a method to begin with, and its rungs. */
    record Ladder(List<Map<String, String>> settings, List<Strategy.Rung> rungs) {}

    /**
     * What a user asks for.
     *
     * @param methods those of the preset or the changes if empty
     * @param axes as {@code NAME=VALUE,VALUE,...}
     * @param metric the first one that compares methods of any objective if empty
     */
    record Request(
            Preset preset,
            Map<String, String> changes,
            List<String> methods,
            List<String> axes,
            int seeds,
            Optional<String> metric,
            Strategy strategy) {}

    /**
     * Makes a plan.
     *
     * @param more mistakes that have been found before
     * @throws ConfigurationException with all mistakes that are found
     */
    static SweepPlan of(Request request, Optional<Path> dataDirectory, List<String> more) {
        return new Maker(request, more).plan(dataDirectory);
    }

    /** Returns the trials of some settings of a method in a rung. */
    List<TrialPlan> trials(String method, List<Map<String, String>> settings, int rung) {
        List<Strategy.Rung> rungs = ladder(method).rungs();
        return seeds.stream()
                .flatMap(seed -> settings.stream()
                        .map(each -> trial(method, each, seed, rungs.get(rung), rung == rungs.size() - 1)))
                .toList();
    }

    /** Returns the trial of the best settings of a method for the first seed. */
    Configuration best(String method, Map<String, String> settings) {
        List<Strategy.Rung> rungs = ladder(method).rungs();
        return trial(method, settings, seeds.getFirst(), rungs.getLast(), true).configuration();
    }

    Ladder ladder(String method) {
        return ladders.getOrDefault(method, new Ladder(List.of(), List.of()));
    }

    private TrialPlan trial(String method, Map<String, String> settings, long seed, Strategy.Rung rung, boolean last) {
        Configuration configuration = configuration(preset, changes, method, settings, seed, rung.iterations());
        return new TrialPlan(configuration, settings, last, configuration.minimized());
    }

    private static Configuration configuration(
            Preset preset,
            Map<String, String> changes,
            String method,
            Map<String, String> settings,
            long seed,
            long iterations) {
        var all = new LinkedHashMap<>(changes);
        all.put(METHOD, method);
        all.put(ITERATIONS, Long.toString(iterations));
        all.putAll(settings);
        all.put(SEED, Long.toString(seed));
        return Configuration.of(preset, all);
    }

    /** Returns the number of trials, if none of them fails. */
    int size() {
        return ladders.values().stream()
                .flatMap(ladder -> ladder.rungs().stream())
                .mapToInt(rung -> rung.settings() * seeds.size())
                .sum();
    }

    /** Returns the number of steps of all trials. */
    long steps() {
        return ladders.values().stream()
                .flatMap(ladder -> ladder.rungs().stream())
                .mapToLong(rung -> rung.settings() * rung.iterations() * seeds.size())
                .sum();
    }

    /** Finds all mistakes before it gives up. */
    private static final class Maker {
        private final Request request;
        private final Map<String, String> changes;
        private final Set<String> mistakes;

        Maker(Request request, List<String> more) {
            this.request = request;
            changes = new LinkedHashMap<>(request.changes());
            mistakes = new LinkedHashSet<>(more);
        }

        SweepPlan plan(Optional<Path> dataDirectory) {
            List<String> methods = methods();
            SearchSpace space = space();
            if (request.seeds() < 1 || request.seeds() > MOST_SEEDS) {
                mistakes.add("--seeds %d: not in the range 1 to %d".formatted(request.seeds(), MOST_SEEDS));
            }
            request.strategy().trials().ifPresent(trials -> {
                if (trials < 1 || trials > SearchSpace.MOST) {
                    mistakes.add("--trials %d: not in the range 1 to %d".formatted(trials, SearchSpace.MOST));
                }
            });
            request.metric()
                    .filter(name -> !name.startsWith(ValidationMetric.PREFIX))
                    .ifPresent(this::refuseMetric);
            if (!changes.containsKey(VALIDATION_SHARE)
                    && request.preset().setting(VALIDATION_SHARE).isEmpty()) {
                changes.put(VALIDATION_SHARE, DEFAULT_SHARE);
            }
            Map<String, SearchSpace> spaces = spaces(methods, space);
            List<Configuration> first = first(spaces);
            refuse();
            long firstSeed = first.getFirst().seed();
            List<Long> seeds = LongStream.range(firstSeed, firstSeed + request.seeds())
                    .boxed()
                    .toList();
            Map<String, Ladder> ladders = ladders(spaces, first, firstSeed);
            List<Configuration> all = all(ladders, firstSeed);
            refuse();
            ValidationMetric metric = metric(all, dataDirectory);
            refuse();
            return new SweepPlan(
                    request.preset(),
                    Collections.unmodifiableMap(changes),
                    metric,
                    request.strategy(),
                    methods,
                    seeds,
                    space.axes().stream().map(SearchSpace.Axis::name).toList(),
                    ladders);
        }

        private void refuse() {
            if (!mistakes.isEmpty()) {
                throw ConfigurationException.of("the sweep", List.copyOf(mistakes));
            }
        }

        private void attempt(Runnable work) {
            try {
                work.run();
            } catch (ConfigurationException e) {
                mistakes.addAll(e.lines());
            }
        }

        private List<String> methods() {
            if (request.methods().isEmpty()) {
                return List.of(changes.getOrDefault(
                        METHOD, request.preset().setting(METHOD).orElse(Configuration.DEFAULT_METHOD)));
            }
            if (changes.containsKey(METHOD)) {
                mistakes.add("--methods %s: the method is given already, as %s"
                        .formatted(String.join(",", request.methods()), changes.get(METHOD)));
            }
            return request.methods().stream().distinct().toList();
        }

        private SearchSpace space() {
            var axes = new ArrayList<SearchSpace.Axis>();
            var names = new HashSet<String>();
            for (String text : request.axes()) {
                try {
                    SearchSpace.Axis axis = SearchSpace.parse(text);
                    if (!names.add(axis.name())) {
                        mistakes.add("--grid %s: %s is given twice".formatted(text, axis.name()));
                    } else {
                        reserved(axis.name()).ifPresent(mistakes::add);
                        axes.add(axis);
                    }
                } catch (IllegalArgumentException e) {
                    mistakes.add(String.valueOf(e.getMessage()));
                }
            }
            var space = new SearchSpace(axes);
            if (!space.ranges().isEmpty() && request.strategy().trials().isEmpty()) {
                mistakes.add(
                        ("--grid %s: a range has no end of values; --strategy random or halving with --trials draws"
                                        + " some of them")
                                .formatted(space.ranges().getFirst().name()));
            }
            return space;
        }

        /** Returns why a setting cannot be varied. */
        private Optional<String> reserved(String name) {
            if (changes.containsKey(name)) {
                return Optional.of("%s is given twice, by --grid and otherwise".formatted(name));
            }
            return switch (name) {
                case METHOD -> Optional.of("--grid method: --methods names the methods");
                case SEED -> Optional.of("--grid seed: --seeds says how many there are");
                case VALIDATION_SHARE ->
                    Optional.of("--grid validationShare: values by other validation examples cannot be compared");
                case ITERATIONS ->
                    request.strategy() instanceof Strategy.Halving
                            ? Optional.of("--grid iterations: halving decides how many steps a trial has")
                            : Optional.empty();
                default -> Optional.empty();
            };
        }

        private void refuseMetric(String name) {
            mistakes.add(
                    name.startsWith("test_")
                            ? ("--metric %s: settings are not chosen by the test set, or its figures would no longer say how"
                                            + " good they are elsewhere; metrics of validation examples begin with %s")
                                    .formatted(name, ValidationMetric.PREFIX)
                            : "--metric %s: metrics of validation examples begin with %s"
                                    .formatted(name, ValidationMetric.PREFIX));
        }

        /** Returns the settings that each method has; one that no method has is a mistake. */
        private Map<String, SearchSpace> spaces(List<String> methods, SearchSpace space) {
            var spaces = new LinkedHashMap<String, SearchSpace>();
            var used = new HashSet<String>();
            for (String method : methods) {
                Set<String> names = Configuration.settingNames(request.preset(), with(method, Map.of()));
                spaces.put(method, space.only(names::contains));
                used.addAll(names);
            }
            for (SearchSpace.Axis axis : space.axes()) {
                if (!used.contains(axis.name()) && reserved(axis.name()).isEmpty()) {
                    int before = mistakes.size();
                    attempt(() ->
                            Configuration.of(request.preset(), with(methods.getFirst(), Map.of(axis.name(), "1"))));
                    if (mistakes.size() == before) {
                        mistakes.add("--grid %s: no method of the sweep has this setting".formatted(axis.name()));
                    }
                }
            }
            return spaces;
        }

        private Map<String, String> with(String method, Map<String, String> settings) {
            var all = new LinkedHashMap<>(changes);
            all.putAll(settings);
            all.put(METHOD, method);
            return all;
        }

        /** Returns a configuration for each method, after every single value has been tried. */
        private List<Configuration> first(Map<String, SearchSpace> spaces) {
            var first = new ArrayList<Configuration>();
            spaces.forEach((method, space) -> {
                var initial = new LinkedHashMap<String, String>();
                for (SearchSpace.Axis axis : space.axes()) {
                    List<String> values = switch (axis) {
                        case SearchSpace.Values list -> list.values();
                        case SearchSpace.Range range -> range.ends();
                    };
                    initial.put(axis.name(), values.getFirst());
                    if (reserved(axis.name()).isEmpty()) {
                        values.forEach(value -> attempt(() ->
                                Configuration.of(request.preset(), with(method, Map.of(axis.name(), value)))));
                    }
                }
                attempt(() -> first.add(Configuration.of(request.preset(), with(method, initial))));
            });
            return first;
        }

        private Map<String, Ladder> ladders(
                Map<String, SearchSpace> spaces, List<Configuration> first, long firstSeed) {
            var ladders = new LinkedHashMap<String, Ladder>();
            int i = 0;
            for (Map.Entry<String, SearchSpace> entry : spaces.entrySet()) {
                Configuration configuration = first.get(i++);
                SearchSpace space = entry.getValue();
                if (request.strategy().trials().isEmpty() && space.size() > SearchSpace.MOST) {
                    mistakes.add("%s has more than %d combinations of settings; --strategy random --trials N draws some"
                            .formatted(entry.getKey(), SearchSpace.MOST));
                    continue;
                }
                List<Map<String, String>> settings = space.settings(request.strategy(), firstSeed);
                ladders.put(
                        entry.getKey(),
                        new Ladder(
                                settings,
                                request.strategy()
                                        .rungs(
                                                settings.size(),
                                                configuration.iterations(),
                                                configuration.integer("tau"))));
            }
            return ladders;
        }

        /** Returns a configuration for each setting of each method: some are possible alone, but not together. */
        private List<Configuration> all(Map<String, Ladder> ladders, long firstSeed) {
            var all = new LinkedHashMap<Map<String, String>, Configuration>();
            ladders.forEach((method, ladder) -> ladder.settings()
                    .forEach(settings -> attempt(() -> {
                        Configuration each = configuration(
                                request.preset(),
                                changes,
                                method,
                                settings,
                                firstSeed,
                                ladder.rungs().getLast().iterations());
                        if (all.put(each.values(), each) != null) {
                            mistakes.add("--grid: %s of %s are the same settings as others, written differently"
                                    .formatted(settings, method));
                        }
                    })));
            return List.copyOf(all.values());
        }

        private ValidationMetric metric(List<Configuration> all, Optional<Path> dataDirectory) {
            List<ValidationMetric> metrics = Training.validationMetrics(all, dataDirectory);
            String names = metrics.stream().map(ValidationMetric::name).collect(Collectors.joining(", "));
            ValidationMetric chosen = request.metric().isPresent()
                    ? metrics.stream()
                            .filter(metric ->
                                    metric.name().equals(request.metric().get()))
                            .findFirst()
                            .orElseThrow(() -> new ConfigurationException("--metric %s: unknown; the runs have %s"
                                    .formatted(request.metric().get(), names)))
                    : metrics.stream()
                            .filter(ValidationMetric::ofAnyObjective)
                            .findFirst()
                            .orElseGet(metrics::getFirst);
            if (chosen.isOfObjective()
                    && all.stream()
                                    .map(each -> List.of(each.methodName(), each.objective()))
                                    .distinct()
                                    .count()
                            > all.stream()
                                    .map(Configuration::methodName)
                                    .distinct()
                                    .count()) {
                mistakes.add(
                        "--metric %s: the sweep varies the objective itself, so that its values cannot be compared;"
                                        .formatted(chosen.name())
                                + " choose another of " + names);
            }
            return chosen;
        }
    }
}
