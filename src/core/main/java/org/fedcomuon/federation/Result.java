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
 * @param roundTrips exchanges
 * @param faults clients dropped from a round, counted each time
 * @param seconds of this run, without those of an earlier run that it resumed
 * @param exchange how means were computed: {@code ordered}, or {@code nccl} with the version of NCCL
 * @param checkpoint the last one written
 */
public record Result(
        long step,
        boolean stopped,
        Point weights,
        String sha256,
        long communicatedBytes,
        long roundTrips,
        long faults,
        double seconds,
        String exchange,
        Optional<Path> checkpoint) {}
