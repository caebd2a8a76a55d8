package org.fedcomuon.cli;

import java.io.Console;
import java.io.PrintWriter;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Pattern;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.method.ClientFault;

/**
 * Shows the progress of a run or a benchmark on standard error: on a terminal as a bar that is redrawn, with rate, time
 * left and the last metrics or the current measurement; otherwise as plain lines, one per evaluation, or one per turn
 * of a benchmark but no more than one in ten seconds.
 */
public final class Progress implements Listener {
    /** The metrics of a line; a run has three to five of them. */
    private static final Pattern SHOWN = Pattern.compile(
            "test_.*|validation_(accuracy|perplexity|auc|return)|train_loss|train_auc|excess_objective|solution_distance|worst_client_(accuracy|auc)");

    private static final int WIDTH = 24;
    private static final long REDRAW_NANOS = 100_000_000;
    private static final long LINES_APART_NANOS = 10_000_000_000L;
    private static final String CLEAR = "\r\u001b[K";

    private final PrintWriter out;
    private final boolean terminal;
    private final String unit;
    private long iterations;
    private long start = System.nanoTime();
    private long firstStep = -1;
    private long last; // step
    private long drawn;
    private String words = "";

    /** Used by tests; see {@link #ofRun} and {@link #ofTurns}. */
    Progress(PrintWriter out, boolean terminal, String unit, long iterations) {
        this.out = out;
        this.terminal = terminal;
        this.unit = unit;
        this.iterations = iterations;
    }

    /** Returns the progress of a run of this many steps. */
    static Progress ofRun(PrintWriter out, long iterations) {
        return new Progress(out, isTerminal(), "step", iterations);
    }

    /** Returns the progress of a benchmark, which calls {@link #onTurn}. */
    public static Progress ofTurns(PrintWriter out) {
        return new Progress(out, isTerminal(), "turn", 0);
    }

    private static boolean isTerminal() {
        return Optional.ofNullable(System.console()).map(Console::isTerminal).orElse(false);
    }

    @Override
    public void onStep(long step) {
        if (firstStep < 0) {
            firstStep = step - 1;
        }
        last = step;
        long now = System.nanoTime();
        if (terminal && (now - drawn > REDRAW_NANOS || step == iterations)) {
            drawn = now;
            draw(step, (now - start) * 1e-9);
        }
    }

    /**
     * Called before the next turn of a benchmark, after {@code done} of {@code turns}; 0 restarts the count. After the
     * last turn the bar is removed, because the results follow.
     */
    public void onTurn(String what, int done, int turns) {
        long now = System.nanoTime();
        if (done == 0) {
            firstStep = 0;
            start = now;
        }
        iterations = turns;
        words = what;
        if (terminal && done == turns) {
            out.print(CLEAR);
            out.flush();
        } else if (terminal) {
            draw(done, (now - start) * 1e-9);
        } else if (done == 0 || now - drawn > LINES_APART_NANOS) {
            drawn = now;
            out.printf("%s (%d of %d done)%n", what, done, turns);
            out.flush();
        }
    }

    /** Sets where the count begins, if that is not at its first step: what is done already says nothing of the rate. */
    void startAt(long step) {
        firstStep = step;
        start = System.nanoTime();
    }

    /**
     * Called when a part of the work has ended.
     *
     * @param line about it
     * @param where how many parts have ended; on a terminal it follows the bar
     */
    void onPart(String line, String where) {
        words = where;
        double seconds = (System.nanoTime() - start) * 1e-9;
        if (terminal) {
            line(line);
        } else {
            line("%s (%s%s)"
                    .formatted(line, where, last > firstStep ? ", %s left".formatted(left(last, seconds)) : ""));
        }
    }

    /** Called for something that is to be known. */
    void onNote(String note) {
        line(note);
    }

    private String left(long step, double seconds) {
        return time((iterations - step) / ((step - firstStep) / seconds));
    }

    private void draw(long step, double seconds) {
        int full = (int) (WIDTH * step / iterations);
        double rate = (step - firstStep) / seconds;
        out.printf(
                Locale.ROOT,
                "%s[%s%s] %d/%d  %s  %s",
                CLEAR,
                "#".repeat(full),
                ".".repeat(WIDTH - full),
                step,
                iterations,
                step == firstStep ? "" : pace(rate) + "  " + left(step, seconds) + " left",
                words);
        out.flush();
    }

    private String pace(double rate) {
        return rate < 1
                ? String.format(Locale.ROOT, "%.1f s/%s", 1 / rate, unit)
                : String.format(Locale.ROOT, "%.1f %ss/s", rate, unit);
    }

    private static String time(double seconds) {
        long whole = Math.round(Math.min(seconds, 1e9));
        return whole < 60
                ? "%ds".formatted(whole)
                : whole < 3600
                        ? "%dm %02ds".formatted(whole / 60, whole % 60)
                        : "%dh %02dm".formatted(whole / 3600, whole / 60 % 60);
    }

    @Override
    public void onEvaluation(Evaluation evaluation) {
        var text = new StringBuilder();
        evaluation.metrics().forEach((name, value) -> {
            if (SHOWN.matcher(name).matches()) {
                text.append(String.format(Locale.ROOT, "%s %.4f  ", name, value));
            }
        });
        words = text.toString().strip();
        if (!terminal) {
            out.printf(
                    Locale.ROOT,
                    "step %d of %d: %s (%.1f s)%n",
                    evaluation.step(),
                    iterations,
                    words,
                    evaluation.seconds());
            out.flush();
        }
    }

    @Override
    public void onClientFault(ClientFault fault) {
        line(fault.toString());
    }

    @Override
    public void onWarning(String warning) {
        line("warning: " + warning);
    }

    private void line(String text) {
        out.printf("%s%s%n", terminal ? CLEAR : "", text);
        out.flush();
    }

    /** Ends the line of the bar, so that further output starts on a new line. */
    void end() {
        if (terminal) {
            out.println();
            out.flush();
        }
    }
}
