package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.DoubleSummaryStatistics;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Consumer;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.DivergedException;

/**
 * A figure of the paper done anew: some rows (methods, or settings of one), each trained with several seeds, and what
 * the paper claims of them. Runs that are there already are not run again.
 *
 * @param name what commands call it
 * @param preset what is trained
 * @param rows in the order of the table
 * @param claims what the paper says
 */
public record Reproduction(String name, String preset, List<Row> rows, List<Claim> claims) {
    /**
     * A line of the table.
     *
     * @param label what it is called
     * @param changes of the preset
     */
    public record Row(String label, Map<String, String> changes) {}

    public Reproduction {
        rows = List.copyOf(rows);
        claims = List.copyOf(claims);
    }

    /** Those of the MNIST experiment. */
    public static final List<Reproduction> ALL = List.of(robustMnist(), tauMnist());

    /** What the way to orthogonalize does to training; the paper says nothing of it. */
    public static final Reproduction ORTHOGONALIZERS = orthogonalizers();

    private static Reproduction orthogonalizers() {
        var rows = new ArrayList<Row>();
        for (String method : List.of("fedcomuon", "fedcomuon-vr")) {
            for (String orthogonalizer : List.of("exact", "newton-schulz", "gram")) {
                rows.add(new Row(
                        "%s, %s".formatted(method, orthogonalizer),
                        Map.of("method", method, "orthogonalizer", orthogonalizer)));
            }
        }
        return new Reproduction("orthogonalizers", "mnist-robust", rows, List.of());
    }

    private static Reproduction robustMnist() {
        var rows = new ArrayList<Row>();
        MethodChoice.PAPER.forEach(method -> rows.add(new Row(method, Map.of("method", method))));
        List<String> proposed = List.of("fedcomuon", "fedcomuon-vr");
        List<String> baselines = MethodChoice.PAPER.stream()
                .filter(method -> !proposed.contains(method))
                .toList();
        List<String> allButVr = MethodChoice.PAPER.stream()
                .filter(method -> !method.equals("fedcomuon-vr"))
                .toList();
        var claims = new ArrayList<Claim>();
        for (String method : proposed) {
            claims.add(new Claim(
                    "%s: higher test accuracy than every baseline".formatted(method),
                    "test_accuracy",
                    true,
                    method,
                    baselines));
            claims.add(new Claim(
                    "%s: lower test loss than every baseline".formatted(method),
                    "test_loss",
                    false,
                    method,
                    baselines));
            claims.add(new Claim(
                    "%s: lower train loss than every baseline".formatted(method),
                    "train_loss",
                    false,
                    method,
                    baselines));
        }
        claims.add(new Claim(
                "fedcomuon-vr: the highest test accuracy of all", "test_accuracy", true, "fedcomuon-vr", allButVr));
        claims.add(
                new Claim("fedcomuon-vr: the lowest test loss of all", "test_loss", false, "fedcomuon-vr", allButVr));
        claims.add(
                new Claim("fedcomuon-vr: the lowest train loss of all", "train_loss", false, "fedcomuon-vr", allButVr));
        claims.add(new Claim(
                "fedcomuon-vr: the steadiest test loss of all", "unsteadiness", false, "fedcomuon-vr", allButVr));
        return new Reproduction("robust-mnist", "mnist-robust", rows, claims);
    }

    private static Reproduction tauMnist() {
        var rows = new ArrayList<Row>();
        var claims = new ArrayList<Claim>();
        for (String method : List.of("fedcomuon", "fedcomuon-vr")) {
            var others = new ArrayList<String>();
            for (String tau : List.of("1", "5", "10", "20")) {
                String label = "%s, tau = %s".formatted(method, tau);
                rows.add(new Row(label, Map.of("method", method, "tau", tau)));
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
        return new Reproduction("tau-mnist", "mnist-robust", rows, claims);
    }

    /**
     * The same with some of the methods only; claims of rows that are left out cannot be answered.
     *
     * @throws ConfigurationException when it has no row of such a method
     */
    public Reproduction of(List<String> methods) {
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
        return new Reproduction(name, preset, some, claims);
    }

    /** The runs of a row, one a seed. */
    public record Outcome(String label, List<RunRecord> runs) {
        public Outcome {
            runs = List.copyOf(runs);
        }

        /** A figure of each run that was run to its end. */
        public List<Double> values(String metric) {
            return runs.stream()
                    .map(run -> Claim.value(run, metric))
                    .flatMapToDouble(OptionalDouble::stream)
                    .boxed()
                    .toList();
        }

        /** A figure over seeds; empty unless every run has it. */
        public Optional<OverSeeds> overSeeds(String metric) {
            DoubleSummaryStatistics values =
                    values(metric).stream().mapToDouble(Double::doubleValue).summaryStatistics();
            return values.getCount() == 0 || values.getCount() < runs.size()
                    ? Optional.empty()
                    : Optional.of(new OverSeeds(values.getAverage(), (values.getMax() - values.getMin()) / 2));
        }

        /** Whether a run of it did. */
        public boolean diverged() {
            return runs.stream().anyMatch(run -> run.state() == RunRecord.State.DIVERGED);
        }
    }

    /**
     * A figure over seeds.
     *
     * @param spread half the distance between the least and the greatest
     */
    public record OverSeeds(double mean, double spread) {}

    /**
     * Trains what is not there yet.
     *
     * @param directory of all runs; each has its own in it
     * @param changes of every row
     * @param options where to run; resuming is decided here
     * @param progress hears a line a run
     * @throws InterruptedException when interrupted; the run that was under way can be gone on with
     */
    public List<Outcome> run(
            Path directory,
            List<Long> seeds,
            Map<String, String> changes,
            Training.Options options,
            Consumer<String> progress)
            throws IOException, InterruptedException {
        var outcomes = new ArrayList<Outcome>();
        for (Row row : rows) {
            var runs = new ArrayList<RunRecord>();
            for (long seed : seeds) {
                var all = new LinkedHashMap<>(row.changes());
                all.putAll(changes);
                all.put("seed", Long.toString(seed));
                Configuration configuration = Configuration.of(Preset.load(preset), all);
                Path out = directory.resolve("%s-%d".formatted(row.label().replaceAll("[^A-Za-z0-9-]+", "-"), seed));
                progress.accept("%s, seed %d: %s".formatted(row.label(), seed, train(configuration, options, out)));
                runs.add(RunRecord.read(out));
            }
            outcomes.add(new Outcome(row.label(), runs));
        }
        return outcomes;
    }

    private static String train(Configuration configuration, Training.Options options, Path out)
            throws IOException, InterruptedException {
        boolean there = Training.isTaken(out);
        if (there) {
            Map<String, String> before = Training.configurationOf(out, Map.of()).values();
            if (!before.equals(configuration.values())) {
                throw new ConfigurationException(
                        "%s holds a run with other settings; choose another directory".formatted(out));
            }
            if (isDone(RunRecord.read(out))) {
                return "there already";
            }
        }
        var with = new Training.Options(
                options.devices(), options.threads(), options.dataDirectory(), there, options.version());
        try {
            Map<String, Object> summary = new Training(configuration, with, out, new Listener() {}).run();
            return "test accuracy %s, test loss %s, %s s"
                    .formatted(summary.get("test_accuracy"), summary.get("test_loss"), summary.get("wall_seconds"));
        } catch (DivergedException | ClientFaultException e) {
            return String.valueOf(e.getMessage()); // in the table it says that it diverged
        }
    }

    private static boolean isDone(RunRecord run) {
        return run.state() == RunRecord.State.FINISHED || run.state() == RunRecord.State.DIVERGED;
    }
}
