package org.fedcomuon.cli;

import java.util.Optional;
import org.fedcomuon.cluster.mpi.MpiCluster;

/** This process as one of those that {@code mpirun} has started. */
final class MpiProcess {
    static final String NAME = "mpi";

    private MpiProcess() {}

    /** Its share of the cores. */
    static int threads() {
        int here = Optional.ofNullable(System.getenv("OMPI_COMM_WORLD_LOCAL_SIZE"))
                .map(Integer::parseInt)
                .orElse(1);
        return Math.max(1, Runtime.getRuntime().availableProcessors() / here);
    }

    static MpiCluster join(int threads) {
        try {
            return MpiCluster.join(threads);
        } catch (MpiCluster.UnavailableException e) {
            throw new UsageException("--cluster %s: %s".formatted(NAME, e.getMessage()));
        }
    }
}
