package org.fedcomuon.cli;

import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.fedcomuon.dashboard.Dashboard;
import org.fedcomuon.experiment.Configuration;
import org.fedcomuon.experiment.RunRecord;
import org.fedcomuon.experiment.RunRecordException;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.federation.CheckpointStore;
import picocli.CommandLine.Option;

/** The options for the live page of a run. */
final class DashboardOptions {
    /** All users of a machine can see arguments; environment variables are private. */
    private static final String TOKEN_VARIABLE = "FEDCOMUON_DASHBOARD_TOKEN";

    private static final String ANY_PORT = "0";
    private static final int GREATEST_PORT = 65_535;
    private static final int MOST_DIGITS = 5;

    /** Entries of metrics.jsonl that are costs, not metrics; the page receives them from the run itself. */
    private static final Set<String> COSTS =
            Set.of("seconds", "optimizer_share", "communicated_bytes", "gradient_evaluations");

    @Option(
            names = "--dashboard",
            arity = "0..1",
            fallbackValue = ANY_PORT,
            paramLabel = "PORT",
            description = "Serve a live page about the run on this machine; on any free port if none is given.")
    private Optional<String> port = Optional.empty();

    @Option(
            names = "--dashboard-host",
            paramLabel = "ADDRESS",
            description = "Serve it at this address instead, to other machines: needs a token, and is not encrypted.")
    private Optional<String> host = Optional.empty();

    @Option(
            names = "--dashboard-token",
            paramLabel = "TOKEN",
            description = "The token that a browser must present, at least " + Dashboard.LEAST_TOKEN
                    + " characters; better given as " + TOKEN_VARIABLE + ", which others on this machine cannot see.")
    private Optional<String> token = Optional.empty();

    @Option(
            names = "--dashboard-keep",
            description = "Keep the page after the run until Ctrl-C. A run that fails ends at once.")
    private boolean keep;

    /**
     * Opens the live page, if one is requested.
     *
     * @param directory the directory of the run
     * @param resumed whether the run is resumed: then the page shows its earlier metrics too
     */
    Optional<Dashboard> open(Configuration configuration, Path directory, boolean resumed) {
        if (port.isEmpty()) {
            return Optional.empty();
        }
        Dashboard.Builder builder = Dashboard.builder()
                .port(portNumber(port.get()))
                .title(String.valueOf(directory.toAbsolutePath().normalize().getFileName()))
                .fact("preset", configuration.text("preset"))
                .iterations(configuration.iterations());
        host.ifPresent(name -> builder.host(address(name)));
        token.or(() -> Optional.ofNullable(System.getenv(TOKEN_VARIABLE)).filter(text -> host.isPresent()))
                .ifPresent(builder::token);
        if (resumed) {
            addEarlier(builder, directory);
        }
        try {
            return Optional.of(builder.open());
        } catch (IllegalArgumentException e) {
            throw new UsageException(
                    "--dashboard: %s (--dashboard-token, or %s)".formatted(e.getMessage(), TOKEN_VARIABLE), e);
        } catch (UncheckedIOException e) {
            throw new UsageException("--dashboard: %s".formatted(e.getMessage()), e);
        }
    }

    /** Returns at once unless the page is to be kept; otherwise on Ctrl-C, on a kill, or when the page has ended. */
    void keep(Dashboard dashboard, PrintWriter err) throws InterruptedException {
        if (!keep || !dashboard.isOpen()) {
            return;
        }
        var end = new CountDownLatch(1);
        try {
            Runtime.getRuntime().addShutdownHook(Thread.ofPlatform().unstarted(end::countDown));
        } catch (IllegalStateException e) {
            return; // The JVM is already shutting down: the run was stopped by the same Ctrl-C.
        }
        err.println("dashboard: stays until Ctrl-C");
        err.flush();
        while (dashboard.isOpen() && !end.await(1, TimeUnit.SECONDS)) {
            // It stays.
        }
    }

    /** Checks the options before the run starts. */
    void check() {
        if (port.isEmpty()) {
            if (host.isPresent() || token.isPresent() || keep) {
                throw new UsageException("--dashboard-%s requires --dashboard"
                        .formatted(host.isPresent() ? "host" : token.isPresent() ? "token" : "keep"));
            }
            return;
        }
        portNumber(port.get());
    }

    private static int portNumber(String text) {
        boolean digits =
                !text.isEmpty() && text.length() <= MOST_DIGITS && text.chars().allMatch(c -> c >= '0' && c <= '9');
        int number = digits ? Integer.parseInt(text) : Integer.MAX_VALUE;
        if (number > GREATEST_PORT) {
            throw new UsageException("--dashboard %s: not a port from 0 to %d; name the preset before --dashboard"
                    .formatted(text, GREATEST_PORT));
        }
        return number;
    }

    private static InetAddress address(String name) {
        try {
            return InetAddress.getByName(name);
        } catch (UnknownHostException e) {
            throw new UsageException(
                    "--dashboard-host %s: no such address; 0.0.0.0 stands for all addresses of this machine"
                            .formatted(name),
                    e);
        }
    }

    /** Adds the metrics up to the checkpoint that the run is resumed from. */
    private static void addEarlier(Dashboard.Builder builder, Path directory) {
        Optional<Path> checkpoint = Training.lastCheckpoint(directory);
        if (checkpoint.isEmpty()) {
            return;
        }
        long step = CheckpointStore.step(checkpoint.get());
        try {
            RunRecord.read(directory).evaluations().stream()
                    .filter(evaluation -> evaluation.step() <= step)
                    .forEach(evaluation -> builder.earlier(evaluation.step(), metrics(evaluation)));
        } catch (RunRecordException e) {
            throw new UsageException(String.valueOf(e.getMessage()), e);
        }
    }

    private static Map<String, Double> metrics(RunRecord.Evaluation evaluation) {
        var metrics = new LinkedHashMap<>(evaluation.metrics());
        metrics.keySet().removeIf(name -> name.endsWith("_seconds") || COSTS.contains(name));
        return metrics;
    }
}
