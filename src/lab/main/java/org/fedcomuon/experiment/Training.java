package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.device.Devices;
import org.fedcomuon.federation.CheckpointStore;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.RunFiles;
import org.fedcomuon.federation.RunLock;
import org.fedcomuon.federation.RunRecorder;
import org.fedcomuon.federation.Start;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.NativeHeap;
import org.fedcomuon.observe.TensorBoardEvents;

/**
 * One training run with its files: configuration, metrics, checkpoints, model, summary. {@link #run} executes it;
 * {@link #stop} ends it after the current step, with a checkpoint.
 *
 * <p>Not thread-safe, except for {@link #stop}.
 */
public final class Training {
    /**
     * Where and how to run; the result does not depend on any of it.
     *
     * <p>Immutable.
     *
     * @param devices by name
     * @param cluster whose member this process is; the directory is then one that all members reach
     * @param threads for kernels and for oracles
     * @param dataDirectory the user's own data files
     * @param memoryLimit the limit of the run in bytes; the available memory if empty
     * @param resume the checkpoint to resume from: a file, or a directory that may hold one
     * @param tensorBoard whether to write event files
     * @param version of the program, for the summary
     */
    public record Options(
            List<String> devices,
            Optional<Cluster> cluster,
            int threads,
            Optional<Path> dataDirectory,
            OptionalLong memoryLimit,
            Optional<Path> resume,
            boolean tensorBoard,
            String version) {
        public Options {
            devices = List.copyOf(devices);
        }

        /** Returns what each of several runs at a time has. */
        Options share(int runs) {
            OptionalLong memory = memoryLimit.isPresent() || runs == 1 ? memoryLimit : RunMemory.available();
            return new Options(
                    devices,
                    cluster,
                    Math.max(1, threads / runs),
                    dataDirectory,
                    memory.isPresent() ? OptionalLong.of(memory.getAsLong() / runs) : memory,
                    resume,
                    tensorBoard,
                    version);
        }

        /** Returns the number of processes that have clients. */
        int members() {
            return cluster.map(Cluster::members).orElse(1);
        }

        /** Returns whether this process writes the files: in a cluster, the first member does. */
        boolean writes() {
            return cluster.map(Cluster::self).orElse(0) == 0;
        }
    }

    /** Long enough to make the cost of the page faults that it causes negligible. */
    private static final long BETWEEN_TRIMS = TimeUnit.SECONDS.toNanos(60);

    private final Configuration configuration;
    private final Options options;
    private final Path directory;
    private final RunFiles files;
    private final Optional<RunLock> lock;
    private final List<Listener> listeners;
    private final Consumer<String> notes;
    private Optional<Federation> federation = Optional.empty();
    private boolean stopping;

    // Confined to the thread that evaluates.
    private long needed;
    private long trimmed = System.nanoTime();
    private String memory = "";

    /**
     * Prepares a run.
     *
     * @param directory the directory for its files; made after the configuration and the data have been checked
     * @param lock of the directory, which the caller closes; if empty, the run takes one itself when it starts, unless
     *     its cluster has it
     * @param listeners receive the events of the run
     * @param notes receives lines about the data and the estimated memory
     */
    public Training(
            Configuration configuration,
            Options options,
            Path directory,
            Optional<RunLock> lock,
            List<Listener> listeners,
            Consumer<String> notes) {
        this.configuration = configuration;
        this.options = options;
        this.directory = directory;
        this.files = new RunFiles(directory);
        this.lock = lock;
        this.listeners = List.copyOf(listeners);
        this.notes = notes;
    }

    /** Returns whether a directory holds a run already, finished or not. */
    public static boolean isTaken(Path directory) {
        return new RunFiles(directory).areTaken();
    }

    /** Returns whether the run in a directory has event files, which it continues when it is resumed. */
    public static boolean hasTensorBoard(Path directory) {
        return Files.isDirectory(new RunFiles(directory).tensorBoard());
    }

