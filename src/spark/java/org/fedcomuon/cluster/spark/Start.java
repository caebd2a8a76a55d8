package org.fedcomuon.cluster.spark;

import java.io.Serializable;
import java.nio.file.Path;
import java.util.Optional;
import org.fedcomuon.experiment.Training;

/**
 * Where a member that is not there yet begins.
 *
 * @param step of the checkpoint to go on from; 0 for none
 * @param meeting the first after it, counted from where this run began
 */
record Start(long step, int meeting) implements Serializable {
    Optional<Path> checkpoint(Path directory) {
        return step == 0 ? Optional.empty() : Optional.of(Training.checkpoint(directory, step));
    }
}
