package org.fedcomuon.experiment;

import java.io.IOException;
import java.util.Optional;
import org.fedcomuon.cluster.Cluster;

/** Trains in this process: all clients, or as a member of a cluster some of them. */
abstract class ProcessTraining implements TrainingEngine {
    private Optional<Training> training = Optional.empty();
    private boolean stopping;

    final void train(Job job, View view, Optional<Cluster> cluster, int threads)
            throws IOException, InterruptedException {
        var options = new Training.Options(
                job.devices(),
                cluster,
                threads,
                job.dataDirectory(),
                job.memoryLimit(),
                job.resumes() ? Optional.of(Training.checkpoints(view.directory())) : Optional.empty(),
                job.tensorBoard(),
                job.version());
        begin(new Training(job.configuration(), options, view.directory(), view.lock(), view.listeners(), view.notes()))
                .run();
    }

    private synchronized Training begin(Training begun) {
        training = Optional.of(begun);
        if (stopping) {
            begun.stop();
        }
        return begun;
    }

    @Override
    public final synchronized void stop() {
        stopping = true;
        training.ifPresent(Training::stop);
    }
}