    /** Returns the directory of the checkpoints of the run in a directory. */
    public static Path checkpoints(Path directory) {
        return new RunFiles(directory).checkpoints();
    }

    /** Returns the file of the checkpoint that the run in a directory writes after a step. */
    public static Path checkpoint(Path directory, long step) {
        return new CheckpointStore(checkpoints(directory)).file(step);
    }

    /** Returns the newest checkpoint of the run in a directory. */
    public static Optional<Path> lastCheckpoint(Path directory) {
        return new CheckpointStore(checkpoints(directory)).newest();
    }

    /** Returns what to say, when a run in a directory ends unasked, about how it can go on. */
    public static String afterwards(Path directory) {
        return lastCheckpoint(directory)
                .map(file -> "the last checkpoint is %s, --resume %s continues from it".formatted(file, directory))
                .orElse("there is no checkpoint yet");
    }

    /** Returns the configuration that a run in a directory was started with. */
    public static Configuration configurationOf(Path directory, Map<String, String> changes) {
        Path config = new RunFiles(directory).config();
        if (!Files.exists(config)) {
            throw new ConfigurationException("%s holds no run: there is no config.yaml in it".formatted(directory));
        }
        return Configuration.of(Preset.read(config), changes);
    }

    /**
     * Makes a directory for results, unless it exists.
     *
     * @throws ConfigurationException when it cannot be made, or is not writable
     */
    public static void makeDirectory(Path directory) {
        try {
            Files.createDirectories(directory);
        } catch (IOException e) {
            throw new ConfigurationException(
                    "--out %s cannot be made: %s".formatted(directory, MalformedFileException.reason(e)), e);
        }
        if (!Files.isWritable(directory)) {
            throw new ConfigurationException("the directory %s is not writable".formatted(directory));
        }
    }

    /**
     * Takes the lock of the directory of a run, and makes the directory.
     *
     * @throws ConfigurationException when it cannot be made, or is not writable
     * @throws RunLock.InUseException when another run has it
     */
    public static RunLock lock(Path directory) throws IOException {
        try {
            return RunLock.take(directory);
        } catch (IOException e) {
            makeDirectory(directory); // says what is wrong with it, if it is the directory
            throw e;
        }
    }

    /**
     * Checks the files that a resumed run continues, and that its report is made of when it has ended, before it
     * starts. A run without a checkpoint begins anew, and replaces them.
     *
     * @throws ConfigurationException naming the file and the line
     */
    public static void requireWhole(Path directory) throws IOException {
        long step = lastCheckpoint(directory).map(CheckpointStore::step).orElse(0L);
        if (step == 0) {
            return;
        }
        try {
            new RunFiles(directory).resume(step);
            RunRecord.requireWhole(directory);
        } catch (MalformedFileException | RunRecordException e) {
            String message = String.valueOf(e.getMessage());
            throw new ConfigurationException(
                    "--resume %s: %s; %s, then resume again"
                            .formatted(
                                    directory,
                                    message,
                                    message.contains(": line ") ? "delete the line" : "restore or delete the file"),
                    e);
        }
    }

    /**
     * Reads the data of runs and divides them, as the runs would, to find what is wrong with them beforehand. Data that
     * several runs have in common are read once.
     *
     * @param configurations at least one
     * @param dataDirectory the user's own data files
     * @return the metrics of validation examples that all runs would have; none if an objective has none
     * @throws ConfigurationException with all mistakes that are found
     */
    public static List<ValidationMetric> validationMetrics(
            List<Configuration> configurations, Optional<Path> dataDirectory) {
        var different = new LinkedHashMap<Map<String, String>, Configuration>();
        for (Configuration configuration : configurations) {
            var problem = new LinkedHashMap<>(configuration.problem());
            problem.put("clients", configuration.values().getOrDefault("clients", ""));
            different.putIfAbsent(problem, configuration);
        }
        var mistakes = new ArrayList<String>();
        var found = new ArrayList<List<ValidationMetric>>();
        for (Configuration configuration : different.values()) {
            try {
                found.add(NetworkTask.validationMetrics(configuration, dataDirectory));
            } catch (ConfigurationException e) {
                mistakes.addAll(e.lines());
            }
        }
        if (!mistakes.isEmpty()) {
            throw ConfigurationException.of(configurations.getFirst().text("preset"), mistakes);
        }
        return found.getFirst().stream()
                .filter(metric -> found.stream().allMatch(list -> list.contains(metric)))
                .toList();
    }

