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
import org.fedcomuon.internal.NativeHeap;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.DivergedException;
import tools.jackson.databind.JsonNode;

/**
 * One training run with its files: configuration, metrics, checkpoints, model, summary. {@link #run} does it,
 * {@link #stop} ends it after the step it is in, with a checkpoint.
 */
public final class Training {
    /**
     * Where and how, none of which changes a bit of the result.
     *
     * @param devices by name
     * @param cluster whose member this process is; the directory is then one that all members reach
     * @param threads for kernels and for oracles
     * @param dataDirectory a user's own data files
     * @param memoryLimit bytes that the run may take; what is available if empty
     * @param resume the checkpoint to go on from: a file, or a directory that may hold one
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

        /** Who writes files: of a cluster, the first member. */
        boolean writes() {
            return cluster.map(Cluster::self).orElse(0) == 0;
        }
    }

    /** Rare enough that the page faults it causes do not show. */
    private static final long BETWEEN_TRIMS = TimeUnit.SECONDS.toNanos(60);

    private final Configuration configuration;
    private final Options options;
    private final RunFiles files;
    private final Listener listener;
    private final Consumer<String> notes;
    private Optional<Federation> federation = Optional.empty();
    private boolean stopping;

    // Of the thread that evaluates.
    private Map<String, Object> last = Map.of();
    private Optional<JsonNode> earlier = Optional.empty();
    private long needed;
    private long trimmed = System.nanoTime();
    private String memory = "";

    /**
     * Prepares a run.
     *
     * @param directory where its files go
     * @param listener hears what it does
     * @param notes hears, in lines, what it found and what it will take
     */
    public Training(
            Configuration configuration, Options options, Path directory, Listener listener, Consumer<String> notes) {
        this.configuration = configuration;
        this.options = options;
        this.files = new RunFiles(directory);
        this.listener = listener;
        this.notes = notes;
    }

    /** Whether a directory holds a run already, finished or not. */
    public static boolean isTaken(Path directory) {
        var files = new RunFiles(directory);
        return files.hasMetrics()
                || new CheckpointStore(files.checkpoints()).newest().isPresent();
    }

    /** Where a run in a directory has its checkpoints. */
    public static Path checkpoints(Path directory) {
        return new RunFiles(directory).checkpoints();
    }

    /** What the checkpoint that a run in a directory leaves after a step is called. */
    public static Path checkpoint(Path directory, long step) {
        return new CheckpointStore(checkpoints(directory)).file(step);
    }

    /** The newest checkpoint of the run in a directory. */
    public static Optional<Path> lastCheckpoint(Path directory) {
        return new CheckpointStore(checkpoints(directory)).newest();
    }

    /** The configuration that a run in a directory was started with. */
    public static Configuration configurationOf(Path directory, Map<String, String> changes) {
        Path config = new RunFiles(directory).config();
        if (!Files.exists(config)) {
            throw new ConfigurationException("%s holds no run: there is no config.yaml in it".formatted(directory));
        }
        return Configuration.of(Preset.read(config), changes);
    }

    /** Writes down what is to be run in a directory, for members that read it there. */
    public static void writeConfiguration(Configuration configuration, Path directory) throws IOException {
        new RunFiles(directory).writeConfig(configuration);
    }

    /** The summary that the run in a directory has left. */
    public static Map<String, Object> summaryOf(Path directory) throws IOException {
        return new RunFiles(directory).readSummary();
    }

    /**
     * Runs to the end, or until {@link #stop}.
     *
     * @return the summary, as it is in the file; empty from members of a cluster that write none
     * @throws ConfigurationException when the data are not there, or the run needs more memory than there is
     * @throws IOException when data cannot be read, or a file not written
     */
    public Map<String, Object> run() throws IOException, InterruptedException {
        for (String device : options.devices()) {
            Devices.open(device).close(); // whoever mistypes one need not wait for the data
        }
        try (Task task = Task.of(
                configuration,
                options.dataDirectory(),
                options.threads(),
                options.devices().size(),
                this::requireMemory)) {
            Federation run = describe(task);
            notes.accept(task.data());
            notes.accept(memory);
            if (options.writes()) {
                Files.createDirectories(files.directory());
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
                if (e.fault().kind() == ClientFault.Kind.NOT_FINITE) { // how divergence shows in a loss
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

    private Federation describe(Task task) throws IOException {
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
                })
                .listener(listener);
        options.cluster().ifPresent(builder::cluster);
        configuration.problem().forEach(builder::describe);
        Optional<Path> from = options.resume()
                .flatMap(path -> Files.isDirectory(path) ? new CheckpointStore(path).newest() : Optional.of(path))
                .filter(Files::exists);
        if (from.isPresent()) { // or it begins anew, and so do its metrics
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

    /** Long-lived and short-lived tensors among each other let the heap grow for hours. */
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

    /** Ends the run after the step it is in, with a checkpoint. From any thread, at any time. */
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

    /** Of the time that steps took, what was not the oracles': trackers, momentum, directions, exchange. */
    private static OptionalDouble optimizerShare(Map<String, Object> values) {
        double steps = seconds(values, "step_seconds");
        return steps > 0 ? OptionalDouble.of(1 - seconds(values, "gradient_seconds") / steps) : OptionalDouble.empty();
    }

    private static double seconds(Map<String, Object> values, String name) {
        return ((Number) values.get(name)).doubleValue();
    }

    /** Seconds add up over the parts of a run that was interrupted. */
    private void put(Map<String, Object> values, String name, double seconds) {
        double before = earlier.map(line -> line.path(name).asDouble(0)).orElse(0.0);
        values.put(name, before + seconds);
    }

    private Map<String, Object> summary(Task task, Optional<Result> result, String failure) throws IOException {
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
