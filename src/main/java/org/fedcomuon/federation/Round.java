package org.fedcomuon.federation;

/**
 * A round that is done.
 *
 * @param number from 0
 * @param step steps done since the beginning
 * @param participants clients in its last exchange
 * @param dropped clients that took part at first and failed
 * @param communicatedBytes sent and received by clients since the beginning, as the algorithm would send them
 * @param roundTrips exchanges since the beginning
 * @param seconds of this run so far
 * @param stepSeconds of these in steps, of the slowest device; the next three are parts of it, the rest is tracking
 * @param gradientSeconds in the oracles, of the slowest device
 * @param orthogonalizeSeconds in orthogonalized and vector steps, of the slowest device
 * @param exchangeSeconds in exchanges, waiting included, of the slowest device
 */
public record Round(
        long number,
        long step,
        int participants,
        int dropped,
        long communicatedBytes,
        long roundTrips,
        double seconds,
        double stepSeconds,
        double gradientSeconds,
        double orthogonalizeSeconds,
        double exchangeSeconds) {}
