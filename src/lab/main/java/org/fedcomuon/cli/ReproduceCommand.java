package org.fedcomuon.cli;

import static java.util.stream.Collectors.joining;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.fedcomuon.experiment.Rates;
import org.fedcomuon.experiment.RatesReport;
import org.fedcomuon.experiment.Reproduction;
import org.fedcomuon.experiment.Reproduction.Form;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.report.RatesPage;
import org.fedcomuon.sweep.BestSettings;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code fedcomuon reproduce}: reproduces the figures and theorems of the paper. */
@Command(
        name = "reproduce",
        description = "Reproduce a figure or the theorems of the paper; writes FIGURE.json and FIGURE.html.",
        footer = {
            "",
            "Exit code 1 if a measured slope does not agree with the theory; not with --quick, which is inconclusive."
        })
final class ReproduceCommand implements Callable<Integer> {
    private static final String RATES = "rates";

    private static final int MOST_SEEDS = 1000;

    /** {@link Rates#run}, which tests replace. */
    @FunctionalInterface
    interface Measurement {
        RatesReport run(List<Rates.Subject> subjects, List<Long> lengths, int seeds, Consumer<String> progress)
                throws InterruptedException;
    }

    private final Measurement measurement;

    @Spec
    private CommandSpec spec;

    @Parameters(
            paramLabel = "FIGURE",
            description = {
                "rates: how the gradient norm falls with the length of the run;",
                "robust-mnist: all methods on MNIST; tau-mnist: the proposed ones with tau = 1, 5, 10, 20;",
                "wikitext2: all methods on text; maml-cnn, maml-vit: meta learning on CIFAR-10 with the CNN, for three",
                "shares of the dominant class, and with ViT-Tiny; tau-maml: the CNN with tau = 1, 5, 10, 20."
            })
    private String figure = RATES;

    @Mixin
    private FormOptions size = new FormOptions();

    @Option(
            names = "--tuned",
            paramLabel = "DIR",
            description = {
                "The directory of a complete sweep of the same preset: each method has the settings that are best there,",
                "instead of the preset's. Not for rates."
            })
    private Optional<Path> tuned = Optional.empty();

    @Option(
            names = "--methods",
            split = ",",
            paramLabel = "M",
            description = "The methods to measure; by default all of the figure.")
    private List<String> methods = List.of();

    @Option(
            names = "--seeds",
            paramLabel = "N",
            description = {
                "The number of seeds; for rates 4 by default and 2 with --quick, for the others 2 (as in the paper) and 1.",
                "Runs that exist are kept, so a larger number goes on from a smaller one."
            })
    private Optional<Integer> seeds = Optional.empty();

    @Option(
            names = "--out",
            paramLabel = "DIR",
            description = "The directory for the two files; runs/FIGURE by default.")
    private Optional<Path> out = Optional.empty();

    @Option(
            names = "--parallel",
            paramLabel = "N",
            defaultValue = "1",
            description = {
                "The number of runs at a time, which share cores and memory; 1 by default. Small models are faster with",
                "one core each. Never changes the result. Not for rates, which has one run per core."
            })
    private int parallel = 1;

    @Option(
            names = "--from",
            paramLabel = "FILE",
            description = {
                "Train nothing: judge the claims by the values in a FIGURE.json, and write FIGURE.json and FIGURE.md.",
                "With --quick if that run was."
            })
    private Optional<Path> from = Optional.empty();

    @Option(names = "--data-dir", paramLabel = "DIR", description = "The directory of your own data files.")
    private Optional<Path> dataDirectory = Optional.empty();

    @SuppressWarnings("UnusedMethod") // called by picocli
    private ReproduceCommand() {
        this(Rates::run);
    }

    ReproduceCommand(Measurement measurement) {
        this.measurement = measurement;
    }

    @Override
    public Integer call() throws IOException, InterruptedException {
        checkFigure();
        if (figure.equals(RATES)) {
            if (from.isPresent()) {
                throw new UsageException("--from: not for rates, which has no claims");
            }
            if (size.form() == Form.MEDIUM || tuned.isPresent()) {
                throw new UsageException("--medium and --tuned: not for rates, which trains no preset");
            }
            return rates();
        }
        if (from.isPresent()) {
            refuseWithFrom("--seeds", seeds.isPresent());
            refuseWithFrom("--data-dir", dataDirectory.isPresent());
            refuseWithFrom("--tuned", tuned.isPresent());
        }
        Reproduction what = what();
        int count = count(isQuick() ? 1 : 2);
        if (parallel < 1 || parallel > Runtime.getRuntime().availableProcessors()) {
            throw new UsageException("--parallel %d: not in the range 1 to %d, the number of cores"
                    .formatted(parallel, Runtime.getRuntime().availableProcessors()));
        }
        if (from.isPresent()) {
            new ReproduceTraining(what, spec.commandLine().getOut()).judge(from.get(), directory());
            return 0;
        }
        Path directory = directory();
        var options = new Training.Options(
                List.of("cpu:0"),
                Optional.empty(),
                Runtime.getRuntime().availableProcessors(),
                dataDirectory,
                OptionalLong.empty(),
                Optional.empty(),
                false,
                new Version().getVersion()[0]);
        new ReproduceTraining(what, spec.commandLine().getOut()).run(directory, count, options, parallel);
        return 0;
    }

    private boolean isQuick() {
        return size.form() == Form.QUICK;
    }

    private Reproduction what() {
        Reproduction what = Reproduction.of(figure, size.form());
        if (!methods.isEmpty()) { // any method of the full form, and others
            what = Reproduction.of(figure, Form.PAPER).with(methods).changed(what.changes());
        }
        return tuned.isEmpty() ? what : tuned(what, tuned.get());
    }

