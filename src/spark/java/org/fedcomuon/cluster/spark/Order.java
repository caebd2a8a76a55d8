package org.fedcomuon.cluster.spark;

import java.io.Serializable;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.UUID;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.experiment.TrainingEngine;

/**
 * What every member is to run; goes with each job.
 *
 * @param id of this run, that no other run in the same executor has
 * @param members how many there are
 * @param directory of the run, which all reach
 * @param dataDirectory of the user's own data; empty if there are none
 * @param memoryLimit in bytes; -1 for what is available
 */
record Order(
        String id,
        int members,
        String directory,
        String dataDirectory,
        ArrayList<String> devices,
        int threads,
        long memoryLimit,
        String version)
        implements Serializable {
    static Order of(TrainingEngine.Job job, int members, int threads) {
        return new Order(
                UUID.randomUUID().toString(),
                members,
                job.directory().toString(),
                job.dataDirectory().map(Path::toString).orElse(""),
                new ArrayList<>(job.devices()),
                threads,
                job.memoryLimit().orElse(-1),
                job.version());
    }

    Path path() {
        return Path.of(directory);
    }

    Training.Options options(Cluster cluster, Start start) {
        return new Training.Options(
                List.copyOf(devices),
                Optional.of(cluster),
                threads,
                dataDirectory.isEmpty() ? Optional.empty() : Optional.of(Path.of(dataDirectory)),
                memoryLimit < 0 ? OptionalLong.empty() : OptionalLong.of(memoryLimit),
                start.checkpoint(path()),
                version);
    }
}
