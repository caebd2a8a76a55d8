package org.fedcomuon.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.experiment.Configuration;
import org.fedcomuon.experiment.Preset;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.experiment.TrainingEngine;
import org.fedcomuon.federation.RunLock;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
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
    /** The JVM ends after this time even if the current step and its checkpoint are not done. */
    private static final long STOP_SECONDS = 120;

    /** What a process that ends at once may take to say why. */
    private static final Duration LAST_WORDS = Duration.ofSeconds(10);

    /** The names of the presets, for the help. */
    private static final class Presets implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return Preset.NAMES.iterator();
        }
    }

    /** The names of the methods, for the help; read when it is shown, because every command creates this class. */
    private static final class Methods implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return Configuration.methodNames().iterator();
        }
    }

    @Spec
    private CommandSpec spec;

    @Parameters(
            arity = "0..1",
            paramLabel = "PRESET",
            completionCandidates = Presets.class,
            description = "${COMPLETION-CANDIDATES}, or a .yaml file of your own.")
    private Optional<String> preset = Optional.empty();

    @Option(
            names = "--method",
            paramLabel = "M",
            completionCandidates = Methods.class,
            description = "One of ${COMPLETION-CANDIDATES}.")
    private Optional<String> method = Optional.empty();

    @Option(names = "--seed", paramLabel = "S", description = "The seed of W0, of the split and of all samples.")
    private Optional<String> seed = Optional.empty();

    @Option(names = "--iterations", paramLabel = "T", description = "The number of local steps.")
    private Optional<String> iterations = Optional.empty();

    @Option(names = "--tau", paramLabel = "N", description = "The number of local steps per round.")
    private Optional<String> tau = Optional.empty();

    @Option(names = "--clients", paramLabel = "K", description = "The number of clients.")
    private Optional<String> clients = Optional.empty();

    @Option(
            names = "--participation",
            paramLabel = "P",
            description = "The share of clients that take part in a round.")
    private Optional<String> participation = Optional.empty();

    @Option(
            names = "--cohort",
            paramLabel = "N",
            description = "The number of clients that take part in a round, instead of their share.")
    private Optional<String> cohort = Optional.empty();

    @Option(
            names = "--orthogonalizer",
            paramLabel = "O",
            description = "exact, exact-svd, newton-schulz, gram or auto.")
    private Optional<String> orthogonalizer = Optional.empty();

    @Option(names = "--checkpoint-every", paramLabel = "N", description = "Rounds between checkpoints.")
    private Optional<String> checkpointEvery = Optional.empty();

    @Option(names = "--set", paramLabel = "NAME=VALUE", description = "Any other setting of the preset.")
    private Map<String, String> settings = new LinkedHashMap<>();

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
            names = "--init",
            paramLabel = "FILE",
            description = "The initial weights, a .safetensors file; --set initNames=BLOCK=TENSOR,... maps names.")
    private Optional<String> init = Optional.empty();

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
        stoppable(stop, () -> {
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
        var changes = new LinkedHashMap<>(settings);
        Map<String, Optional<String>> given = new LinkedHashMap<>();
        given.put("method", method);
        given.put("seed", seed);
        given.put("iterations", iterations);
        given.put("tau", tau);
        given.put("clients", clients);
        given.put("participation", participation);
        given.put("cohort", cohort);
        given.put("orthogonalizer", orthogonalizer);
        given.put("checkpointEvery", checkpointEvery);
        given.put("init", init);
        given.forEach((name, value) -> value.ifPresent(text -> {
            if (changes.put(name, text) != null) {
                throw new UsageException("%s is given twice, by its own option and by --set".formatted(name));
            }
        }));
        if (resume.isPresent()) {
            return Training.configurationOf(resume.get(), changes);
        }
        return Configuration.of(
                Preset.load(preset.orElseThrow(() -> new UsageException(
                        "no PRESET given; the presets are %s".formatted(String.join(", ", Preset.NAMES))))),
                changes);
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

    private interface Work {
        void run() throws IOException, InterruptedException;
    }

    /**
     * Runs {@code work}, and on Ctrl-C or a kill waits for the current step, because a process must not end during a
     * call of libtorch.
     */
    private static void stoppable(Runnable stop, Work work) throws IOException, InterruptedException {
        var done = new CountDownLatch(1);
        Thread hook = Thread.ofPlatform().unstarted(() -> {
            stop.run();
            try {
                done.await(STOP_SECONDS, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        Runtime.getRuntime().addShutdownHook(hook);
        try {
            work.run();
        } finally {
            done.countDown();
            try {
                Runtime.getRuntime().removeShutdownHook(hook);
            } catch (IllegalStateException e) {
                // The JVM is shutting down, and the hook waits for this method.
            }
        }
    }
}
