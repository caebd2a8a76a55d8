package org.fedcomuon.cli;

import java.io.PrintWriter;
import java.util.Locale;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.method.ClientFault;

/**
 * A run on standard error: on a terminal a bar that is drawn over itself, with rate, time left and the last metrics;
 * otherwise a plain line an evaluation.
 */
final class Progress implements Listener {
    private static final int WIDTH = 24;
    private static final long REDRAW_NANOS = 100_000_000;
    private static final String CLEAR = "\r\u001b[K";

    private final PrintWriter out;
    private final boolean terminal;
    private final long iterations;
    private final long start = System.nanoTime();
    private long firstStep = -1;
    private long drawn;
    private String metrics = "";

    Progress(PrintWriter out, boolean terminal, long iterations) {
        this.out = out;
        this.terminal = terminal;
        this.iterations = iterations;
    }

    @Override
    public void onStep(long step) {
        if (firstStep < 0) {
            firstStep = step - 1;
        }
        long now = System.nanoTime();
        if (terminal && (now - drawn > REDRAW_NANOS || step == iterations)) {
            drawn = now;
            draw(step, (now - start) * 1e-9);
        }
    }

    private void draw(long step, double seconds) {
        int full = (int) (WIDTH * step / iterations);
        double rate = (step - firstStep) / seconds;
        out.printf(
                Locale.ROOT,
                "%s[%s%s] %d/%d  %.1f steps/s  %s left  %s",
                CLEAR,
                "#".repeat(full),
                ".".repeat(WIDTH - full),
                step,
                iterations,
                rate,
                time((iterations - step) / rate),
                metrics);
        out.flush();
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
        var words = new StringBuilder();
        evaluation.metrics().forEach((name, value) -> {
            if (name.startsWith("test_") || name.equals("train_loss") || name.equals("worst_client_accuracy")) {
                words.append(String.format(Locale.ROOT, "%s %.4f  ", name, value));
            }
        });
        metrics = words.toString().strip();
        if (!terminal) {
            out.printf(
                    Locale.ROOT,
                    "step %d of %d: %s (%.1f s)%n",
                    evaluation.step(),
                    iterations,
                    metrics,
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

    /** Leaves the bar, so that what follows has a line of its own. */
    void end() {
        if (terminal) {
            out.println();
            out.flush();
        }
    }
}
