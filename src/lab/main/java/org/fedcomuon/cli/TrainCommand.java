package org.fedcomuon.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.experiment.Configuration;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.experiment.TrainingEngine;
import org.fedcomuon.federation.RunLock;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code fedcomuon train}: trains a preset, from its first step to its report. */
@Command(
        name = "train",
        description = "Train a preset: metrics, checkpoints, the model and a report.",
        footer = {
            "",
            "Writes config.yaml, metrics.jsonl, metrics.csv, clients.jsonl, summary.json, model.safetensors,",
            "report.html and checkpoints to its directory. Ctrl-C stops after the current step; --resume",
            "continues, with bit-identical results.",
            "Exit code 0 when it is done or was stopped, 1 when it failed or diverged, 2 for a bad setting or file."
        })
final class TrainCommand implements Callable<Integer> {
    /** What a process that ends at once may take to say why. */
    private static final Duration LAST_WORDS = Duration.ofSeconds(10);

    @Spec
    private CommandSpec spec;

    @Mixin
    private RunSettings settings;

    @Mixin
    private RunPlace place;

    @Option(
            names = "--out",
            paramLabel = "DIR",
            description = "The directory for the files; a new one below runs by default.")
    private Optional<Path> out = Optional.empty();

    @Option(names = "--resume", paramLabel = "DIR", description = "Continue the run in this directory.")
    private Optional<Path> resume = Optional.empty();

    @Option(
            names = "--tensorboard",
            description =
                    "Write event files for TensorBoard too, in the directory tensorboard of the run; a run that has"
                            + " some continues them when it is resumed.")
    private boolean tensorBoard;

    @Mixin
    private DashboardOptions dashboardOptions;

    @Option(names = "--quiet", description = "Show no progress.")
    private boolean quiet;

    private Optional<RunLock> lock = Optional.empty();

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (!place.mistakes().isEmpty()) {
            throw new UsageException(String.join("; ", place.mistakes()));
        }
        dashboardOptions.check();
        TrainingEngine engine = TrainingEngine.of(place.cluster());
        try (OwnClasses own = OwnClasses.open(place.classPath())) {
            own.require(engine, place.cluster());
            train(engine);
        }
        return 0;
    }

    private void train(TrainingEngine engine) throws IOException, InterruptedException {
        Configuration configuration = configuration();
        boolean isCluster = !place.cluster().equals(TrainingEngine.LOCAL);
        if (isCluster && configuration.has("earlyStopping")) {
            throw new UsageException(
                    "--cluster %s with earlyStopping: members hear of it a few steps later, so that the result"
                                    .formatted(place.cluster())
                            + " would depend on their number; leave one of the two out");
        }
        var job = new TrainingEngine.Job(
                place.cluster(),
                configuration,
                resume.isPresent(),
                place.devices(),
                place.threads(),
                place.dataDirectory(),
                place.memoryLimit(),
                tensorBoard || resume.filter(Training::hasTensorBoard).isPresent(),
                place.timeout(),
                new Version().getVersion()[0]);
        var display = new TrainDisplay(spec.commandLine(), dashboardOptions, quiet);
        Runnable stop = () -> {
            if (isCluster) {
                display.nameCheckpoint();
            }
            engine.stop();
        };
        Stoppable.run(stop, () -> {
            try {
                try {
                    engine.run(
                            job,
                            () -> display.open(configuration, claim(configuration), job.resumes()),
                            failure -> abandon(display, failure));
                } finally {
                    lock.ifPresent(RunLock::close);
                }
                display.report();
                display.keep();
            } catch (IOException | InterruptedException | RuntimeException | Error e) {
                display.fail(e);
                throw e;
            } finally {
                display.close();
            }
        });
    }

    /** Ends this process, whose other threads wait for what does not come, however little of it still works. */
    private void abandon(TrainDisplay display, MemberFailedException failure) {
        Thread last = Thread.ofPlatform().daemon().start(() -> {
            display.fail(failure);
            new Failures(spec.commandLine().getErr(), false).report(failure);
        });
        try {
            last.join(LAST_WORDS);
        } catch (InterruptedException e) {
            // It ends anyway.
        }
        Runtime.getRuntime().halt(Failures.RUN_FAILED);
    }

    private Configuration configuration() {
        return resume.isPresent()
                ? Training.configurationOf(resume.get(), settings.changes())
                : Configuration.of(settings.preset(), settings.changes());
    }

    /** Takes the directory of the run, from when on no other run can use it. */
    private RunLock claim(Configuration configuration) {
        if (resume.isPresent() && out.isPresent() && !out.equals(resume)) {
            throw new UsageException("--out %s: a run that is resumed stays in %s".formatted(out.get(), resume.get()));
        }
        Optional<Path> named = resume.or(() -> out);
        try {
            RunLock taken = named.isPresent()
                    ? Training.lock(named.get())
                    : RunLock.takeUnused(Path.of("runs", configuration.directoryName()));
            lock = Optional.of(taken);
            if (resume.isPresent()) {
                Training.requireWhole(resume.get());
            } else if (Training.isTaken(taken.directory())) {
                throw new UsageException("--out %s holds a run already; --resume %s continues it"
                        .formatted(taken.directory(), taken.directory()));
            }
            return taken;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