    private static Reproduction tuned(Reproduction what, Path directory) {
        BestSettings best = BestSettings.read(directory);
        if (!best.preset().equals(what.preset())) {
            throw new UsageException("--tuned %s: a sweep of %s, and %s trains %s"
                    .formatted(directory, best.preset(), what.name(), what.preset()));
        }
        for (String method : what.methods()) {
            if (!best.settings().containsKey(method)) {
                throw new UsageException(
                        "--tuned %s: the sweep has found no settings of %s; sweep it too, or leave it out of --methods"
                                .formatted(directory, method));
            }
        }
        var settings = new LinkedHashMap<>(best.settings());
        settings.keySet().retainAll(what.methods());
        return what.tuned(settings);
    }

    private static void refuseWithFrom(String option, boolean given) {
        if (given) {
            throw new UsageException("%s: not with --from, which trains nothing".formatted(option));
        }
    }

    private int count(int defaultCount) {
        int count = seeds.orElse(defaultCount);
        if (count < 1 || count > MOST_SEEDS) {
            throw new UsageException("--seeds %d: not in the range 1 to %d".formatted(count, MOST_SEEDS));
        }
        return count;
    }

    private Path directory() {
        Path directory = out.orElse(Path.of("runs", figure));
        Training.makeDirectory(directory);
        return directory;
    }

    private int rates() throws InterruptedException {
        List<Rates.Subject> subjects = subjects();
        int count = count(isQuick() ? 2 : 4);
        Path directory = directory();
        // Powers of two, evenly spread on the logarithmic axis on which slopes are measured.
        List<Long> lengths = LongStream.rangeClosed(8, isQuick() ? 11 : 14)
                .map(power -> 1L << power)
                .boxed()
                .toList();
        PrintWriter print = spec.commandLine().getOut();
        RatesReport report = measurement.run(subjects, lengths, count, what -> {
            print.println(what);
            print.flush();
        });
        Path json = directory.resolve(RATES + ".json");
        Path page = directory.resolve(RATES + ".html");
        WholeFile.write("--out", json, Json.pretty(describe(report)));
        WholeFile.write("--out", page, isQuick() ? RatesPage.quickHtml(report) : RatesPage.html(report));
        print(print, report);
        print.printf("%s%n%s%n", json, page);
        print.flush();
        return exitCode(report, page);
    }

    private void checkFigure() {
        if (!figure.equals(RATES) && !Reproduction.NAMES.contains(figure)) {
            throw new UsageException("no such FIGURE: '%s'; the figures are %s".formatted(figure, figures()));
        }
    }

    /** Returns the names of the figures, for a sentence. */
    private static String figures() {
        return Stream.concat(Stream.of(RATES), Reproduction.NAMES.stream())
                .map("'%s'"::formatted)
                .collect(joining(", "));
    }

    private List<Rates.Subject> subjects() {
        List<Rates.Subject> all = Rates.subjects();
        List<String> names = all.stream().map(Rates.Subject::name).distinct().toList();
        for (String method : methods) {
            if (!names.contains(method)) {
                throw new UsageException("--methods '%s': there is no theorem for it, only for %s"
                        .formatted(method, String.join(" and ", names)));
            }
        }
        return all.stream()
                .filter(subject -> methods.isEmpty() || methods.contains(subject.name()))
                .toList();
    }

    private void print(PrintWriter print, RatesReport report) {
        print.printf(
                "%n%-13s %-24s %7s %7s  %-14s  %s%n",
                "method", "orthogonalizer", "slope", "theory", "range", "verdict");
        for (RatesReport.Curve curve : report.curves()) {
            print.printf(
                    Locale.ROOT,
                    "%-13s %-24s %7.3f %7.3f  %5.2f to %5.2f  %s%n",
                    curve.method(),
                    curve.orthogonalizer(),
                    curve.slope(),
                    curve.theory(),
                    curve.least(),
                    curve.greatest(),
                    curve.agrees() ? "agrees" : "does not agree");
        }
        if (isQuick()) {
            print.println("--quick: the range of T is too short for a conclusion; run without --quick for one");
        }
        print.println();
    }

    /** Reports slopes that disagree like any other error: one line, and the exit code of a failed run. */
    private int exitCode(RatesReport report, Path page) {
        long others = report.curves().stream().filter(curve -> !curve.agrees()).count();
        if (isQuick() || others == 0) {
            return 0;
        }
        PrintWriter err = spec.commandLine().getErr();
        err.printf(
                "fedcomuon: %d of %d slopes outside the range that agrees with the theory; see %s%n",
                others, report.curves().size(), page);
        err.flush();
        return Failures.RUN_FAILED;
    }

    private Map<String, Object> describe(RatesReport report) {
        var curves = new ArrayList<Map<String, Object>>();
        for (RatesReport.Curve curve : report.curves()) {
            var runs = new ArrayList<Map<String, Object>>();
            for (RatesReport.Run run : curve.runs()) {
                var map = new LinkedHashMap<String, Object>();
                map.put("iterations", run.iterations());
                map.put("mean", run.mean());
                map.put("norms", run.norms());
                runs.add(map);
            }
            var map = new LinkedHashMap<String, Object>();
            map.put("method", curve.method());
            map.put("orthogonalizer", curve.orthogonalizer());
            map.put("slope", curve.slope());
            map.put("theory", curve.theory());
            map.put("least", curve.least());
            map.put("greatest", curve.greatest());
            map.put("agrees", curve.agrees());
            map.put("runs", runs);
            curves.add(map);
        }
        var all = new LinkedHashMap<String, Object>();
        all.put("figure", RATES);
        all.put("quick", isQuick());
        all.put("clients", report.clients());
        all.put("curves", curves);
        return all;
    }
}
