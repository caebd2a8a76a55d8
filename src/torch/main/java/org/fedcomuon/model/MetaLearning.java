package org.fedcomuon.model;

import java.util.List;
import java.util.Optional;
import org.fedcomuon.data.Episodes;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;

/**
 * Clients as tasks: {@code g(W; (S, Q)) = l(W - a grad l(W; S); Q)} under a risk, d = 1. S and Q are drawn together,
 * without replacement, so they never share an example.
 *
 * <p>For methods that use g as it is. FedMAML adapts by itself and takes {@link #plain}.
 *
 * <p>Immutable, provided that the given arrays and examples are not changed.
 */
public final class MetaLearning implements Problem {
    private final Network network;
    private final Examples examples;
    private final List<int[]> clients;
    private final int batch;
    private final Adaptation adaptation;
    private final Risk risk;

    /**
     * Describes the problem; nothing is copied.
     *
     * @param clients the indices of each client's examples, at least two
     * @param batch examples of a support set, and as many of a query set; a client that has less than both together has
     *     one half of its examples in each
     * @param risk f
     */
    public MetaLearning(
            Network network, Examples examples, List<int[]> clients, int batch, Adaptation adaptation, Risk risk) {
        this.network = network;
        this.examples = examples;
        this.clients = List.copyOf(clients);
        this.batch = batch;
        this.adaptation = adaptation;
        this.risk = risk;
        for (int k = 0; k < clients.size(); k++) {
            if (clients.get(k).length < 2) {
                throw new IllegalArgumentException("client %d has %d examples; support and query need one each"
                        .formatted(k, clients.get(k).length));
            }
        }
    }

    /** Returns the loss without adaptation, on the same examples in batches of the same size. */
    public Classification plain() {
        return new Classification(network, examples, clients, batch, risk);
    }

    @Override
    public Layout layout() {
        return network.layout();
    }

    @Override
    public int innerDimension() {
        return 1;
    }

    @Override
    public Optional<Floats> initial(long seed) {
        return Optional.of(network.initial(seed));
    }

    @Override
    public int clients() {
        return clients.size();
    }

    @Override
    public Client client(int k) {
        var episodes = new Episodes(clients.get(k), batch, batch);
        var loss = new AdaptedLoss(network, examples, episodes::support, episodes::query, adaptation);
        return Problem.ofLosses(layout(), List.of(loss), risk).client(0);
    }

    /**
     * A task of meta learning: examples to adapt to, and examples to evaluate on.
     *
     * <p>Immutable, provided that its examples are not changed.
     *
     * @param support S
     * @param query Q
     */
    public record Episode(Examples support, Examples query) {
        /**
         * Returns an episode with the first {@code support} of {@code examples} as its support set and the rest as its
         * query set.
         */
        public static Episode split(Examples examples, int support) {
            int count = examples.count();
            if (support < 1 || support >= count) {
                throw new IllegalArgumentException(
                        "%d of %d examples for support; at least one, and one is left for query"
                                .formatted(support, count));
            }
            return new Episode(examples.range(0, support), examples.range(support, count));
        }
    }
}
