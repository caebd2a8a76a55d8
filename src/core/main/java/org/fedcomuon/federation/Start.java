package org.fedcomuon.federation;

import java.util.List;

/**
 * A run that is about to take its first step.
 *
 * @param name of the run, as {@link Federation.Builder#name} has it
 * @param method by name
 * @param parameters how many the model has
 * @param step steps done before; more than 0 when it is resumed from a checkpoint
 * @param iterations steps in total
 * @param tau steps per round
 * @param seed of all samples
 * @param communicatedBytes sent and received by clients before; more than 0 when it is resumed from a checkpoint
 * @param clients K, all of them
 * @param cohort the number of clients that take part in a round
 * @param keptBytes what clients keep while they sit out may take as much of the disk, on all hosts together; 0 if none
 *     sits out
 * @param devices by name; of a cluster, the one of this member
 * @param placement the clients of each device, or of each member of a cluster; if clients sit out rounds, in the first
 *     round
 */
public record Start(
        String name,
        String method,
        long parameters,
        long step,
        long iterations,
        int tau,
        long seed,
        long communicatedBytes,
        int clients,
        int cohort,
        long keptBytes,
        List<String> devices,
        List<List<Integer>> placement) {
    /** Copies. */
    public Start {
        devices = List.copyOf(devices);
        placement = placement.stream().map(List::copyOf).toList();
    }
}
