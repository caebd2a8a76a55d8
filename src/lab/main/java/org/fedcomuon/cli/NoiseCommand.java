package org.fedcomuon.cli;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.fedcomuon.experiment.RunNoise;
import org.fedcomuon.experiment.RunRecordException;
import org.fedcomuon.experiment.TrackerErrors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code fedcomuon noise}: how noisy the inner functions of a run are, and whether variance reduction pays. */
@Command(
        name = "noise",
        description =
                "Measure how noisy the inner function g is at the newest checkpoint of a run, and what trackers leave of it.",
        footer = {
            "",
            "Columns: |u - g| of the checkpoint; the standard deviations of g and of its change by a step, over batches;",
            "the change of its mean; and the least error of a moving average and of variance reduction, with the alpha",
            "that it takes, and both with the alpha of the run. Variance reduction pays where its error is clearly the",
            "smaller."
        })
final class NoiseCommand implements Callable<Integer> {
    private static final int MOST_SAMPLES = 1_000_000;

    @Spec
    private CommandSpec spec;

    @Parameters(paramLabel = "RUN", description = "The directory of a run of fedcomuon or fedcomuon-vr.")
    private Path run;

    @Option(
            names = "--batches",
            split = ",",
            paramLabel = "N",
            description = "Sizes of batches; that of the run by default.")
    private List<Integer> batches = List.of();

    @Option(
            names = "--etas",
            split = ",",
            paramLabel = "E",
            required = true,
            description = "Learning rates: lengths of the step between the two models.")
    private List<Double> etas = List.of();

    @Option(names = "--clients", split = ",", paramLabel = "K", description = "Clients by number; all by default.")
    private List<Integer> clients = List.of();

    @Option(
            names = "--samples",
            paramLabel = "N",
            defaultValue = "32",
            description = "Batches of each client; ${DEFAULT-VALUE} by default.")
    private int samples;

    @Option(names = "--json", paramLabel = "FILE", description = "Also write the figures to this file.")
    private Optional<Path> json = Optional.empty();

    @Option(names = "--data-dir", paramLabel = "DIR", description = "The directory of your own data files.")
    private Optional<Path> dataDirectory = Optional.empty();

    @Override
    public Integer call() throws Exception {
        if (samples < 2 || samples > MOST_SAMPLES) {
            throw new UsageException("--samples %d: not in the range 2 to %d".formatted(samples, MOST_SAMPLES));
        }
        for (double eta : etas) {
            if (!(eta > 0 && eta < Double.POSITIVE_INFINITY)) {
                throw new UsageException("--etas %s: a number greater than 0 is needed".formatted(eta));
            }
        }
        PrintWriter err = spec.commandLine().getErr();
        RunNoise noise = measure(new RunNoise.Request(batches, etas, clients, samples), err);
        print(noise);
        json.ifPresent(file -> WholeFile.write("--json", file, Json.pretty(describe(noise))));
        return 0;
    }

    private RunNoise measure(RunNoise.Request what, PrintWriter err) throws Exception {
        try {
            return RunNoise.of(run, what, dataDirectory, line -> {
                err.println(line);
                err.flush();
            });
        } catch (RunRecordException e) {
            throw new UsageException(String.valueOf(e.getMessage()), e);
        }
    }

    private void print(RunNoise noise) {
        PrintWriter print = spec.commandLine().getOut();
        print.printf(
                "%s, step %d%n%n"
                        + "| client | batch | eta | g | abs(u - g) | sd of g | sd of its change | its change"
                        + " | moving average, alpha | variance reduction, alpha | the two with alpha = %s |%n|%s%n",
                noise.method(), noise.step(), noise.alpha(), "---|".repeat(11));
        for (RunNoise.Row row : noise.rows()) {
            TrackerErrors errors = row.errors();
            print.printf(
                    Locale.ROOT,
                    "| %d | %d | %.3g | %s | %s | %.3g | %.3g | %.3g | %s | %s | %.3g, %.3g |%n",
                    row.client(),
                    row.batch(),
                    row.eta(),
                    length(errors.mean()),
                    row.tracker().isEmpty()
                            ? "–"
                            : String.format(
                                    Locale.ROOT, "%.3g ± %.1g", row.tracker().getAsDouble(), row.uncertainty()),
                    errors.deviation(),
                    errors.deviationOfChange(),
                    errors.change(),
                    words(errors.leastOfMovingAverage()),
                    words(errors.leastOfVarianceReduction()),
                    errors.ofMovingAverage(noise.alpha()),
                    errors.ofVarianceReduction(noise.alpha()));
        }
        print.flush();
    }

    private static String length(double[] vector) {
        double squares = 0;
        for (double component : vector) {
            squares += component * component;
        }
        return String.format(Locale.ROOT, "%.3g", Math.sqrt(squares));
    }

    private static String words(TrackerErrors.Least least) {
        return String.format(Locale.ROOT, "%.3g, %.2g", least.error(), least.alpha());
    }

    private static Map<String, Object> describe(RunNoise noise) {
        var rows = new ArrayList<Map<String, Object>>();
        for (RunNoise.Row row : noise.rows()) {
            TrackerErrors errors = row.errors();
            var map = new LinkedHashMap<String, Object>();
            map.put("client", row.client());
            map.put("batch", row.batch());
            map.put("eta", row.eta());
            map.put("g", errors.mean());
            row.tracker().ifPresent(distance -> map.put("tracker_error", distance));
            map.put("uncertainty", row.uncertainty());
            map.put("deviation", errors.deviation());
            map.put("deviation_of_change", errors.deviationOfChange());
            map.put("change", errors.change());
            map.put("moving_average", describe(errors.leastOfMovingAverage()));
            map.put("variance_reduction", describe(errors.leastOfVarianceReduction()));
            map.put("moving_average_of_run", errors.ofMovingAverage(noise.alpha()));
            map.put("variance_reduction_of_run", errors.ofVarianceReduction(noise.alpha()));
            rows.add(map);
        }
        var all = new LinkedHashMap<String, Object>();
        all.put("method", noise.method());
        all.put("step", noise.step());
        all.put("alpha", noise.alpha());
        all.put("rows", rows);
        return all;
    }

    private static Map<String, Object> describe(TrackerErrors.Least least) {
        return Map.of("alpha", least.alpha(), "error", least.error());
    }
}
