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
 * @param devices by name; of a cluster, the one of this member
 * @param placement the clients of each device, or of each member of a cluster
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
        List<String> devices,
        List<List<Integer>> placement) {
    /** Copies. */
    public Start {
        devices = List.copyOf(devices);
        placement = placement.stream().map(List::copyOf).toList();
    }

    /** Returns how many clients there are. */
    public int clients() {
        return placement.stream().mapToInt(List::size).sum();
    }
}
