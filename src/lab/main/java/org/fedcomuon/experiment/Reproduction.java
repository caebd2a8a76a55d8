package org.fedcomuon.experiment;

import static java.util.stream.Collectors.joining;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.DivergedException;

/**
 * The reproduction of a figure of the paper: some rows (methods, or settings of one method), each trained with several
 * seeds, and the claims of the paper about them. Runs that exist already are not repeated.
 *
 * <p>Immutable.
 *
 * @param name the name of the figure in commands
 * @param preset the preset that is trained
 * @param changes of the preset, in every row
 * @param tuned settings of methods that were found on validation examples, by method; empty where the preset's hold
 * @param rows in the order of the table
 * @param claims about rows
 */
public record Reproduction(
        String name,
        String preset,
        Map<String, String> changes,
        Map<String, Map<String, String>> tuned,
        List<Row> rows,
        List<Claim> claims) {
    private static final String METHOD = "method";

    /** How large the runs of a figure are. */
    public enum Form {
        /** The models and the numbers of steps of the paper. */
        PAPER,
        /** Models of half the width or less, and fewer steps: minutes a run on two cores. */
        MEDIUM,
        /** Small models, few steps and some of the baselines: seconds a run. */
        QUICK;

        /** Returns the name in commands. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /**
     * A row of the table.
     *
     * <p>Immutable.
     *
     * @param label of the row
     * @param changes of the preset
     * @param panel the part of the page that shows the row, named by what the rows in it have in common; empty where
     *     all rows are compared with each other
     */
    public record Row(String label, Map<String, String> changes, String panel) {
        String method() {
            return changes.getOrDefault(METHOD, "");
        }

        /** Returns the row of another method in its place. */
        private Row of(String other) {
            var all = new LinkedHashMap<>(changes);
            all.put(METHOD, other);
            return new Row(label.replace(method(), other), all, panel.equals(method()) ? other : panel);
        }
    }

    public Reproduction {
        changes = Collections.unmodifiableMap(new LinkedHashMap<>(changes));
        tuned = Collections.unmodifiableMap(new LinkedHashMap<>(tuned));
        rows = List.copyOf(rows);
        claims = List.copyOf(claims);
    }

    /** The names of the figures. */
    public static final List<String> NAMES =
            List.of("robust-mnist", "tau-mnist", "wikitext2", "maml-cnn", "tau-maml", "maml-vit", "auc");

    /**
     * Returns the figure of this name, one of {@link #NAMES}.
     *
     * @throws ConfigurationException when there is no such figure, or not in this form
     */
    public static Reproduction of(String name, Form form) {
        return PaperFigures.of(name, form);
    }

    /**
     * Returns the effect of the orthogonalizer on training, which is not in the paper.
     *
     * @param preset of an experiment of the paper
     * @throws ConfigurationException when it has no such form
     */
    public static Reproduction ofOrthogonalizers(String preset, Form form) {
        return PaperFigures.orthogonalizers(preset, form);
    }

    /** Returns the settings that were found on validation examples, for a sentence; empty where there are none. */
    public String tunedText() {
        return tuned.entrySet().stream()
                .map(method -> "%s %s"
                        .formatted(
                                method.getKey(),
                                method.getValue().entrySet().stream()
                                        .map(setting -> setting.getKey() + "=" + setting.getValue())
                                        .collect(joining(" "))))
                .collect(joining(", "));
    }

    /** Returns the answers to all claims. */
    public List<Verdict> verdicts(List<RowValues> values) {
        return Verdict.of(claims, values);
    }

    /**
     * Returns the same reproduction with these methods only, which need not be of the figure; claims about other rows
     * cannot be answered.
     *
     * @throws ConfigurationException when there is no such method
     */
    public Reproduction with(List<String> methods) {
        methods.forEach(MethodChoice.ALL::get);
        var some = new ArrayList<>(
                rows.stream().filter(row -> methods.contains(row.method())).toList());
        List<String> known = methods();
        String pattern = known.getFirst();
        for (String method : methods.stream().distinct().toList()) {
            if (!known.contains(method)) {
                rows.stream()
                        .filter(row -> row.method().equals(pattern))
                        .map(row -> row.of(method))
                        .forEach(some::add);
            }
        }
        return new Reproduction(name, preset, changes, tuned, some, claims);
    }

    /** Returns the same reproduction with other changes in every row. */
    public Reproduction changed(Map<String, String> others) {
        return new Reproduction(name, preset, others, tuned, rows, claims);
    }

    /**
     * Returns the same reproduction with other settings than the preset's. What a row varies, it varies still.
     *
     * @param settings by method; the preset's hold for methods without
     */
    public Reproduction tuned(Map<String, Map<String, String>> settings) {
        return new Reproduction(name, preset, changes, settings, rows, claims);
    }

    /** Returns the methods of the rows. */
    public List<String> methods() {
        return rows.stream().map(Row::method).distinct().toList();
    }

    /**
     * The runs of a row, one per seed.
     *
     * <p>Immutable.
     *
     * @param label of the row
     * @param runs by their seeds
     * @param panel of the row
     */
    public record Outcome(String label, Map<Long, RunRecord> runs, String panel) {
        public Outcome {
            runs = Collections.unmodifiableMap(new LinkedHashMap<>(runs));
        }

        /** Creates the runs of a row that is compared with all others. */
        public Outcome(String label, Map<Long, RunRecord> runs) {
            this(label, runs, "");
        }

        /** Returns the part of the label that other rows of the panel do not have. */
        public String labelInPanel() {
            return panel.isEmpty() ? label : label.replace(", " + panel, "").replace(panel + ", ", "");
        }

        /** Returns the last values of the runs. */
        public RowValues values() {
            return RowValues.of(label, runs);
        }
    }

    /**
     * Trains the rows whose runs do not exist yet.
     *
     * @param directory in which each run has its own directory
     * @param options where and how to run; whether a run is resumed is decided here
     * @param parallel the number of runs at a time, which share the threads and the memory; it changes no result
     * @param progress receives one line per run
     * @throws InterruptedException when interrupted; the runs under way can be resumed
     */
    public List<Outcome> run(
            Path directory, List<Long> seeds, Training.Options options, int parallel, Consumer<String> progress)
            throws IOException, InterruptedException {
        Consumer<String> lines = line -> {
            synchronized (progress) {
                progress.accept(line);
            }
        };
        Set<String> said = ConcurrentHashMap.newKeySet();
        Consumer<String> notes = note -> { // notes that are the same for every run are shown once
            if (said.add(note)) {
                lines.accept(note);
            }
        };
        Training.Options share = options.share(parallel);
        var outcomes = new ArrayList<Outcome>();
        try (var pool = Executors.newFixedThreadPool(parallel)) {
            try {
                var started = new LinkedHashMap<Row, Map<Long, Future<RunRecord>>>();
                for (Row row : rows) {
                    var runs = new LinkedHashMap<Long, Future<RunRecord>>();
                    for (long seed : seeds) {
                        runs.put(seed, pool.submit(() -> run(row, seed, directory, share, lines, notes)));
                    }
                    started.put(row, runs);
                }
                for (var row : started.entrySet()) {
                    var runs = new LinkedHashMap<Long, RunRecord>();
                    for (var run : row.getValue().entrySet()) {
                        runs.put(run.getKey(), get(run.getValue()));
                    }
                    outcomes.add(
                            new Outcome(row.getKey().label(), runs, row.getKey().panel()));
                }
            } finally {
                pool.shutdownNow(); // after a failure, the other runs end too
            }
        }
        return outcomes;
    }

    private RunRecord run(
            Row row,
            long seed,
            Path directory,
            Training.Options options,
            Consumer<String> progress,
            Consumer<String> notes)
            throws IOException, InterruptedException {
        Configuration configuration = configuration(row, Map.of("seed", Long.toString(seed)));
        Path out = directory.resolve("%s-%d".formatted(row.label().replaceAll("[^A-Za-z0-9-]+", "-"), seed));
        progress.accept("%s, seed %d: %s".formatted(row.label(), seed, train(configuration, options, out, notes)));
        return RunRecord.read(out);
    }

    /** Returns the settings of a row, with others besides. */
    Configuration configuration(Row row, Map<String, String> more) {
        var all = new LinkedHashMap<>(tuned.getOrDefault(row.method(), Map.of()));
        all.putAll(row.changes());
        all.putAll(changes);
        all.putAll(more);
        return Configuration.of(Preset.load(preset), all);
    }

    private static RunRecord get(Future<RunRecord> run) throws IOException, InterruptedException {
        try {
            return run.get();
        } catch (ExecutionException e) {
            switch (e.getCause()) {
                case IOException cause -> throw cause;
                case InterruptedException cause -> throw cause;
                case RuntimeException cause -> throw cause;
                case Error cause -> throw cause;
                case null, default -> throw new IllegalStateException(e);
            }
        }
    }

    private static String train(Configuration configuration, Training.Options options, Path out, Consumer<String> notes)
            throws IOException, InterruptedException {
        boolean there = Training.isTaken(out);
        if (there) {
            Map<String, String> before = Training.configurationOf(out, Map.of()).values();
            if (!before.equals(configuration.values())) {
                throw new ConfigurationException(
                        "%s holds a run with other settings; choose another directory".formatted(out));
            }
            if (isDone(RunRecord.read(out))) {
                return "exists already";
            }
        }
        var with = new Training.Options(
                options.devices(),
                options.cluster(),
                options.threads(),
                options.dataDirectory(),
                options.memoryLimit(),
                there ? Optional.of(Training.checkpoints(out)) : Optional.empty(),
                options.tensorBoard(),
                options.version());
        try {
            Map<String, Object> summary =
                    new Training(configuration, with, out, Optional.empty(), List.of(), notes).run();
            String scores = Stream.of("test_accuracy", "test_perplexity", "test_auc", "test_loss")
                    .filter(summary::containsKey)
                    .map(score -> "%s %s, ".formatted(score.replace('_', ' '), summary.get(score)))
                    .collect(joining());
            return "%s%s s".formatted(scores, summary.get("wall_seconds"));
        } catch (DivergedException | ClientFaultException e) {
            return String.valueOf(e.getMessage()); // the table shows that it diverged
        }
    }

    private static boolean isDone(RunRecord run) {
        return run.state() == RunRecord.State.FINISHED || run.state() == RunRecord.State.DIVERGED;
    }
}
