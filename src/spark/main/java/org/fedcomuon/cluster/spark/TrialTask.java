package org.fedcomuon.cluster.spark;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.OptionalLong;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.Function;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.sweep.TrialCluster;
import org.fedcomuon.sweep.TrialRun;

/**
 * The Spark task that runs a trial of a sweep in an executor. A task that Spark gives to another executor, because this
 * one is lost, goes on from the last checkpoint.
 *
 * @param arguments as texts
 * @param perExecutor how many trials an executor runs at a time, which share the memory of its host
 */
record TrialTask(ArrayList<String> arguments, int perExecutor) implements Function<String, String> {
    private static final long TURN = 100; // milliseconds

    /** @return the answer as a text */
    @Override
    public String call(String directory) throws InterruptedException {
        TaskContext task = TaskContext.get();
        var trial = new TrialRun(limited(TrialCluster.Arguments.of(arguments)));
        Thread watch = Thread.ofPlatform().daemon().name("trial-watch").start(() -> {
            try {
                while (!task.isInterrupted()) {
                    Thread.sleep(TURN);
                }
                trial.stop();
            } catch (InterruptedException e) {
                // The trial has ended.
            }
        });
        try {
            TrialCluster.Answer answer = trial.run(Path.of(directory), step -> {});
            return answer.text();
        } finally {
            watch.interrupt();
            watch.join();
        }
    }

    private TrialCluster.Arguments limited(TrialCluster.Arguments all) {
        OptionalLong available = Training.availableMemory();
        return all.memoryLimit().isPresent() || available.isEmpty()
                ? all
                : all.withMemoryLimit(OptionalLong.of(available.getAsLong() / perExecutor));
    }
}
