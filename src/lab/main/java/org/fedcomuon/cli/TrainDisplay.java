package org.fedcomuon.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import org.fedcomuon.dashboard.Dashboard;
import org.fedcomuon.experiment.Configuration;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.experiment.TrainingEngine;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.RunLock;
import picocli.CommandLine;

/**
 * Shows a training run: progress, live page, report, final metrics. In a process that does not lead the run, it is
 * never opened and shows nothing.
 */
final class TrainDisplay {
    private final PrintWriter out;
    private final PrintWriter err;
    private final DashboardOptions dashboardOptions;
    private final boolean quiet;
    private volatile Optional<Path> directory = Optional.empty(); // empty until it is opened
    private volatile Optional<Progress> progress = Optional.empty();
    private volatile Optional<Dashboard> dashboard = Optional.empty();

    TrainDisplay(CommandLine commandLine, DashboardOptions dashboardOptions, boolean quiet) {
        this.out = commandLine.getOut();
        this.err = commandLine.getErr();
        this.dashboardOptions = dashboardOptions;
        this.quiet = quiet;
    }

    TrainingEngine.View open(Configuration configuration, RunLock lock, boolean resumed) {
        Path runDirectory = lock.directory();
        Consumer<String> notes = quiet ? note -> {} : this::line;
        lock.notes().forEach(notes);
        dashboard = dashboardOptions.open(configuration, runDirectory, resumed);
        // The port may have been chosen automatically.
        dashboard.ifPresent(open -> line("dashboard: " + open.uri()));
        directory = Optional.of(runDirectory);
        var listeners = new ArrayList<Listener>(dashboard.stream().toList());
        if (!quiet) {
            progress = Optional.of(Progress.ofRun(err, configuration.iterations()));
            listeners.addAll(progress.stream().toList());
        }
        return new TrainingEngine.View(runDirectory, Optional.of(lock), listeners, notes);
    }

    private void line(String text) {
        err.println(text);
        err.flush();
    }

    /** Names the last checkpoint, because the processes of a cluster may be ended before the next one is written. */
    void nameCheckpoint() {
        directory.ifPresent(run -> line("fedcomuon: ending; " + Training.afterwards(run)));
    }

    /** Prints the last metrics of a run that has ended, and where its page is. */
    void report() throws IOException {
        endProgress();
        if (directory.isPresent()) {
            Path run = directory.get();
            print(Training.summaryOf(run), run);
            out.println(run.resolve("report.html"));
            out.flush();
        }
    }

    /** Waits, if the live page is to be kept after the run. */
    void keep() throws InterruptedException {
        if (dashboard.isPresent()) {
            dashboardOptions.keep(dashboard.get(), err);
        }
    }

    /** Shows that the run has failed or could not start. May be called by any thread. */
    void fail(Throwable failure) {
        endProgress();
        dashboard.ifPresent(open -> open.onFailure(failure));
    }

    private void endProgress() {
        progress.ifPresent(Progress::end);
        progress = Optional.empty();
    }

    private void print(Map<String, Object> summary, Path run) {
        if (Boolean.TRUE.equals(summary.get("stopped"))) {
            out.printf(
                    "stopped after step %s; continue with: ./fedcomuon train --resume %s%n", summary.get("step"), run);
        }
        if (summary.get("stopped_early") instanceof String reason) {
            out.printf("ended early, after step %s: %s%n", summary.get("step"), reason);
        }
        for (String name : List.of(
                "test_accuracy",
                "test_perplexity",
                "test_auc",
                "worst_client_auc",
                "test_objective",
                "solution_distance",
                "excess_objective",
                "test_loss",
                "worst_client_accuracy",
                "worst_client_loss",
                "train_loss",
                "validation_accuracy",
                "validation_perplexity",
                "validation_auc",
                "validation_loss",
                "validation_objective",
                "optimizer_share")) {
            if (summary.get(name) instanceof Double value) {
                out.printf(Locale.ROOT, "%-22s %.4f%n", name, value);
            }
        }
        out.printf("%-22s %s%n", "sha256", summary.get("sha256"));
    }

    void close() {
        dashboard.ifPresent(Dashboard::close);
    }
}