    /** Returns the memory in bytes that this process may use; empty where the system does not say. */
    public static OptionalLong availableMemory() {
        return RunMemory.available();
    }

    /** Makes the directory of a run and writes its configuration there, for members that read it. */
    public static void prepare(Configuration configuration, Path directory) throws IOException {
        makeDirectory(directory);
        new RunFiles(directory).writeConfig(configuration.values());
    }

    /** Deletes the files of {@link #prepare} for a run that did not start; other files are kept. */
    public static void discard(Path directory) throws IOException {
        new RunFiles(directory).deleteUnused();
    }

    /** Returns the summary that the run in a directory has left. */
    public static Map<String, Object> summaryOf(Path directory) throws IOException {
        return new RunFiles(directory).readSummary();
    }

    /**
     * Runs to the end, or until {@link #stop}.
     *
     * @return the summary, as in the file; empty for members of a cluster that write none
     * @throws ConfigurationException when the data are missing, or the run needs more memory than available
     * @throws IOException when data cannot be read, or a file cannot be written
     */
    public Map<String, Object> run() throws IOException, InterruptedException {
        for (String device : options.devices()) {
            Devices.open(device).close(); // so that a mistyped name is reported before data are read
        }
        try (var task = new NetworkTask(
                configuration,
                options.dataDirectory(),
                options.threads(),
                options.members(),
                options.devices().size(),
                this::requireMemory)) {
            Federation run = describe(task);
            notes.accept(task.data());
            notes.accept(memory);
            if (options.writes()) {
                makeDirectory(directory);
            }
            announce(run);
            run.run();
            return options.writes() ? files.readSummary() : Map.of();
        }
    }

    private void requireMemory(RunMemory run) {
        needed = run.bytes();
        OptionalLong limit = options.memoryLimit().isPresent() ? options.memoryLimit() : RunMemory.available();
        memory = (options.members() > 1 ? "each of %d members: ".formatted(options.members()) : "")
                + run
                + (limit.isPresent() ? "; %s may be used".formatted(RunMemory.gibibytes(limit.getAsLong())) : "");
        if (limit.isPresent() && run.bytes() > limit.getAsLong()) {
            throw new ConfigurationException(
                    ("this run needs %s, but only %s %s; take fewer clients, a smaller batch or model, fewer threads,"
                                    + " or a method with fewer variables")
                            .formatted(
                                    run,
                                    RunMemory.gibibytes(limit.getAsLong()),
                                    options.memoryLimit().isPresent() ? "are allowed" : "are available"));
        }
    }

