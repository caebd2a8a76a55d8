package org.fedcomuon.sweep;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.RunLock;

/**
 * Runs trials in this process, one after the other. Only what ends the process is more than a trial that has failed.
 *
 * <p>Not thread-safe, except for {@link #stop}.
 */
public final class TrialRun {
    /** The process of a sweep that was killed may still be at its last step. */
    private static final Duration LOCK_PATIENCE = Duration.ofSeconds(60);

    private static final long BETWEEN_STEPS = TimeUnit.MILLISECONDS.toNanos(200);

    /** The sweep says what there is to say. A collected logger loses its level. */
    private static final Logger OF_RUNS = Logger.getLogger(Federation.class.getName());

    private final TrialCluster.Arguments arguments;
    private Optional<Training> current = Optional.empty();
    private boolean stopping;

    /** Creates one that runs nothing yet. */
    public TrialRun(TrialCluster.Arguments arguments) {
        this.arguments = arguments;
        OF_RUNS.setLevel(Level.OFF);
    }

    /**
     * Runs a trial, or continues it from its last checkpoint.
     *
     * @param directory that has its settings
     * @param steps receives the number of steps that are done, now and then
     */
    public TrialCluster.Answer run(Path directory, LongConsumer steps) throws InterruptedException {
        try (RunLock lock = lock(directory)) {
            if (Training.lastCheckpoint(directory).isPresent()) {
                Training.requireWhole(directory);
            }
            var options = new Training.Options(
                    List.of(arguments.device()),
                    Optional.empty(),
                    arguments.threads(),
                    arguments.dataDirectory(),
                    arguments.memoryLimit(),
                    Optional.of(Training.checkpoints(directory)),
                    arguments.tensorBoard(),
                    arguments.version());
            var training = new Training(
                    Training.configurationOf(directory, Map.of()),
                    options,
                    directory,
                    Optional.of(lock),
                    List.of(new Steps(steps)),
                    note -> {});
            begin(training);
            boolean stopped = Boolean.TRUE.equals(training.run().get("stopped"));
            return stopped ? new TrialCluster.Answer.Stopped() : new TrialCluster.Answer.Done();
        } catch (VirtualMachineError e) {
            throw e;
        } catch (IOException | RuntimeException | Error e) { // a row of the sweep, and not its end
            return new TrialCluster.Answer.Failed(reason(e));
        }
    }

    /** Ends the trial after its current step, with a checkpoint, and all that follow. May be called by any thread. */
    public synchronized void stop() {
        stopping = true;
        current.ifPresent(Training::stop);
    }

    private synchronized boolean isStopping() {
        return stopping;
    }

    private synchronized void begin(Training training) {
        current = Optional.of(training);
        if (stopping) {
            training.stop();
        }
    }

    private RunLock lock(Path directory) throws IOException, InterruptedException {
        long start = System.nanoTime();
        while (true) {
            try {
                return Training.lock(directory);
            } catch (RunLock.InUseException e) {
                if (isStopping() || System.nanoTime() - start > LOCK_PATIENCE.toNanos()) {
                    throw e;
                }
                TimeUnit.MILLISECONDS.sleep(250);
            }
        }
    }

    /** Returns a message as one line. */
    static String reason(Throwable failure) {
        String message = failure instanceof RuntimeException && failure.getMessage() != null
                ? failure.getMessage()
                : failure.toString();
        return message.strip().replaceAll("\\s*\\R\\s*", "; ");
    }

    /** Says how far the trial is. Confined to the thread of the run. */
    private static final class Steps implements Listener {
        private final LongConsumer steps;
        private long said = System.nanoTime();

        Steps(LongConsumer steps) {
            this.steps = steps;
        }

        @Override
        public void onStep(long step) {
            long now = System.nanoTime();
            if (now - said > BETWEEN_STEPS) {
                said = now;
                steps.accept(step);
            }
        }
    }
}
