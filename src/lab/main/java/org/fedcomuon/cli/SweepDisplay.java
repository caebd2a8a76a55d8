package org.fedcomuon.cli;

import java.io.PrintWriter;
import java.util.Locale;
import org.fedcomuon.sweep.Sweep;
import org.fedcomuon.sweep.Trial;

/**
 * Shows a sweep on standard error: on a terminal a bar of all steps with rate and time left, and everywhere a line for
 * each trial that ends.
 */
final class SweepDisplay implements Sweep.Listener {
    private final PrintWriter err;
    private final boolean quiet;
    private Progress progress;
    private String metric = "";
    private int trials;
    private int existing;
    private boolean begun;
    private long steps; // as of the last report

    SweepDisplay(PrintWriter err, boolean quiet) {
        this.err = err;
        this.quiet = quiet;
        progress = Progress.ofRun(err, 1);
    }

    @Override
    public void onNote(String note) {
        if (!quiet) {
            progress.onNote(note);
        }
    }

    @Override
    public void onPlan(int planned, long planSteps, String chosenBy) {
        metric = chosenBy;
        trials = planned;
        progress = Progress.ofRun(err, planSteps);
    }

    @Override
    public void onSteps(long done) {
        if (!quiet && begun) {
            progress.onStep(done);
        }
        steps = done;
    }

    @Override
    public void onBegin() {
        if (quiet || begun) {
            return;
        }
        begun = true;
        if (existing > 0) {
            progress.onNote("%d of %d trials exist already".formatted(existing, trials));
        }
        progress.startAt(steps);
    }

    @Override
    public void onTrial(Trial trial, boolean isNew, int ended) {
        if (!isNew) {
            existing++;
        } else if (!quiet) {
            progress.onPart(
                    "%s: %s".formatted(trial.label(), result(trial)), "%d of %d trials".formatted(ended, trials));
        }
    }

    private String result(Trial trial) {
        return trial.state() == Trial.State.DONE
                ? String.format(
                        Locale.ROOT,
                        "%s%.1f s",
                        trial.metric(metric).isPresent()
                                ? String.format(
                                        Locale.ROOT,
                                        "%s %.4f, ",
                                        metric,
                                        trial.metric(metric).getAsDouble())
                                : "",
                        trial.seconds())
                : trial.state().name().toLowerCase(Locale.ROOT) + ": " + trial.reason();
    }

    /** Called when the sweep has ended, however it did. */
    void end() {
        if (begun) {
            progress.end();
        } else if (!quiet && trials > 0 && existing == trials) {
            progress.onNote("all %d trials exist already".formatted(trials));
        }
    }
}