    private Federation describe(NetworkTask task) throws IOException {
        Optional<EarlyStopping> early = earlyStopping(task);
        Federation.Builder builder = Federation.of(task.problem(), configuration.method())
                .devices(options.devices().toArray(String[]::new))
                .exchange(configuration.exchange())
                .threads(options.threads())
                .workers(options.threads())
                .iterations(configuration.iterations())
                .tau(configuration.integer("tau"))
                .seed(configuration.seed())
                .cohort(configuration.cohort(task.problem().clients()))
                .weights(task.weights())
                .onFault(configuration.policy())
                .initial(task.initial())
                .checkpoints(files.checkpoints(), configuration.integer("checkpointEvery"))
                .describe("data", task.dataHash())
                .evaluate(configuration.integer("evaluateEvery"), task)
                .listener(new Listener() {
                    @Override
                    public void onStart(Start start) {
                        if (start.keptBytes() > 0) {
                            notes.accept("%d of %d clients in a round; what the others keep may take %s of the disk"
                                    .formatted(
                                            start.cohort(), start.clients(), RunMemory.gibibytes(start.keptBytes())));
                        }
                    }

                    @Override
                    public void onStep(long step) {
                        trimNowAndThen();
                    }
                });
        if (options.writes()) {
            builder.listener(new RunRecorder(
                    directory,
                    configuration.values(),
                    () -> facts(task, early),
                    step -> Map.of(
                            "gradient_evaluations",
                            configuration.gradientEvaluations(
                                    step, task.problem().clients()))));
            if (options.tensorBoard()) {
                builder.listener(new TensorBoardEvents(files.tensorBoard(), configuration.values()));
            }
        }
        if (configuration.text("sampling").equals("examples")) {
            builder.probabilities(task.sizes());
        }
        early.ifPresent(builder::listener);
        lock.ifPresent(builder::lock);
        listeners.forEach(builder::listener);
        options.cluster().ifPresent(builder::cluster);
        configuration.problem().forEach(builder::describe);
        configuration
                .chosen(ModelChoice.ALL)
                .sha256(configuration)
                .ifPresent(sha256 -> builder.describe("model_sha256", sha256));
        Optional<Path> from = options.resume()
                .flatMap(path -> Files.isDirectory(path) ? new CheckpointStore(path).newest() : Optional.of(path))
                .filter(Files::exists);
        if (from.isPresent()) { // otherwise the run and its metrics start from the beginning
            if (CheckpointStore.step(from.get()) > 0) {
                builder.resume(from.get());
                early.ifPresent(watch -> watch.resume(directory, CheckpointStore.step(from.get())));
            }
        }
        try {
            return builder.build();
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
    }

    private Optional<EarlyStopping> earlyStopping(NetworkTask task) {
        if (!configuration.has(Configuration.EARLY_STOPPING.name())) {
            return Optional.empty();
        }
        if (options.cluster().isPresent()) {
            throw new ConfigurationException(
                    "earlyStopping with --cluster: members hear of it a few steps later, so that the result would depend"
                            + " on their number; leave one of the two out");
        }
        return Optional.of(
                new EarlyStopping(configuration, task.validationMetrics().getFirst(), this::stop));
    }

    /**
     * Trims the native heap, which would otherwise grow for hours, because long-lived tensors lie between short-lived
     * ones.
     */
    private void trimNowAndThen() {
        long now = System.nanoTime();
        if (now - trimmed > BETWEEN_TRIMS) {
            trimmed = now;
            NativeHeap.trim();
        }
    }

    private synchronized void announce(Federation run) {
        federation = Optional.of(run);
        if (stopping) {
            run.stop();
        }
    }

    /** Ends the run after the current step, with a checkpoint. May be called by any thread at any time. */
    public synchronized void stop() {
        stopping = true;
        federation.ifPresent(Federation::stop);
    }

    /** Returns what the summary says about the data and about where the run took place. */
    private Map<String, Object> facts(NetworkTask task, Optional<EarlyStopping> early) {
        var values = new LinkedHashMap<String, Object>();
        options.cluster().ifPresent(cluster -> values.put("members", cluster.members()));
        values.put("threads", options.threads());
        values.put("data", task.data());
        values.put("data_sha256", task.dataHash());
        values.put("split", task.split());
        if (task.validationExamples() > 0) {
            values.put("validation_examples", task.validationExamples());
        }
        values.put("memory_estimate_bytes", needed);
        values.put("version", options.version());
        values.put("library", Devices.libraryInfo());
        early.ifPresent(watch -> values.putAll(watch.facts()));
        return values;
    }
}
