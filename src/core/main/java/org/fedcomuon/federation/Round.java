package org.fedcomuon.federation;

import java.util.List;
import java.util.Map;
import org.fedcomuon.method.Clients;

/**
 * A round that is done.
 *
 * @param number from 0
 * @param step steps done since the beginning
 * @param participants clients in its last exchange
 * @param dropped clients that took part and failed
 * @param communicatedBytes sent and received by clients since the beginning, as the algorithm would send them
 * @param roundTrips exchanges since the beginning
 * @param exchangedBytes that the first device or member has sent to others and received from them in this run so far,
 *     by whatever means compute averages
 * @param seconds of this run so far
 * @param stepSeconds of these in steps, of the slowest device; the next three are parts of it, the rest is tracking
 * @param gradientSeconds in the oracles, of the slowest device
 * @param orthogonalizeSeconds in orthogonalized and vector steps, of the slowest device
 * @param exchangeSeconds in exchanges, waiting included, of the slowest device
 * @param clients the cohort of the round, ascending
 * @param clientLosses of each of them the mean loss g over the samples it has drawn in this round; NaN for one that has
 *     drawn none, for the clients of other members of a cluster, whose losses stay there, and for all where d > 1,
 *     because the components of g are no losses
 * @param deviceSeconds by device, or by member of a cluster: seconds of each phase so far
 */
public record Round(
        long number,
        long step,
        int participants,
        int dropped,
        long communicatedBytes,
        long roundTrips,
        long exchangedBytes,
        double seconds,
        double stepSeconds,
        double gradientSeconds,
        double orthogonalizeSeconds,
        double exchangeSeconds,
        List<Integer> clients,
        List<Double> clientLosses,
        List<Map<Clients.Phase, Double>> deviceSeconds) {
    /** Copies. */
    public Round {
        clients = List.copyOf(clients);
        clientLosses = List.copyOf(clientLosses);
        deviceSeconds = deviceSeconds.stream().map(Map::copyOf).toList();
    }

    /** Returns the mean of the {@link #clientLosses} of the clients that have drawn a sample; NaN if none has. */
    public double meanLoss() {
        return clientLosses.stream()
                .mapToDouble(Double::doubleValue)
                .filter(loss -> !Double.isNaN(loss))
                .average()
                .orElse(Double.NaN);
    }
}
