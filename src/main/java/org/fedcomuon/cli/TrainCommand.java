package org.fedcomuon.cli;

import java.io.Console;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.cluster.mpi.MpiCluster;
import org.fedcomuon.dashboard.Dashboard;
import org.fedcomuon.experiment.Configuration;
import org.fedcomuon.experiment.Preset;
import org.fedcomuon.experiment.RunRecord;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.experiment.TrainingEngine;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.report.TrainPage;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code fedcomuon train}: a preset from its first step to its report. */
@Command(
        name = "train",
        description = "Train a preset: metrics, checkpoints, the model and a report.",
        footer = {
            "",
            "Leaves config.yaml, metrics.jsonl, summary.json, model.safetensors, report.html and checkpoints in its",
            "directory. Ctrl-C stops after the step that is under way; --resume goes on to the same bits.",
            "Exit code 0 when it is done or was stopped, 1 when it failed or diverged, 2 for a bad setting or file."
        })
final class TrainCommand implements Callable<Integer> {
    /** How long a stop may take before the JVM ends anyway: the longest step, and its checkpoint. */
    private static final long STOP_SECONDS = 120;

    @Spec
    private CommandSpec spec;

    @Parameters(
            arity = "0..1",
            paramLabel = "PRESET",
            description =
                    "mnist-robust, wikitext2-robust, cifar-maml-cnn, cifar-maml-vit, or a .yaml file of your own.")
    private Optional<String> preset = Optional.empty();

    @Option(names = "--method", paramLabel = "M", description = "Such as fedcomuon, fedcomuon-vr, fedavg.")
    private Optional<String> method = Optional.empty();

    @Option(names = "--seed", paramLabel = "S", description = "Of W0, the partition and all samples.")
    private Optional<String> seed = Optional.empty();

    @Option(names = "--iterations", paramLabel = "T", description = "Local steps.")
    private Optional<String> iterations = Optional.empty();

    @Option(names = "--tau", paramLabel = "N", description = "Local steps a round.")
    private Optional<String> tau = Optional.empty();

    @Option(names = "--clients", paramLabel = "K", description = "How many.")
    private Optional<String> clients = Optional.empty();

    @Option(
            names = "--participation",
            paramLabel = "P",
            description = "The share of clients that take part in a round.")
    private Optional<String> participation = Optional.empty();

