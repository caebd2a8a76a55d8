package org.fedcomuon.experiment;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.device.Devices;
import org.fedcomuon.federation.CheckpointStore;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Result;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.NativeHeap;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.DivergedException;
import tools.jackson.databind.JsonNode;

/**
 * One training run with its files: configuration, metrics, checkpoints, model, summary. {@link #run} executes it;
 * {@link #stop} ends it after the current step, with a checkpoint.
 */
public final class Training {
    /**
     * Where and how to run; the result does not depend on any of it.
     *
     * @param devices by name
     * @param cluster whose member this process is; the directory is then one that all members reach
     * @param threads for kernels and for oracles
     * @param dataDirectory the user's own data files
     * @param memoryLimit the limit of the run in bytes; the available memory if empty
     * @param resume the checkpoint to resume from: a file, or a directory that may hold one
     * @param version of the program, for the summary
     */
    public record Options(
            List<String> devices,
            Optional<Cluster> cluster,
            int threads,
            Optional<Path> dataDirectory,
            OptionalLong memoryLimit,
            Optional<Path> resume,
            String version) {
        public Options {
            devices = List.copyOf(devices);
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
    private final List<Listener> listeners;
    private final Consumer<String> notes;
    private Optional<Federation> federation = Optional.empty();
    private boolean stopping;

    // Confined to the thread that evaluates.
    private Map<String, Object> last = Map.of();
    private Optional<JsonNode> earlier = Optional.empty();
    private long needed;
    private long trimmed = System.nanoTime();
    private String memory = "";

    /**
     * Prepares a run.
     *
     * @param directory the directory for its files; made after the configuration and the data have been checked
     * @param listeners receive the events of the run
     * @param notes receives lines about the data and the estimated memory
     */
    public Training(
            Configuration configuration,
            Options options,
            Path directory,
            List<Listener> listeners,
            Consumer<String> notes) {
        this.configuration = configuration;
        this.options = options;
        this.directory = directory;
        this.files = new RunFiles(directory);
        this.listeners = List.copyOf(listeners);
        this.notes = notes;
    }

    /** Returns whether a directory holds a run already, finished or not. */
    public static boolean isTaken(Path directory) {
        var files = new RunFiles(directory);
        return files.hasMetrics()
                || new CheckpointStore(files.checkpoints()).newest().isPresent();
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
            throw new ConfigurationException("--out %s is not writable; name another directory".formatted(directory));
        }
    }

    /** Makes the directory of a run and writes its configuration there, for members that read it. */
    public static void prepare(Configuration configuration, Path directory) throws IOException {
        makeDirectory(directory);
        new RunFiles(directory).writeConfig(configuration);
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
                options.devices().size(),
                this::requireMemory)) {
            Federation run = describe(task);
            notes.accept(task.data());
            notes.accept(memory);
            if (options.writes()) {
                makeDirectory(directory);
                files.deleteAbandoned();
                files.writeConfig(configuration);
            }
            announce(run);
            try {
                Result result = run.run();
                if (!options.writes()) {
                    return Map.of();
                }
                files.writeModel(
                        result.weights(),
                        Map.of(
                                "preset", configuration.text("preset"),
                                "method", configuration.methodName(),
                                "step", Long.toString(result.step()),
                                "weights_sha256", result.sha256()));
                return summary(task, Optional.of(result), "");
            } catch (DivergedException e) {
                summary(task, Optional.empty(), String.valueOf(e.getMessage()));
                throw e;
            } catch (ClientFaultException e) {
                if (e.fault().kind() == ClientFault.Kind.NOT_FINITE) { // the loss has diverged
                    summary(task, Optional.empty(), String.valueOf(e.getMessage()));
                }
                throw e;
            }
        }
    }

    private void requireMemory(RunMemory run) {
        needed = run.bytes();
        OptionalLong limit = options.memoryLimit().isPresent() ? options.memoryLimit() : RunMemory.available();
        memory = run + (limit.isPresent() ? "; %s may be used".formatted(RunMemory.gibibytes(limit.getAsLong())) : "");
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
        Federation.Builder builder = Federation.of(task.problem(), configuration.method())
                .devices(options.devices().toArray(String[]::new))
                .exchange(configuration.exchange())
                .threads(options.threads())
                .workers(options.threads())
                .iterations(configuration.iterations())
                .tau(configuration.integer("tau"))
                .seed(configuration.seed())
                .participation(configuration.number("participation"))
                .weights(task.weights())
                .onFault(configuration.policy())
                .initial(task.initial())
                .checkpoints(files.checkpoints(), configuration.integer("checkpointEvery"))
                .describe("data", task.dataHash())
                .evaluate(configuration.integer("evaluateEvery"), (step, average) -> task.evaluate(average))
                .listener(new Listener() {
                    @Override
                    public void onStep(long step) {
                        trimNowAndThen();
                    }

                    @Override
                    public void onEvaluation(Evaluation evaluation) {
                        record(evaluation);
                    }
                });
        listeners.forEach(builder::listener);
        options.cluster().ifPresent(builder::cluster);
        configuration.problem().forEach(builder::describe);
        Optional<Path> from = options.resume()
                .flatMap(path -> Files.isDirectory(path) ? new CheckpointStore(path).newest() : Optional.of(path))
                .filter(Files::exists);
        if (from.isPresent()) { // otherwise the run and its metrics start from the beginning
            long step = CheckpointStore.step(from.get());
            if (step > 0) {
                if (options.writes()) {
                    earlier = files.resumeMetrics(step);
                }
                builder.resume(from.get());
            }
        }
        try {
            return builder.build();
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
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

    private void record(Evaluation evaluation) {
        var values = new LinkedHashMap<String, Object>();
        values.put("step", evaluation.step());
        values.put("round", evaluation.round());
        values.putAll(evaluation.metrics());
        put(values, "seconds", evaluation.seconds());
        put(values, "step_seconds", evaluation.stepSeconds());
        put(values, "gradient_seconds", evaluation.gradientSeconds());
        put(values, "orthogonalize_seconds", evaluation.orthogonalizeSeconds());
        put(values, "exchange_seconds", evaluation.exchangeSeconds());
        put(values, "evaluate_seconds", evaluation.evaluateSeconds());
        optimizerShare(values).ifPresent(share -> values.put("optimizer_share", share));
        values.put("communicated_bytes", evaluation.communicatedBytes());
        values.put("gradient_evaluations", configuration.gradientEvaluations(evaluation.step()));
        last = values;
        try {
            files.addMetrics(values);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * Returns the share of the time of steps that is not spent in oracles: trackers, momentum, directions, exchange.
     */
    private static OptionalDouble optimizerShare(Map<String, Object> values) {
        double steps = seconds(values, "step_seconds");
        return steps > 0 ? OptionalDouble.of(1 - seconds(values, "gradient_seconds") / steps) : OptionalDouble.empty();
    }

    private static double seconds(Map<String, Object> values, String name) {
        return ((Number) values.get(name)).doubleValue();
    }

    /** Adds the seconds of the parts of the run before it was resumed. */
    private void put(Map<String, Object> values, String name, double seconds) {
        double before = earlier.map(line -> line.path(name).asDouble(0)).orElse(0.0);
        values.put(name, before + seconds);
    }

    private Map<String, Object> summary(NetworkTask task, Optional<Result> result, String failure) throws IOException {
        if (!options.writes()) {
            return Map.of();
        }
        var values = new LinkedHashMap<String, Object>();
        values.put("preset", configuration.text("preset"));
        values.put("method", configuration.methodName());
        values.put("seed", configuration.seed());
        values.put("orthogonalizer", configuration.text("orthogonalizer"));
        values.putAll(last);
        values.put("diverged", !failure.isEmpty());
        if (!failure.isEmpty()) {
            values.put("failure", failure);
        }
        values.put("stopped", result.map(Result::stopped).orElse(false));
        result.ifPresent(done -> {
            values.put("step", done.step());
            values.put("sha256", done.sha256());
            values.put("communicated_bytes", done.communicatedBytes());
            values.put("round_trips", done.roundTrips());
            values.put("faults", done.faults());
            values.put(
                    "wall_seconds",
                    earlier.map(line -> line.path("seconds").asDouble(0)).orElse(0.0) + done.seconds());
        });
        values.put("devices", options.devices());
        values.put("exchange", result.map(Result::exchange).orElse(configuration.text("exchange")));
        options.cluster().ifPresent(cluster -> values.put("members", cluster.members()));
        values.put("threads", options.threads());
        values.put("data", task.data());
        values.put("data_sha256", task.dataHash());
        values.put("memory_estimate_bytes", needed);
        values.put("version", options.version());
        values.put("library", Devices.libraryInfo());
        values.put("java", System.getProperty("java.vm.name") + " " + System.getProperty("java.version"));
        values.put("os", System.getProperty("os.name") + " " + System.getProperty("os.arch"));
        values.put("cores", Runtime.getRuntime().availableProcessors());
        files.writeSummary(values);
        return values;
    }
}
