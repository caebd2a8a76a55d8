package org.fedcomuon.federation;

import java.util.List;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Variable;

/**
 * The server, as one device sees it. There is no central server: the devices compute means among themselves, by an
 * {@link Averaging}. This class has what all of these share: the weights of the clients that take part, and the bytes
 * that have been sent.
 */
final class Exchange implements Method.Server, AutoCloseable {
    private final SharedState shared;
    private final int self;
    private final Clients clients;
    private final Averaging averaging;
    private final List<Double> baseWeights;
    private final double allWeights;
    private final boolean clustered;
    private double share = 1;
    private int participants;
    private long bytes;
    private long roundTrips;

    Exchange(SharedState shared, int self, Clients clients, Setup setup, RunMonitor monitor) {
        this.shared = shared;
        this.self = self;
        this.clients = clients;
        this.baseWeights = setup.weights();
        double sum = 0;
        for (double weight : baseWeights) {
            sum += weight;
        }
        allWeights = sum;
        clustered = setup.cluster().isPresent();
        averaging = setup.cluster().isPresent()
                ? new ClusterAveraging(setup.cluster().get(), shared, clients, monitor, setup.fingerprint())
                : switch (setup.exchange()) {
                    case ORDERED ->
                        OrderedAveraging.of(shared, self, clients, setup.placement(), setup.exchangeChunk());
                    case NCCL -> new NcclAveraging(shared, self, clients, setup.ncclTimeout());
                };
    }

    @Override
    public void average(Variable... variables) {
        long each = 0;
        for (Variable variable : variables) {
            each += variable.length() * Float.BYTES;
        }
        average(each, each, variables);
    }

    @Override
    public void average(long up, long down, Variable... variables) {
        mean(variables);
        bytes += participants * (up + down);
        roundTrips++;
    }

    /** The same without anything being sent: for looking at a run from outside. */
    void mean(Variable... variables) {
        clients.timed(Clients.Phase.EXCHANGE, () -> {
            if (shared.devices() > 1 || clustered) {
                clients.settle(); // a GPU with a fault holds back its own operations, not those of others
            }
            post();
            averaging.post(variables);
            count();
            for (int i = 0; i < variables.length; i++) {
                averaging.average(i, variables[i]);
                variables[i].becomeCommon();
            }
        });
    }

    private void post() {
        for (int k = 0; k < clients.count(); k++) {
            int client = clients.number(k);
            shared.weights[client] = clients.takesPart(k) ? baseWeights.get(client) : 0;
            shared.losses[client] = clients.meanLoss(k);
        }
        for (Clients.Phase phase : Clients.Phase.values()) {
            shared.seconds.get(self).put(phase, clients.seconds(phase));
        }
    }

    private void count() {
        double sum = 0;
        participants = 0;
        for (double weight : shared.weights) {
            sum += weight;
            participants += weight > 0 ? 1 : 0;
        }
        if (!(sum > 0)) {
            throw new Federation.NoClientsException();
        }
        share = sum == allWeights ? 1 : sum / allWeights;
    }

    @Override
    public double share() {
        return share;
    }

    int participants() {
        return participants;
    }

    long bytes() {
        return bytes;
    }

    long roundTrips() {
        return roundTrips;
    }

    /** Continues the counters of a checkpoint. */
    void resume(long communicatedBytes, long trips) {
        bytes = communicatedBytes;
        roundTrips = trips;
    }

    /** Waits for all devices, without a mean. */
    void await() {
        clients.timed(Clients.Phase.EXCHANGE, () -> {
            post();
            averaging.post();
        });
    }

    /** Returns how means are computed. */
    String title() {
        return averaging.title();
    }

    /** Waits until no device uses the memory of another, whether they are done or have failed. */
    void leave() {
        averaging.drain();
        shared.departure.arriveAndAwaitAdvance();
        averaging.disband();
        shared.departure.arriveAndAwaitAdvance();
    }

    @Override
    public void close() {
        averaging.close();
    }
}
