package org.fedcomuon.cluster.spark;

import java.io.Serializable;
import java.nio.file.Path;
import java.util.Optional;
import org.fedcomuon.experiment.Training;

/**
 * The point at which a new member starts.
 *
 * @param step the step of the checkpoint to resume from; 0 for none
 * @param exchange the number of exchanges of this run before that checkpoint
 */
record StartPoint(long step, int exchange) implements Serializable {
    Optional<Path> checkpoint(Path directory) {
        return step == 0 ? Optional.empty() : Optional.of(Training.checkpoint(directory, step));
    }
}
