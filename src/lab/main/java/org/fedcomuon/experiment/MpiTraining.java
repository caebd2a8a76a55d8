package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.cluster.mpi.MpiCluster;

/** Training in the processes that {@code mpirun} has started, of which this is one. Thread-safe, as every engine is. */
public final class MpiTraining extends ProcessTraining {
    private static final String NAME = "mpi";

    /** What the search for a checkpoint may take, on a disk that may hang as well. */
    private static final long SEARCH_SECONDS = 5;

    private volatile Optional<Path> directory = Optional.empty(); // until it is agreed on

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
    public void run(Job job, Supplier<View> view, Consumer<MemberFailedException> abandon)
            throws IOException, InterruptedException {
        int threads = job.threads().orElseGet(MpiTraining::shareOfCores);
        Consumer<MemberFailedException> onSilence = failure ->
                abandon.accept(new MemberFailedException("%s; %s".formatted(failure.getMessage(), afterwards())));
        try (MpiCluster cluster = join(job.timeout(), onSilence)) {
            boolean leads = cluster.self() == 0;
            try {
                Optional<View> mine = leads ? Optional.of(view.get()) : Optional.empty();
                Path agreed = Path.of(cluster.agree(
                        mine.map(own -> own.directory().toString()).orElse("")));
                directory = Optional.of(agreed);
                train(
                        job,
                        mine.orElseGet(() -> new View(agreed, Optional.empty(), List.of(), note -> {})),
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

    private String afterwards() {
        if (directory.isEmpty()) {
            return "the run has not begun";
        }
        Path run = directory.get();
        String unknown = "--resume %s continues it, if it has a checkpoint".formatted(run);
        return CompletableFuture.supplyAsync(() -> Training.afterwards(run))
                .exceptionally(unreadable -> unknown)
                .completeOnTimeout(unknown, SEARCH_SECONDS, TimeUnit.SECONDS)
                .join();
    }

    private static MpiCluster join(Duration silence, Consumer<MemberFailedException> onSilence) {
        try {
            return MpiCluster.join(silence, onSilence);
        } catch (MpiCluster.UnavailableException e) {
            throw new ConfigurationException("--cluster %s: %s".formatted(NAME, e.getMessage()), e);
        }
    }
}
