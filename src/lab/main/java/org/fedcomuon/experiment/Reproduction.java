package org.fedcomuon.experiment;

import static java.util.stream.Collectors.joining;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.DoubleSummaryStatistics;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Consumer;
import java.util.function.Predicate;
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
 * @param rows in the order of the table
 * @param claims about rows
 * @param growths claims about leads
 */
public record Reproduction(
        String name,
        String preset,
        Map<String, String> changes,
        List<Row> rows,
        List<Claim> claims,
        List<Claim.Growth> growths) {
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
    public record Row(String label, Map<String, String> changes, String panel) {}

    public Reproduction {
        rows = List.copyOf(rows);
        claims = List.copyOf(claims);
        growths = List.copyOf(growths);
    }

    /** The names of the figures. */
    public static final List<String> NAMES =
            List.of("robust-mnist", "tau-mnist", "wikitext2", "maml-cnn", "tau-maml", "maml-vit", "auc");

    private static final List<String> PROPOSED = List.of("fedcomuon", "fedcomuon-vr");

    /** The rows of the paper where models are judged without adaptation. */
    private static final List<String> ROBUST = without("fedmaml");

    /** The rows of the paper where models are judged after adaptation. */
    private static final List<String> META = without("fedavg");

    /** One baseline of each kind (plain, Muon, compositional), and the two proposed methods. */
    private static final List<String> FEW_ROBUST =
            List.of("fedavg", "fedmuon", "local-scgdm", "fedcomuon", "fedcomuon-vr");

    private static final List<String> FEW_META =
            List.of("fedmaml", "fedmuon", "local-scgdm", "fedcomuon", "fedcomuon-vr");

    /** The effect of the orthogonalizer on training, which is not in the paper. */
    public static final Reproduction ORTHOGONALIZERS = orthogonalizers();

    /**
     * Returns the figure of this name, one of {@link #NAMES}.
     *
     * @param quick a small form of it: fewer steps, for all but MNIST a smaller model too, and fewer of the baselines
     */
    public static Reproduction of(String name, boolean quick) {
        Map<String, String> shorter = Map.of("iterations", "60", "evaluateEvery", "20");
        return switch (name) {
            case "robust-mnist" ->
                new Figure(name, "mnist-robust", quick ? shorter : Map.of())
                        .methods(MethodChoice.PAPER, "", Map.of())
                        .beatsAll("", "test_accuracy", "test_loss", "train_loss")
                        .steadiest()
                        .done();
            case "tau-mnist" ->
                new Figure(name, "mnist-robust", quick ? shorter : Map.of())
                        .taus()
                        .done();
            case "wikitext2" ->
                new Figure(name, "wikitext2-robust", quick ? QUICK_TEXT : Map.of())
                        .methods(quick ? FEW_ROBUST : ROBUST, "", Map.of())
                        .beatsAll("", "test_loss", "test_perplexity")
                        .done();
            case "maml-cnn" -> mamlCnn(quick);
            case "tau-maml" ->
                new Figure(name, "cifar-maml-cnn", quick ? QUICK_CNN : Map.of())
                        .taus()
                        .done();
            case "maml-vit" -> mamlVit(quick);
            case "auc" ->
                new Figure(name, "mnist-auc", quick ? shorter : Map.of())
                        .methods(
                                List.of("fedavg", "fedmuon", "local-scgdm", "fgdro-kl", "fedcomuon", "fedcomuon-vr"),
                                "",
                                Map.of())
                        .beatsAll("", "test_auc", "worst_client_auc")
                        .done();
            default -> throw new ConfigurationException(Nearest.unknown("figure", name, NAMES));
        };
    }

    // The quick forms: the same code on the same data, small enough for two cores.

    private static final Map<String, String> QUICK_TEXT = changes(
            "iterations=120 evaluateEvery=20 length=32 depth=2 width=64 heads=4 hidden=128 batch=4 judgedTrain=32"
                    + " judgedTest=400 checkpointEvery=100");

    private static final Map<String, String> QUICK_CNN = changes(
            "iterations=100 evaluateEvery=20 wide=16 wider=32 dense=128 perClient=1000 testPerClient=300 batch=16"
                    + " judgedTrain=100 checkpointEvery=100");

    private static final Map<String, String> QUICK_VIT =
            changes("iterations=120 evaluateEvery=20 patch=8 depth=3 width=48 perClient=1000 testPerClient=300 batch=16"
                    + " judgedTrain=100 checkpointEvery=100");

    private static Map<String, String> changes(String text) {
        var all = new LinkedHashMap<String, String>();
        for (String change : text.split(" ", -1)) {
            String[] parts = change.split("=", -1);
            all.put(parts[0], parts[1]);
        }
        return Collections.unmodifiableMap(all);
    }

    private static List<String> without(String method) {
        return MethodChoice.PAPER.stream()
                .filter(other -> !other.equals(method))
                .toList();
    }

    private static Reproduction mamlCnn(boolean quick) {
        List<String> shares = List.of("0.3", "0.5", "0.7");
        var figure = new Figure("maml-cnn", "cifar-maml-cnn", quick ? QUICK_CNN : Map.of());
        for (String chi : shares) {
            String suffix = ", chi = " + chi;
            figure.methods(quick ? FEW_META : META, suffix, Map.of("chi", chi));
            figure.beatsAll(suffix, "test_accuracy", "test_loss");
        }
        for (String method : PROPOSED) {
            figure.growths.add(new Claim.Growth(
                    "%s: its lead in test accuracy grows from chi = 0.3 to 0.7".formatted(method),
                    figure.leads(method, ", chi = 0.3"),
                    figure.leads(method, ", chi = 0.7")));
        }
        return figure.done();
    }

    private static Reproduction mamlVit(boolean quick) {
        var figure = new Figure("maml-vit", "cifar-maml-vit", quick ? QUICK_VIT : Map.of());
        figure.methods(quick ? FEW_META : META, "", Map.of());
        List<String> muons = figure.rowsOf("", method -> method.startsWith("fedmuon"));
        List<String> others = figure.rowsOf("", method -> !method.startsWith("fedmuon") && !PROPOSED.contains(method));
        for (String method : PROPOSED) {
            figure.claim("%s: higher test accuracy than %s", "test_accuracy", true, method, others);
            figure.claim("%s: lower test loss than %s", "test_loss", false, method, others);
            figure.claim("%s: test accuracy on a par (a tie) with %s", "test_accuracy", true, method, muons);
        }
        return figure.done();
    }

    private static Reproduction orthogonalizers() {
        var figure = new Figure("orthogonalizers", "mnist-robust", Map.of());
        for (String method : PROPOSED) {
            for (String orthogonalizer : List.of("exact", "newton-schulz", "gram")) {
                figure.rows.add(new Row(
                        "%s, %s".formatted(method, orthogonalizer),
                        Map.of("method", method, "orthogonalizer", orthogonalizer),
                        method));
            }
        }
        return figure.done();
    }

    /** Builds a reproduction. */
    private static final class Figure {
        private final String name;
        private final String preset;
        private final Map<String, String> changes;
        private final List<Row> rows = new ArrayList<>();
        private final List<Claim> claims = new ArrayList<>();
        private final List<Claim.Growth> growths = new ArrayList<>();

        Figure(String name, String preset, Map<String, String> changes) {
            this.name = name;
            this.preset = preset;
            this.changes = changes;
        }

        Reproduction done() {
            return new Reproduction(name, preset, changes, rows, claims, growths);
        }

        /** Adds a row for each method. */
        Figure methods(List<String> methods, String suffix, Map<String, String> more) {
            for (String method : methods) {
                var all = new LinkedHashMap<>(more);
                all.put("method", method);
                rows.add(new Row(method + suffix, all, suffix.replaceFirst("^, ", "")));
            }
            return this;
        }

        List<String> rowsOf(String suffix, Predicate<String> methods) {
            return rows.stream()
                    .map(Row::label)
                    .filter(label -> label.endsWith(suffix)
                            && methods.test(label.substring(0, label.length() - suffix.length())))
                    .toList();
        }

        void claim(String text, String metric, boolean higher, String winner, List<String> others) {
            claims.add(new Claim(text.formatted(winner, String.join(", ", others)), metric, higher, winner, others));
        }

        private static boolean isHigherBetter(String metric) {
            return metric.equals("test_accuracy") || metric.endsWith("_auc");
        }

        private static String words(String metric) {
            return (isHigherBetter(metric) ? "higher " : "lower ") + metric.replace('_', ' ');
        }

        /** Claims that both proposed methods are better than every baseline, and FedCoMuon-VR better than all. */
        Figure beatsAll(String suffix, String... metrics) {
            List<String> baselines = rowsOf(suffix, method -> !PROPOSED.contains(method));
            for (String method : PROPOSED) {
                for (String metric : metrics) {
                    String text = "%s: " + words(metric) + " than every baseline";
                    claim(text, metric, isHigherBetter(metric), method + suffix, baselines);
                }
            }
            String best = "fedcomuon-vr";
            for (String metric : metrics) {
                claim(
                        "%s: the " + words(metric).replace("er ", "est ") + " of all",
                        metric,
                        isHigherBetter(metric),
                        best + suffix,
                        rowsOf(suffix, method -> !method.equals(best)));
            }
            return this;
        }

        Claim leads(String method, String suffix) {
            return new Claim(
                    "lead", "test_accuracy", true, method + suffix, rowsOf(suffix, other -> !PROPOSED.contains(other)));
        }

        Figure steadiest() {
            String best = "fedcomuon-vr";
            claim(
                    "%s: the steadiest test loss of all",
                    "unsteadiness", false, best, rowsOf("", method -> !method.equals(best)));
            return this;
        }

        /** Adds rows for both proposed methods with four values of tau. */
        Figure taus() {
            for (String method : PROPOSED) {
                var others = new ArrayList<String>();
                for (String tau : List.of("1", "5", "10", "20")) {
                    String label = "%s, tau = %s".formatted(method, tau);
                    rows.add(new Row(label, Map.of("method", method, "tau", tau), method));
                    others.add(label);
                }
                String best = others.removeFirst();
                claims.add(new Claim(
                        "%s: tau = 1 has the highest test accuracy".formatted(method),
                        "test_accuracy",
                        true,
                        best,
                        others));
                claims.add(new Claim(
                        "%s: tau = 1 has the lowest test loss".formatted(method), "test_loss", false, best, others));
            }
            return this;
        }
    }

    /** Returns the answers to all claims. */
    public List<Claim.Verdict> verdicts(List<Outcome> outcomes) {
        return Stream.concat(
                        claims.stream().map(claim -> claim.judge(outcomes)),
                        growths.stream().map(growth -> growth.judge(outcomes)))
                .toList();
    }

    /**
     * Returns the same reproduction with some of the methods only; claims about other rows cannot be answered.
     *
     * @throws ConfigurationException when there is no row of such a method
     */
    public Reproduction with(List<String> methods) {
        List<String> known =
                rows.stream().map(row -> row.changes().get("method")).distinct().toList();
        for (String method : methods) {
            if (!known.contains(method)) {
                throw new ConfigurationException(Nearest.unknown("method of this figure", method, known));
            }
        }
        List<Row> some = rows.stream()
                .filter(row -> methods.contains(row.changes().get("method")))
                .toList();
        return new Reproduction(name, preset, changes, some, claims, growths);
    }

    /** Returns the same reproduction with other changes in every row. */
    public Reproduction changed(Map<String, String> others) {
        return new Reproduction(name, preset, others, rows, claims, growths);
    }

    /**
     * The runs of a row, one per seed.
     *
     * <p>Immutable.
     *
     * @param label of the row
     * @param panel of the row
     */
    public record Outcome(String label, List<RunRecord> runs, String panel) {
        public Outcome {
            runs = List.copyOf(runs);
        }

        /** Creates the runs of a row that is compared with all others. */
        public Outcome(String label, List<RunRecord> runs) {
            this(label, runs, "");
        }

        /** Returns the part of the label that other rows of the panel do not have. */
        public String labelInPanel() {
            return panel.isEmpty() ? label : label.replace(", " + panel, "").replace(panel + ", ", "");
        }

        /** Returns the metric of each run that has ended normally. */
        public List<Double> values(String metric) {
            return runs.stream()
                    .map(run -> Claim.value(run, metric))
                    .flatMapToDouble(OptionalDouble::stream)
                    .boxed()
                    .toList();
        }

        /** Returns the metric over seeds; empty unless every run has it. */
        public Optional<OverSeeds> overSeeds(String metric) {
            DoubleSummaryStatistics values =
                    values(metric).stream().mapToDouble(Double::doubleValue).summaryStatistics();
            return values.getCount() == 0 || values.getCount() < runs.size()
                    ? Optional.empty()
                    : Optional.of(new OverSeeds(values.getAverage(), (values.getMax() - values.getMin()) / 2));
        }

        /** Returns whether a run has diverged. */
        public boolean diverged() {
            return runs.stream().anyMatch(run -> run.state() == RunRecord.State.DIVERGED);
        }
    }

    /**
     * A metric over seeds.
     *
     * @param spread half the distance between the least and the greatest
     */
    public record OverSeeds(double mean, double spread) {}

    /**
     * Trains the rows whose runs do not exist yet.
     *
     * @param directory in which each run has its own directory
     * @param options where and how to run; whether a run is resumed is decided here
     * @param progress receives one line per run
     * @throws InterruptedException when interrupted; the current run can be resumed
     */
    public List<Outcome> run(Path directory, List<Long> seeds, Training.Options options, Consumer<String> progress)
            throws IOException, InterruptedException {
        var said = new HashSet<String>();
        Consumer<String> notes = note -> { // notes that are the same for every run are shown once
            if (said.add(note)) {
                progress.accept(note);
            }
        };
        var outcomes = new ArrayList<Outcome>();
        for (Row row : rows) {
            var runs = new ArrayList<RunRecord>();
            for (long seed : seeds) {
                var all = new LinkedHashMap<>(row.changes());
                all.putAll(changes);
                all.put("seed", Long.toString(seed));
                Configuration configuration = Configuration.of(Preset.load(preset), all);
                Path out = directory.resolve("%s-%d".formatted(row.label().replaceAll("[^A-Za-z0-9-]+", "-"), seed));
                progress.accept(
                        "%s, seed %d: %s".formatted(row.label(), seed, train(configuration, options, out, notes)));
                runs.add(RunRecord.read(out));
            }
            outcomes.add(new Outcome(row.label(), runs, row.panel()));
        }
        return outcomes;
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
