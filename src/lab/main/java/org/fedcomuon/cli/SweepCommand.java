package org.fedcomuon.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.Callable;
import org.fedcomuon.experiment.Preset;
import org.fedcomuon.sweep.Strategy;
import org.fedcomuon.sweep.Sweep;
import org.fedcomuon.sweep.SweepRecord;
import org.fedcomuon.sweep.Trial;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code fedcomuon sweep}: tries settings of a preset, and finds the best of each method on validation examples. */
@Command(
        name = "sweep",
        description = "Try settings of a preset, and find the best of each method on validation examples.",
        footer = {
            "",
            "Writes sweep.json, sweep.csv, sweep.html and best-METHOD.yaml, a file for 'train', to its directory, and every",
            "trial to a directory of its own below trials. Ctrl-C stops; the same command continues with what is missing.",
            "Exit code 0 when it is done or was stopped, 1 when no settings have a result, 2 for a bad setting or file."
        })
final class SweepCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Mixin
    private RunSettings settings;

    @Option(
            names = "--grid",
            paramLabel = "NAME=V1,V2",
            description =
                    "A setting to vary, and its values; or NAME=LOW..HIGH for random and halving. May be repeated.")
    private List<String> grid = new ArrayList<>();

    @Option(
            names = "--methods",
            split = ",",
            paramLabel = "M",
            description = "The methods to tune, each by itself; that of the preset by default.")
    private List<String> methods = List.of();

    @Option(
            names = "--seeds",
            paramLabel = "N",
            defaultValue = "1",
            description = "The number of seeds of each setting, from --seed on; 1 by default.")
    private int seeds;

    @Option(
            names = "--metric",
            paramLabel = "NAME",
            description =
                    "What settings are chosen by, such as validation_accuracy, which is the default of classifiers.")
    private Optional<String> metric = Optional.empty();

    @Option(
            names = "--strategy",
            paramLabel = "S",
            defaultValue = "grid",
            description =
                    "grid: all combinations, which is the default; random: --trials of them; halving: short trials of"
                            + " all, or of --trials of them, and longer ones of the better half, again and again.")
    private String strategy = "";

    @Option(
            names = "--trials",
            paramLabel = "N",
            description = "The number of settings of each method that random and halving draw.")
    private Optional<Integer> trials = Optional.empty();

    @Option(
            names = "--parallel",
            paramLabel = "N",
            description =
                    "The number of trials at a time, each in a process of its own; the number of cores by default, here or"
                            + " of the executors.")
    private Optional<Integer> parallel = Optional.empty();

    @Mixin
    private RunPlace place;

    @Option(
            names = "--out",
            paramLabel = "DIR",
            description = "The directory for the files; runs/sweep-PRESET by default. What it has is not run again.")
    private Optional<Path> out = Optional.empty();

    @Option(names = "--tensorboard", description = "Write event files of every trial, for TensorBoard.")
    private boolean tensorBoard;

    @Option(names = "--quiet", description = "Show no progress.")
    private boolean quiet;

    private Optional<String> mistake = Optional.empty();

    @Override
    public Integer call() throws IOException, InterruptedException {
        try (OwnClasses _ = OwnClasses.open(place.classPath())) {
            Preset preset = settings.preset();
            var display = new SweepDisplay(spec.commandLine().getErr(), quiet);
            Path directory = directory(preset);
            return run(describe(preset, display, directory), display, directory);
        }
    }

    private Sweep describe(Preset preset, SweepDisplay display, Path directory) throws IOException {
        Sweep.Builder builder = Sweep.of(preset)
                .changes(settings.changes())
                .methods(methods)
                .seeds(seeds)
                .threads(place.threads().orElse(1))
                .devices(place.devices())
                .cluster(place.cluster())
                .clusterTimeout(place.timeout())
                .version(new Version().getVersion()[0])
                .listener(display);
        grid.forEach(builder::grid);
        if (tensorBoard) {
            builder.tensorBoard();
        }
        place.mistakes().forEach(builder::mistake);
        parallel.ifPresent(builder::parallel);
        metric.ifPresent(builder::metric);
        place.dataDirectory().ifPresent(builder::dataDirectory);
        place.classPath().ifPresent(builder::classPath);
        place.memoryLimit().ifPresent(builder::memoryLimit);
        builder.strategy(strategy());
        mistake.ifPresent(builder::mistake);
        return builder.build(directory);
    }

    private Strategy strategy() {
        OptionalInt count = trials.map(OptionalInt::of).orElse(OptionalInt.empty());
        return switch (strategy) {
            case "grid" -> {
                if (count.isPresent()) {
                    mistake = Optional.of("--trials %d: a grid has all combinations; --strategy random draws some"
                            .formatted(count.getAsInt()));
                }
                yield Strategy.grid();
            }
            case "random" -> {
                if (count.isEmpty()) {
                    mistake = Optional.of("--strategy random: --trials N is needed, the number of settings to draw");
                }
                yield Strategy.random(count.orElse(1));
            }
            case "halving" -> count.isPresent() ? Strategy.halving(count.getAsInt()) : Strategy.halving();
            default -> {
                mistake = Optional.of(
                        "--strategy %s: one of %s is possible".formatted(strategy, String.join(", ", Strategy.NAMES)));
                yield Strategy.grid();
            }
        };
    }

    private Path directory(Preset preset) {
        if (out.isPresent()) {
            return out.get();
        }
        // The name may come from a file that is not trusted.
        String name = preset.name().substring(preset.name().lastIndexOf('/') + 1);
        return Path.of("runs", "sweep-" + name.replaceAll("[^\\p{L}\\p{N}_-]+", "-"));
    }

    private int run(Sweep sweep, SweepDisplay display, Path directory) throws IOException, InterruptedException {
        var found = new ArrayList<SweepRecord>();
        Stoppable.run(sweep::stop, () -> {
            try {
                found.add(sweep.run());
            } finally {
                display.end();
            }
            print(found.getFirst(), directory);
        });
        SweepRecord record = found.getFirst();
        if (record.isComplete() && record.trials().stream().noneMatch(trial -> trial.state() == Trial.State.DONE)) {
            PrintWriter err = spec.commandLine().getErr();
            err.printf(
                    "fedcomuon: none of %d trials has a result; the first one: %s%n",
                    record.planned(), record.trials().getFirst().reason());
            err.flush();
            return Failures.RUN_FAILED;
        }
        return 0;
    }

    private void print(SweepRecord record, Path directory) {
        PrintWriter print = spec.commandLine().getOut();
        if (!record.isComplete()) {
            print.printf(
                    "stopped with %d of %d trials; the same command continues%n",
                    record.trials().size(), record.planned());
        }
        for (Trial.State state : List.of(Trial.State.DIVERGED, Trial.State.FAILED)) {
            long count = record.trials().stream()
                    .filter(trial -> trial.state() == state)
                    .count();
            if (count > 0) {
                print.printf(
                        "%d of %d trials %s%n",
                        count, record.trials().size(), state.name().toLowerCase(Locale.ROOT));
            }
        }
        for (String method : record.methods()) {
            record.best(method)
                    .ifPresentOrElse(
                            best -> print.printf("%-14s %s%n", method, text(record, best)),
                            () -> print.printf("%-14s no settings have a value for every seed%n", method));
        }
        print.println(directory.resolve("sweep.html"));
        print.flush();
    }

    private static String text(SweepRecord record, SweepRecord.Best best) {
        var text = new StringBuilder();
        best.settings()
                .forEach((name, value) ->
                        text.append(name).append(' ').append(value).append(", "));
        text.append(String.format(
                Locale.ROOT, "%s %.4f", record.metric().name(), best.summary().mean()));
        best.summary()
                .interval(0.95)
                .ifPresent(interval -> text.append(
                        String.format(Locale.ROOT, " (95 %% interval %.4f to %.4f)", interval.low(), interval.high())));
        return text.toString();
    }
}
