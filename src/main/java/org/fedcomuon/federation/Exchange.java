package org.fedcomuon.federation;

import java.util.List;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Phase;
import org.fedcomuon.method.Server;
import org.fedcomuon.method.Variable;

/**
 * The server, as one device sees it. There is no place where everything comes together: each device works out the mean
 * of its own stretch of a variable, over all clients in their order, and the others copy it. So the bits are those that
 * one device would get.
 */
final class Exchange implements Server, AutoCloseable {
    private final Meeting meeting;
    private final int self;
    private final Clients clients;
    private final Placement placement;
    private final List<Double> baseWeights;
    private final double allWeights;
    private Buffer stretch;
    private double share = 1;
    private int participants;
    private long bytes;
    private long roundTrips;

    Exchange(Meeting meeting, int self, Clients clients, Placement placement, List<Double> baseWeights) {
        this.meeting = meeting;
        this.self = self;
        this.clients = clients;
        this.placement = placement;
        this.baseWeights = baseWeights;
        double sum = 0;
        for (double weight : baseWeights) {
            sum += weight;
        }
        allWeights = sum;
        stretch = clients.device().allocate("a stretch of the mean", ElementType.FLOAT32, 0);
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
            post(variables);
            meeting.rendezvous.await();
            count();
            for (int i = 0; i < variables.length; i++) {
                if (meeting.devices() == 1) {
                    clients.device().average(all(variables[i]), meeting.weights);
                } else {
                    gatherAndSpread(i, variables[i]);
                }
            }
        });
    }

    private void post(Variable... variables) {
        meeting.posted[self] = variables;
        for (int k = 0; k < clients.count(); k++) {
            int client = clients.number(k);
            meeting.weights[client] = clients.takesPart(k) ? baseWeights.get(client) : 0;
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

    private Batch all(Variable variable) {
        return variable.buffer().batch(clients.count(), variable.length());
    }

    private void gatherAndSpread(int i, Variable variable) {
        Device device = clients.device();
        long length = variable.length();
        long from = start(length, self);
        long size = start(length, self + 1) - from;
        int total = meeting.weights.length;
        if (stretch.length() < total * size) {
            stretch.close();
            stretch = device.allocate("a stretch of the mean", ElementType.FLOAT32, total * size);
        }
        for (int other = 0; other < meeting.devices(); other++) {
            Buffer source = meeting.posted[other][i].buffer();
            List<Integer> rows = placement.clients().get(other);
            for (int k = 0; k < rows.size(); k++) {
                stretch.copyFrom(source, k * length + from, rows.get(k) * size, size);
            }
        }
        device.average(stretch.batch(total, size), meeting.weights);
        meeting.parts[self] = stretch;
        meeting.rendezvous.await(); // every stretch is worked out, and every device has read what it needs
        for (int other = 0; other < meeting.devices(); other++) {
            long at = start(length, other);
            long count = start(length, other + 1) - at;
            for (long k = 0; k < clients.count(); k++) {
                variable.buffer().copyFrom(meeting.parts[other], 0, k * length + at, count);
            }
        }
        meeting.rendezvous.await(); // nobody reads a stretch any more
    }

    /** Where the stretch of a device begins. */
    private long start(long length, int device) {
        return length * device / meeting.devices();
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

    @Override
    public void close() {
        stretch.close();
    }
}
