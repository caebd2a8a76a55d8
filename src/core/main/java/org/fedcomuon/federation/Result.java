package org.fedcomuon.federation;

import java.nio.file.Path;
import java.util.Optional;
import org.fedcomuon.problem.Point;

/**
 * The result of a run.
 *
 * <p>Immutable, except for the weights, which all holders of the result share.
 *
 * @param step steps done since the beginning
 * @param stopped whether {@link Federation#stop} ended it before its last step
 * @param weights the average of the clients' W; in memory of its own, outside the heap
 * @param sha256 of these weights, as little-endian floats
 * @param communicatedBytes sent and received by clients, as the algorithm would send them
 * @param roundTrips exchanges of the algorithm
 * @param exchangedBytes sent to other devices or members and received from them, by the first, in this run without an
 *     earlier one that it resumed: headers, statuses and averages for evaluations included. They do not depend on the
 *     number of clients, and are 0 where devices read each other's values in shared memory
 * @param exchanges between devices or members in this run: those of the algorithm, and those for evaluations and
 *     checkpoints; 0 for one device
 * @param faults clients dropped from a round, counted each time
 * @param seconds of this run, without those of an earlier run that it resumed
 * @param exchange how means were computed, which does not change them: {@code one device}, {@code shared memory},
 *     {@code peer (reads)} or {@code peer (copies)} between GPUs, {@code nccl} with the version of NCCL, or the number
 *     of members
 * @param checkpoint the last one written
 */
public record Result(
        long step,
        boolean stopped,
        Point weights,
        String sha256,
        long communicatedBytes,
        long roundTrips,
        long exchangedBytes,
        long exchanges,
        long faults,
        double seconds,
        String exchange,
        Optional<Path> checkpoint) {}
