package org.fedcomuon.federation;

import java.util.List;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Phase;
import org.fedcomuon.method.Server;
import org.fedcomuon.method.Variable;

/**
 * The server, as one device sees it. There is no place where everything comes together: the devices work out means
 * among themselves, in the way of an {@link Averaging}. Here is what every way has in common: who takes part with which
 * weight, and what has been sent.
 */
final class Exchange implements Server, AutoCloseable {
    private final Meeting meeting;
    private final int self;
    private final Clients clients;
    private final Averaging averaging;
    private final List<Double> baseWeights;
    private final double allWeights;
    private double share = 1;
    private int participants;
    private long bytes;
    private long roundTrips;

    Exchange(Meeting meeting, int self, Clients clients, Setup setup, Watch watch) {
        this.meeting = meeting;
        this.self = self;
        this.clients = clients;
        this.baseWeights = setup.weights();
        double sum = 0;
        for (double weight : baseWeights) {
            sum += weight;
        }
        allWeights = sum;
        averaging = setup.cluster().isPresent()
                ? new ClusterAveraging(setup.cluster().get(), meeting, clients, watch, setup.fingerprint())
                : switch (setup.exchange()) {
                    case ORDERED ->
                        new OrderedAveraging(meeting, self, clients, setup.placement(), setup.exchangeChunk());
                    case NCCL -> new NcclAveraging(meeting, self, clients);
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
        clients.timed(Phase.EXCHANGE, () -> {
            post();
            averaging.meet(variables);
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
            meeting.weights[client] = clients.takesPart(k) ? baseWeights.get(client) : 0;
            meeting.losses[client] = clients.meanLoss(k);
        }
        for (Phase phase : Phase.values()) {
            meeting.seconds.get(self).put(phase, clients.seconds(phase));
        }
    }

    private void count() {
        double sum = 0;
        participants = 0;
        for (double weight : meeting.weights) {
            sum += weight;
            participants += weight > 0 ? 1 : 0;
        }
        if (!(sum > 0)) {
            throw new NoClientsException();
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

    /** Goes on counting where a checkpoint left. */
    void resume(long communicatedBytes, long trips) {
        bytes = communicatedBytes;
        roundTrips = trips;
    }

    /** Waits for all, without a mean. */
    void meet() {
        clients.timed(Phase.EXCHANGE, () -> {
            post();
            averaging.meet();
        });
    }

    /** How means are worked out. */
    String title() {
        return averaging.title();
    }

    /** Returns when no device uses what is another's any more, whether they are done or have failed. */
    void leave() {
        averaging.drain();
        meeting.departure.arriveAndAwaitAdvance();
        averaging.disband();
        meeting.departure.arriveAndAwaitAdvance();
    }

    @Override
    public void close() {
        averaging.close();
    }
}
