package org.fedcomuon.model;

import java.util.List;
import org.fedcomuon.data.Batches;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;

/**
 * A classification problem: each client holds some of the examples, and the loss is the cross entropy of a network
 * under a risk, with d = 1. Immutable, provided that the given arrays and examples are not changed.
 */
public final class Classification implements Problem {
    private final Network network;
    private final Examples examples;
    private final List<int[]> clients;
    private final int batch;
    private final Risk risk;

    /**
     * Describes the problem; nothing is copied.
     *
     * @param clients the indices of each client's examples
     * @param batch examples per sample
     * @param risk f
     */
    public Classification(Network network, Examples examples, List<int[]> clients, int batch, Risk risk) {
        this.network = network;
        this.examples = examples;
        this.clients = List.copyOf(clients);
        this.batch = batch;
        this.risk = risk;
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
    public int clients() {
        return clients.size();
    }

    /** Returns the number of examples per sample; a client with less than a batch takes less time. */
    @Override
    public double cost(int k) {
        return batches(k).batchSize();
    }

    private Batches batches(int k) {
        return new Batches(clients.get(k), batch);
    }

    @Override
    public Client client(int k) {
        var loss = new NetworkLoss(network, examples, batches(k)::indices);
        return Problem.ofLosses(layout(), List.of(loss), risk).client(0);
    }
}
