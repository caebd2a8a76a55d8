package org.fedcomuon.cluster.spark;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.LongConsumer;
import org.apache.spark.api.java.JavaFutureAction;
import org.apache.spark.api.java.JavaSparkContext;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.federation.CheckpointStore;
import org.fedcomuon.sweep.TrialCluster;

/** A place for one trial at a time in some executor; a trial is a job of one task. Thread-safe. */
final class SparkTrialSlot implements TrialCluster.Slot {
    private static final long TURN = 500; // milliseconds

    private final JavaSparkContext spark;
    private final TrialTask task;
    private final Runnable requirePossible;
    private Optional<JavaFutureAction<List<String>>> running = Optional.empty();
    private boolean stopping;

    /** @param requirePossible throws when trials cannot go on */
    SparkTrialSlot(JavaSparkContext spark, TrialTask task, Runnable requirePossible) {
        this.spark = spark;
        this.task = task;
        this.requirePossible = requirePossible;
    }

    @Override
    public TrialCluster.Answer run(Path directory, LongConsumer steps) throws InterruptedException {
        Optional<JavaFutureAction<List<String>>> begun = begin(directory);
        if (begun.isEmpty()) {
            return new TrialCluster.Answer.Stopped();
        }
        while (true) {
            try {
                String text = begun.get().get(TURN, TimeUnit.MILLISECONDS).getFirst();
                return TrialCluster.Answer.of(text).orElseGet(() -> new TrialCluster.Answer.Failed(text));
            } catch (TimeoutException e) {
                requirePossible.run();
                // What an executor counts, the driver learns when the task has ended; the directory is shared.
                Training.lastCheckpoint(directory).ifPresent(file -> steps.accept(CheckpointStore.step(file)));
            } catch (CancellationException e) {
                return new TrialCluster.Answer.Stopped();
            } catch (ExecutionException e) {
                if (isStopping()) {
                    return new TrialCluster.Answer.Stopped();
                }
                requirePossible.run();
                return new TrialCluster.Answer.Failed(
                        String.valueOf(SparkFailures.explained(e.getCause()).getMessage()));
            }
        }
    }

    private synchronized Optional<JavaFutureAction<List<String>>> begin(Path directory) {
        if (stopping) {
            return Optional.empty();
        }
        running =
                Optional.of(spark.parallelize(List.of(directory.toAbsolutePath().toString()), 1)
                        .map(task)
                        .collectAsync());
        return running;
    }

    private synchronized boolean isStopping() {
        return stopping;
    }

    @Override
    public boolean isAlive() {
        return true; // an executor that is lost is Spark's to replace
    }

    /** The task hears of it and ends by itself; the session waits for that. */
    @Override
    public synchronized void stop() {
        stopping = true;
        running.ifPresent(job -> job.cancel(true));
    }

    @Override
    public void close() {
        stop();
    }
}
