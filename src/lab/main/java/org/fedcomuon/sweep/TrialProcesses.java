package org.fedcomuon.sweep;

import java.io.IOException;
import java.util.OptionalLong;
import java.util.function.BooleanSupplier;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.experiment.TrainingEngine;

/**
 * Trials in processes of this machine, so that one that takes its process down is only a trial that has failed.
 *
 * <p>Thread-safe.
 */
final class TrialProcesses implements TrialCluster {
    @Override
    public boolean isMeantBy(String cluster) {
        return cluster.equals(TrainingEngine.LOCAL);
    }

    @Override
    public String names() {
        return TrainingEngine.LOCAL;
    }

    @Override
    public boolean hasDevicesOfThisHost() {
        return true;
    }

    @Override
    public Session start(Job job, BooleanSupplier stopping) {
        return new Session() {
            @Override
            public int slots() {
                return job.parallel().orElse(Runtime.getRuntime().availableProcessors());
            }

            @Override
            public Slot open(int number, int atATime) throws IOException {
                OptionalLong available = Training.availableMemory();
                TrialCluster.Arguments arguments = job.arguments(number);
                return WorkerProcess.start(
                        job.memoryLimit().isPresent() || available.isEmpty()
                                ? arguments
                                : arguments.withMemoryLimit(OptionalLong.of(available.getAsLong() / atATime)),
                        job.classPath());
            }

            @Override
            public void close() {} // every slot has been
        };
    }
}
