package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.cluster.mpi.MpiCluster;

/** Training in the processes that {@code mpirun} has started, of which this is one. Thread-safe, as every engine is. */
public final class MpiTraining extends ProcessTraining {
    private static final String NAME = "mpi";

    /** Used by {@link java.util.ServiceLoader}. */
    public MpiTraining() {}

    @Override
    public boolean isMeantBy(String cluster) {
        return cluster.equals(NAME);
    }

    @Override
    public String names() {
        return NAME;
    }

    @Override
    public void run(Job job, Supplier<View> view) throws IOException, InterruptedException {
        int threads = job.threads().orElseGet(MpiTraining::shareOfCores);
        try (MpiCluster cluster = join()) {
            boolean leads = cluster.self() == 0;
            try {
                Optional<View> mine = leads ? Optional.of(view.get()) : Optional.empty();
                String directory = cluster.agree(
                        mine.map(own -> own.directory().toString()).orElse(""));
                train(
                        job,
                        mine.orElseGet(() -> new View(Path.of(directory), Optional.empty(), List.of(), note -> {})),
                        Optional.of(cluster),
                        threads);
            } catch (MemberFailedException e) {
                if (leads) {
                    throw e;
                }
                // The first process reports the reason, and its exit code becomes that of mpirun.
            } catch (RuntimeException | IOException e) {
                cluster.fail(String.valueOf(e.getMessage()));
                throw e;
            }
        }
    }

    private static int shareOfCores() {
        int processesHere = Optional.ofNullable(System.getenv("OMPI_COMM_WORLD_LOCAL_SIZE"))
                .map(Integer::parseInt)
                .orElse(1);
        return Math.max(1, Runtime.getRuntime().availableProcessors() / processesHere);
    }

    private static MpiCluster join() {
        try {
            return MpiCluster.join();
        } catch (MpiCluster.UnavailableException e) {
            throw new ConfigurationException("--cluster %s: %s".formatted(NAME, e.getMessage()), e);
        }
    }
}