    @Option(names = "--orthogonalizer", paramLabel = "O", description = "exact, newton-schulz, gram or auto.")
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
            description = "Where to run, such as cpu:0,cpu:1; cpu:0 by default. Never changes the result.")
    private List<String> devices = List.of();

    @Option(
            names = "--cluster",
            paramLabel = "C",
            description = "Divide the clients among processes; mpi: those that mpirun has started; spark://HOST:PORT,"
                    + " local-cluster[N,CORES,MB] or spark: executors of Apache Spark. Never changes the result.")
    private Optional<String> clusterName = Optional.empty();

    @Option(names = "--threads", paramLabel = "N", description = "All cores by default. Never changes the result.")
    private Optional<Integer> threads = Optional.empty();

    @Option(names = "--data-dir", paramLabel = "DIR", description = "Data files of your own.")
    private Optional<Path> dataDirectory = Optional.empty();

    @Option(
            names = "--memory-limit",
            paramLabel = "GIB",
            description = "Refuse a run that is estimated to take more; what is available by default.")
    private Optional<Double> memoryLimit = Optional.empty();

    @Option(names = "--out", paramLabel = "DIR", description = "Where the files go; a new one below runs by default.")
    private Optional<Path> out = Optional.empty();

    @Option(names = "--resume", paramLabel = "DIR", description = "Go on with the run in this directory.")
    private Optional<Path> resume = Optional.empty();

    @Mixin
    private DashboardOptions dashboardOptions;

    @Option(names = "--quiet", description = "No progress.")
    private boolean quiet;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (threads.isPresent() && threads.get() < 1) {
            throw new UsageException("--threads %d: at least 1 is needed".formatted(threads.get()));
        }
        if (memoryLimit.isPresent() && !(memoryLimit.get() > 0 && memoryLimit.get() < 1e6)) {
            throw new UsageException("--memory-limit %s: a number of GiB is needed".formatted(memoryLimit.get()));
        }
        dashboardOptions.requirePort();
        if (clusterName.isEmpty()) {
            Configuration configuration = configuration();
            train(configuration, directory(configuration), Optional.empty());
        } else if (clusterName.get().equals(MpiProcess.NAME)) {
            trainAsMember();
        } else {
            trainBy(engine(clusterName.get()), clusterName.get());
        }
        return 0;
    }

    private static TrainingEngine engine(String name) {
        var names = new ArrayList<>(List.of(MpiProcess.NAME));
        for (TrainingEngine engine : ServiceLoader.load(TrainingEngine.class)) {
            if (engine.isMeantBy(name)) {
                return engine;
            }
            names.add(engine.names());
        }
        throw new UsageException("--cluster %s: there is %s".formatted(name, String.join(", ", names)));
    }

    /** As the one who watches: the members are elsewhere. */
    private void trainBy(TrainingEngine engine, String name) throws IOException, InterruptedException {
        Configuration configuration = configuration();
        Path directory = directory(configuration).toAbsolutePath().normalize();
        Optional<Dashboard> dashboard = dashboard(configuration, directory);
        Progress progress = progress(configuration);
        var job = new TrainingEngine.Job(
                name,
                directory,
                resume.flatMap(Training::lastCheckpoint).map(Path::toAbsolutePath),
                devices,
                threads.map(OptionalInt::of).orElse(OptionalInt.empty()),
                dataDirectory.map(Path::toAbsolutePath),
                memoryLimitBytes(),
                new Version().getVersion()[0]);
        PrintWriter err = spec.commandLine().getErr();
        stoppable(engine::stop, () -> sayCheckpoint(directory, err), shown(dashboard, () -> {
            WholeFile.makeDirectory("--out", directory);
            Training.writeConfiguration(configuration, directory);
            try {
                engine.run(job, audience(quiet, progress, dashboard), notes(quiet));
            } finally {
                if (!quiet) {
                    progress.end();
                }
            }
            report(directory, Training.summaryOf(directory));
        }));
    }

    private void trainAsMember() throws IOException, InterruptedException {
        try (MpiCluster cluster = MpiProcess.join(threads.orElseGet(MpiProcess::threads))) {
            try {
                Configuration configuration = configuration();
                boolean first = cluster.self() == 0;
                String directory =
                        cluster.agree(first ? directory(configuration).toString() : "");
                train(configuration, Path.of(directory), Optional.of(cluster));
            } catch (MemberFailedException e) {
                if (cluster.self() == 0) {
                    throw e;
                }
                // The first member says why, and its exit code is to be mpirun's.
            } catch (RuntimeException | IOException e) {
                cluster.fail(String.valueOf(e.getMessage()));
                throw e;
            }
        }
    }

    private void train(Configuration configuration, Path directory, Optional<Cluster> cluster)
            throws IOException, InterruptedException {
        boolean speaks = cluster.map(Cluster::self).orElse(0) == 0;
        Optional<Dashboard> dashboard = speaks ? dashboard(configuration, directory) : Optional.empty();
        boolean silent = quiet || !speaks;
        Progress progress = progress(configuration);
        var options = new Training.Options(
                devices,
                cluster,
                threads.orElseGet(() -> cluster.isPresent()
                        ? MpiProcess.threads()
                        : Runtime.getRuntime().availableProcessors()),
                dataDirectory,
                memoryLimitBytes(),
                resume.map(Training::checkpoints),
                new Version().getVersion()[0]);
        var training =
                new Training(configuration, options, directory, audience(silent, progress, dashboard), notes(silent));
        PrintWriter err = spec.commandLine().getErr();
        Runnable told = cluster.isPresent() && speaks ? () -> sayCheckpoint(directory, err) : () -> {};
        stoppable(training::stop, told, shown(dashboard, () -> {
            if (speaks) {
                WholeFile.makeDirectory("--out", directory);
            }
            Map<String, Object> summary;
            try {
                summary = training.run();
            } finally {
                if (!silent) {
                    progress.end();
                }
            }
            if (speaks) {
                report(directory, summary);
            }
        }));
    }

    /** Opened before anything is done, and said: without a port of one's own, nobody would know where it is. */
    private Optional<Dashboard> dashboard(Configuration configuration, Path directory) {
        Optional<Dashboard> dashboard = dashboardOptions.open(configuration, directory, resume.isPresent());
        dashboard.ifPresent(open -> {
            PrintWriter err = spec.commandLine().getErr();
            err.println("dashboard: " + open.uri());
            err.flush();
        });
        return dashboard;
    }

    private static Listener audience(boolean silent, Progress progress, Optional<Dashboard> dashboard) {
        var listeners = new ArrayList<Listener>(dashboard.stream().toList());
        if (!silent) {
            listeners.add(progress);
        }
        return new Audience(listeners);
    }

    /** Work that the page knows the end of, also where it fails before or after the run itself. */
    private static Work shown(Optional<Dashboard> dashboard, Work work) {
        return () -> {
            try {
                work.run();
            } catch (IOException | InterruptedException | RuntimeException | Error e) {
                dashboard.ifPresent(open -> open.onFailure(e));
                throw e;
            } finally {
                dashboard.ifPresent(Dashboard::close);
            }
        };
    }

    private Progress progress(Configuration configuration) {
        boolean terminal =
                Optional.ofNullable(System.console()).map(Console::isTerminal).orElse(false);
        return new Progress(spec.commandLine().getErr(), terminal, configuration.iterations());
    }

    private Consumer<String> notes(boolean silent) {
        PrintWriter err = spec.commandLine().getErr();
        return silent
                ? note -> {}
                : note -> {
                    err.println(note);
                    err.flush();
                };
    }

    private OptionalLong memoryLimitBytes() {
        return memoryLimit
                .map(gib -> OptionalLong.of((long) (gib * (1L << 30))))
                .orElse(OptionalLong.empty());
    }

    /** While the run still is stoppable, so that one that is interrupted says how to go on. */
    private void report(Path directory, Map<String, Object> summary) {
        WholeFile.write("--out", directory.resolve("report.html"), TrainPage.html(List.of(RunRecord.read(directory))));
        print(summary, directory);
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
        given.put("orthogonalizer", orthogonalizer);
        given.put("checkpointEvery", checkpointEvery);
        given.forEach((name, value) -> value.ifPresent(text -> {
            if (changes.put(name, text) != null) {
                throw new UsageException("%s is given twice, by its own option and by --set".formatted(name));
            }
        }));
        if (resume.isPresent()) {
            return Training.configurationOf(resume.get(), changes);
        }
        return Configuration.of(
                Preset.load(preset.orElseThrow(() ->
                        new UsageException("which PRESET? There is %s".formatted(String.join(", ", Preset.NAMES))))),
                changes);
    }

    private Path directory(Configuration configuration) {
        if (resume.isPresent()) {
            if (out.isPresent() && !out.equals(resume)) {
                throw new UsageException(
                        "--out %s: a run that is resumed stays in %s".formatted(out.get(), resume.get()));
            }
            return resume.get();
        }
        if (out.isPresent()) {
            if (Training.isTaken(out.get())) {
                throw new UsageException(
                        "--out %s holds a run already; --resume %s goes on with it".formatted(out.get(), out.get()));
            }
            return out.get();
        }
        String name = configuration.directoryName();
        Path directory = Path.of("runs", name);
        for (int i = 2; Files.exists(directory); i++) {
            directory = Path.of("runs", name + "-" + i);
        }
        return directory;
    }

    /** Whoever ends a cluster's processes, or sees one die, may not wait for the next checkpoint. */
    private static void sayCheckpoint(Path directory, PrintWriter err) {
        err.println(Training.lastCheckpoint(directory)
                .map(file -> "fedcomuon: ending; the last checkpoint is %s, --resume %s goes on from it"
                        .formatted(file, directory))
                .orElse("fedcomuon: ending; there is no checkpoint yet"));
        err.flush();
    }

    private interface Work {
        void run() throws IOException, InterruptedException;
    }

    /** Runs, and on Ctrl-C or a kill waits for the step that is under way: libtorch must not be cut off. */
    private static void stoppable(Runnable stop, Runnable told, Work work) throws IOException, InterruptedException {
        var done = new CountDownLatch(1);
        Thread hook = Thread.ofPlatform().unstarted(() -> {
            told.run();
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
                // The JVM is going down, and the hook has been waiting for us.
            }
        }
    }

    private void print(Map<String, Object> summary, Path directory) {
        PrintWriter print = spec.commandLine().getOut();
        if (Boolean.TRUE.equals(summary.get("stopped"))) {
            print.printf(
                    "stopped after step %s; go on with: ./fedcomuon train --resume %s%n",
                    summary.get("step"), directory);
        }
        for (String name : List.of(
                "test_accuracy",
                "test_perplexity",
                "test_loss",
                "worst_client_accuracy",
                "worst_client_loss",
                "train_loss",
                "optimizer_share")) {
            if (summary.get(name) instanceof Double value) {
                print.printf(Locale.ROOT, "%-22s %.4f%n", name, value);
            }
        }
        print.printf("%-22s %s%n", "sha256", summary.get("sha256"));
        print.println(directory.resolve("report.html"));
        print.flush();
    }
}
