package org.fedcomuon.federation;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.function.LongFunction;
import java.util.function.Supplier;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.format.AtomicFile;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.DivergedException;

/**
 * Writes what a run leaves in a directory, as {@link RunFiles} describes it: its settings when it starts, a line per
 * evaluation, and the model, a summary and a page when it ends. {@link Federation.Builder#record} adds one.
 *
 * <p>Not thread-safe; the listener of one run.
 */
public final class RunRecorder implements Listener {
    private final Path directory;
    private final RunFiles files;
    private final Map<String, String> config;
    private final Supplier<Map<String, Object>> facts;
    private final LongFunction<Map<String, Object>> extra;
    private Optional<Start> start = Optional.empty();
    private Map<String, Object> earlier = Map.of();
    private Map<String, Object> last = Map.of();
    private final List<String> warnings = new ArrayList<>();

    /**
     * Makes a page about a run from its files. Providers are found by {@link ServiceLoader}; the lab has one.
     *
     * <p>Called by the thread that ends a run.
     */
    public interface Page {
        /**
         * Returns the page.
         *
         * @param directory of the run
         */
        String html(Path directory) throws IOException;
    }

    /**
     * Creates a recorder.
     *
     * @param directory made when the run starts, unless it exists
     * @param config the settings, in order
     * @param facts returns entries of the summary, such as versions, when the run has ended; they replace others of the
     *     same name
     * @param extra returns further entries of an evaluation's line, by the number of steps done
     */
    public RunRecorder(
            Path directory,
            Map<String, String> config,
            Supplier<Map<String, Object>> facts,
            LongFunction<Map<String, Object>> extra) {
        this.directory = directory;
        this.files = new RunFiles(directory);
        this.config = new LinkedHashMap<>(config);
        this.facts = facts;
        this.extra = extra;
    }

    @Override
    public void onWarning(String warning) {
        warnings.add(warning);
    }

    @Override
    public void onStart(Start begun) {
        start = Optional.of(begun);
        attempt(() -> {
            Files.createDirectories(directory);
            files.deleteAbandoned();
            files.writeConfig(config);
            if (begun.step() > 0) {
                earlier = files.resume(begun.step()).orElse(Map.of());
            }
        });
    }

    @Override
    public void onEvaluation(Evaluation evaluation) {
        var values = new LinkedHashMap<String, Object>();
        values.put("step", evaluation.step());
        values.put("round", evaluation.round());
        values.putAll(evaluation.metrics());
        values.put("seconds", total("seconds", evaluation.seconds()));
        double steps = total("step_seconds", evaluation.stepSeconds());
        double gradients = total("gradient_seconds", evaluation.gradientSeconds());
        values.put("step_seconds", steps);
        values.put("gradient_seconds", gradients);
        values.put("orthogonalize_seconds", total("orthogonalize_seconds", evaluation.orthogonalizeSeconds()));
        values.put("exchange_seconds", total("exchange_seconds", evaluation.exchangeSeconds()));
        values.put("evaluate_seconds", total("evaluate_seconds", evaluation.evaluateSeconds()));
        if (steps > 0) { // the share of trackers, momentum, directions and exchange
            values.put("optimizer_share", 1 - gradients / steps);
        }
        values.put("communicated_bytes", evaluation.communicatedBytes());
        values.putAll(extra.apply(evaluation.step()));
        last = values;
        attempt(() -> {
            if (!evaluation.clients().isEmpty()) {
                files.addClients(rows(evaluation));
            }
            files.addMetrics(values); // last, so that a line is there only when all of the evaluation is
        });
    }

    private static List<Map<String, Object>> rows(Evaluation evaluation) {
        var rows = new ArrayList<Map<String, Object>>();
        for (int k = 0; k < evaluation.clients().size(); k++) {
            var row = new LinkedHashMap<String, Object>();
            row.put("step", evaluation.step());
            row.put("client", k);
            row.putAll(evaluation.clients().get(k));
            rows.add(row);
        }
        return rows;
    }

    /** Adds the seconds of the parts of the run before it was resumed. */
    private double total(String name, double seconds) {
        return seconds + (earlier.get(name) instanceof Number before ? before.doubleValue() : 0);
    }

    @Override
    public void onEnd(Result result) {
        attempt(() -> {
            var metadata = new LinkedHashMap<String, String>();
            for (String name : List.of("preset", "method")) {
                Optional.ofNullable(config.get(name)).ifPresent(value -> metadata.put(name, value));
            }
            metadata.put("step", Long.toString(result.step()));
            metadata.put("weights_sha256", result.sha256());
            result.weights().save(files.model(), metadata);
            var end = new LinkedHashMap<String, Object>();
            end.put("diverged", false);
            end.put("stopped", result.stopped());
            end.put("step", result.step());
            end.put("sha256", result.sha256());
            end.put("communicated_bytes", result.communicatedBytes());
            end.put("round_trips", result.roundTrips());
            end.put("exchanged_bytes", result.exchangedBytes());
            end.put("exchanges", result.exchanges());
            end.put("faults", result.faults());
            end.put("wall_seconds", total("seconds", result.seconds()));
            end.put("exchange", result.exchange());
            finish(end);
        });
    }

    /** A run that diverged has a result, which is this one; after any other failure it may be resumed. */
    @Override
    public void onFailure(Throwable failure) {
        boolean diverged = failure instanceof DivergedException
                || (failure instanceof ClientFaultException e && e.fault().kind() == ClientFault.Kind.NOT_FINITE);
        if (diverged && start.isPresent()) {
            var end = new LinkedHashMap<String, Object>();
            end.put("diverged", true);
            end.put("failure", String.valueOf(failure.getMessage()));
            end.put("stopped", false);
            attempt(() -> finish(end));
        }
    }

    private void finish(Map<String, Object> end) throws IOException {
        var values = new LinkedHashMap<String, Object>();
        for (String name : List.of("preset", "method", "seed", "orthogonalizer")) {
            if (name.equals("seed")) {
                start.ifPresent(begun -> values.put(name, begun.seed()));
            } else if (config.containsKey(name)) {
                values.put(name, config.get(name));
            }
        }
        values.putAll(last);
        values.putAll(end);
        start.ifPresent(begun -> values.put("devices", begun.devices()));
        if (!warnings.isEmpty()) {
            values.put("warnings", warnings);
        }
        values.putAll(facts.get());
        values.put("java", System.getProperty("java.vm.name") + " " + System.getProperty("java.version"));
        values.put("os", System.getProperty("os.name") + " " + System.getProperty("os.arch"));
        values.put("cores", Runtime.getRuntime().availableProcessors());
        files.writeSummary(values);
        Optional<Page> page = ServiceLoader.load(Page.class).findFirst();
        if (page.isPresent()) {
            writePage(page.get());
        }
    }

    private void writePage(Page page) throws IOException {
        try {
            AtomicFile.write(files.report(), page.html(directory));
        } catch (IOException | RuntimeException e) {
            String reason =
                    e instanceof IOException io ? MalformedFileException.reason(io) : String.valueOf(e.getMessage());
            var explained = new FileSystemException(
                    files.report().toString(),
                    null,
                    "%s; summary and model are complete, and './fedcomuon report %s' writes the page later"
                            .formatted(reason, directory));
            explained.initCause(e);
            throw explained;
        }
    }

    private interface Work {
        void run() throws IOException;
    }

    private static void attempt(Work work) {
        try {
            work.run();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
