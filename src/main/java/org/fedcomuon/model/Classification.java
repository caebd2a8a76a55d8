package org.fedcomuon.model;

import java.util.List;
import org.fedcomuon.data.Batches;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;

/**
 * A network trained to classify by clients that each hold some of the examples: cross entropy under a risk, d = 1.
 * Immutable, as far as the arrays and examples are that it was given.
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
     * @param batch examples a sample
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

    /** Examples a sample: a client that has less than a batch is done sooner. */
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
