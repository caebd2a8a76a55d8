package org.fedcomuon.cluster.spark;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.experiment.TrainingEngine;

/**
 * A training run, in which each member trains its part of the clients.
 *
 * @param directory of the run, which all members reach
 * @param dataDirectory the directory of the user's data; empty for none
 * @param memoryLimit in bytes; -1 for what is available
 * @param tensorBoard whether the first member writes event files
 */
record TrainingProgram(
        String directory,
        String dataDirectory,
        ArrayList<String> devices,
        int threads,
        long memoryLimit,
        boolean tensorBoard,
        String version)
        implements RunSpec.Program {
    static TrainingProgram of(TrainingEngine.Job job, Path directory, int threads) {
        return new TrainingProgram(
                directory.toString(),
                job.dataDirectory()
                        .map(data -> data.toAbsolutePath().toString())
                        .orElse(""),
                new ArrayList<>(job.devices()),
                threads,
                job.memoryLimit().orElse(-1),
                job.tensorBoard(),
                job.version());
    }

    Path path() {
        return Path.of(directory);
    }

    @Override
    public void run(Member member, StartPoint start) throws Exception {
        boolean leads = member.self() == 0;
        var options = new Training.Options(
                List.copyOf(devices),
                Optional.of(member),
                threads,
                dataDirectory.isEmpty() ? Optional.empty() : Optional.of(Path.of(dataDirectory)),
                memoryLimit < 0 ? OptionalLong.empty() : OptionalLong.of(memoryLimit),
                start.checkpoint(path()),
                tensorBoard,
                version);
        new Training(
                        Training.configurationOf(path(), Map.of()),
                        options,
                        path(),
                        Optional.empty(), // the driver has it
                        leads ? List.of(new ForwardingListener(member)) : List.of(),
                        leads ? member::report : note -> {})
                .run();
    }
}
