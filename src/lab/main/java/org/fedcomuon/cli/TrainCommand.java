package org.fedcomuon.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
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

    @Option(
            names = "--devices",
            split = ",",
            paramLabel = "D",
            defaultValue = "cpu:0",
            description = "The devices to run on, such as cpu:0,cpu:1; cpu:0 by default. Never changes the result.")
    private List<String> devices = List.of();

    @Option(
            names = "--cluster",
            paramLabel = "C",
            description = "Divide the clients among processes; mpi: those that mpirun has started; spark://HOST:PORT,"
                    + " local-cluster[N,CORES,MB] or spark: executors of Apache Spark; local: none but this one, which"
                    + " is the default. Never changes the result.")
    private Optional<String> cluster = Optional.empty();

    @Option(
            names = "--cluster-timeout",
            paramLabel = "SECONDS",
            defaultValue = "120",
            description = "The time after which a cluster that cannot go on ends the run; 120 by default. Slow members,"
                    + " however slow, are waited for.")
    private int clusterTimeout;

    @Option(
            names = "--threads",
            paramLabel = "N",
            description = "The number of threads; all cores by default. Never changes the result.")
    private Optional<Integer> threads = Optional.empty();

    @Option(
            names = "--class-path",
            paramLabel = "JARS",
            description = "Jars and directories of classes, separated by colons, with methods, models, data sets,"
                    + " splits or objectives of your own.")
    private Optional<String> classPath = Optional.empty();

    @Option(names = "--data-dir", paramLabel = "DIR", description = "The directory of your own data files.")
    private Optional<Path> dataDirectory = Optional.empty();

    @Option(
            names = "--memory-limit",
            paramLabel = "GIB",
            description = "Refuse a run that is estimated to take more memory; the available memory by default.")
    private Optional<Double> memoryLimit = Optional.empty();

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
        if (threads.isPresent() && threads.get() < 1) {
            throw new UsageException("--threads %d: at least 1 is needed".formatted(threads.get()));
        }
        if (memoryLimit.isPresent() && !(memoryLimit.get() > 0 && memoryLimit.get() < 1e6)) {
            throw new UsageException("--memory-limit %s: a number of GiB is needed".formatted(memoryLimit.get()));
        }
        if (clusterTimeout < 1) {
            throw new UsageException("--cluster-timeout %d: at least 1 second is needed".formatted(clusterTimeout));
        }
        dashboardOptions.check();
        String clusterName = cluster.orElse(TrainingEngine.LOCAL);
        TrainingEngine engine = TrainingEngine.of(clusterName);
        try (OwnClasses own = OwnClasses.open(classPath)) {
            own.require(engine, clusterName);
            train(engine, clusterName);
        }
        return 0;
    }

    private void train(TrainingEngine engine, String clusterName) throws IOException, InterruptedException {
        Configuration configuration = configuration();
        if (!clusterName.equals(TrainingEngine.LOCAL) && configuration.has("earlyStopping")) {
            throw new UsageException(
                    "--cluster %s with earlyStopping: members hear of it a few steps later, so that the result"
                                    .formatted(clusterName)
                            + " would depend on their number; leave one of the two out");
        }
        var job = new TrainingEngine.Job(
                clusterName,
                configuration,
                resume.isPresent(),
                devices,
                threads.map(OptionalInt::of).orElse(OptionalInt.empty()),
                dataDirectory,
                memoryLimitBytes(),
                tensorBoard || resume.filter(Training::hasTensorBoard).isPresent(),
                Duration.ofSeconds(clusterTimeout),
                new Version().getVersion()[0]);
        var display = new TrainDisplay(spec.commandLine(), dashboardOptions, quiet);
        Runnable stop = () -> {
            if (cluster.isPresent()) {
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

    private OptionalLong memoryLimitBytes() {
        return memoryLimit
                .map(gib -> OptionalLong.of((long) (gib * (1L << 30))))
                .orElse(OptionalLong.empty());
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
