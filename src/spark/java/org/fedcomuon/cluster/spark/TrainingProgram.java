package org.fedcomuon.cluster.spark;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.experiment.TrainingEngine;
import org.fedcomuon.federation.Listener;

/**
 * A training, of which each member does the part of its clients.
 *
 * @param directory of the run, which all reach
 * @param dataDirectory of the user's own data; empty if there are none
 * @param memoryLimit in bytes; -1 for what is available
 */
record TrainingProgram(
        String directory,
        String dataDirectory,
        ArrayList<String> devices,
        int threads,
        long memoryLimit,
        String version)
        implements Order.Program {
    static TrainingProgram of(TrainingEngine.Job job, int threads) {
        return new TrainingProgram(
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

    @Override
    public void run(Member member, Start start) throws Exception {
        boolean speaks = member.self() == 0;
        var options = new Training.Options(
                List.copyOf(devices),
                Optional.of(member),
                threads,
                dataDirectory.isEmpty() ? Optional.empty() : Optional.of(Path.of(dataDirectory)),
                memoryLimit < 0 ? OptionalLong.empty() : OptionalLong.of(memoryLimit),
                start.checkpoint(path()),
                version);
        new Training(
                        Training.configurationOf(path(), Map.of()),
                        options,
                        path(),
                        speaks ? new Telling(member) : new Listener() {},
                        speaks ? member::tell : note -> {})
                .run();
    }
}
