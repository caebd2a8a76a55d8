package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Variable;

/**
 * Means of one device, or of CPUs, whose memory is one: one kernel reads the values of all clients where they are, and
 * writes the mean to all of them. Of several devices each computes a stretch. Nothing is exchanged, and no room is
 * needed.
 */
final class DirectAveraging implements Averaging {
    private final SharedState shared;
    private final int self;
    private final Clients clients;

    DirectAveraging(SharedState shared, int self, Clients clients) {
        this.shared = shared;
        this.self = self;
        this.clients = clients;
    }

    @Override
    public void post(List<Variable> posted, double[] weights) {
        shared.posted.set(self, posted);
        shared.weights.set(self, weights);
        shared.numbers.set(
                self, IntStream.range(0, clients.count()).map(clients::number).toArray());
        shared.barrier.await();
    }

    @Override
    public void average(List<Variable> posted, double[] weights, RoundWeights round) {
        Device device = clients.device();
        for (int i = 0; i < posted.size(); i++) {
            Variable variable = posted.get(i);
            if (shared.devices() > 1) {
                averageStretch(device, i, variable.length(), round);
            } else {
                Batch rows = variable.buffer().batch(weights.length, variable.length());
                device.average(rows, weights, round.terms());
            }
        }
        if (shared.devices() > 1) {
            shared.barrier.await(); // no device goes on to write while another reads
        }
    }

    private void averageStretch(Device device, int posted, long length, RoundWeights round) {
        long from = length * self / shared.devices();
        long size = length * (self + 1) / shared.devices() - from;
        if (size == 0) {
            return;
        }
        var terms = new ArrayList<Term>();
        var targets = new ArrayList<Batch>();
        for (int other = 0; other < shared.devices(); other++) {
            Buffer values = shared.posted.get(other).get(posted).buffer();
            double[] weights = round.scaled(shared.weights.get(other));
            for (int k = 0; k < weights.length; k++) {
                var row = new Batch(values, k * length + from, 1, size, size);
                targets.add(row);
                if (weights[k] > 0) {
                    terms.add(new Term(shared.numbers.get(other)[k], row, weights[k]));
                }
            }
        }
        terms.sort(Comparator.comparingInt(Term::client)); // the weights are added up in this order
        device.average(
                terms.stream().map(Term::row).toList(),
                terms.stream().mapToDouble(Term::weight).toArray(),
                round.terms(),
                targets);
    }

    /** The values of a client that takes part, and its weight. */
    private record Term(int client, Batch row, double weight) {}

    @Override
    public String title() {
        return shared.devices() > 1 ? "shared memory" : "one device";
    }

    @Override
    public long exchangedBytes() {
        return 0;
    }

    @Override
    public void drain() {
        try {
            clients.device().synchronize();
        } catch (DeviceException e) {
            // The failed call throws, or has thrown.
        }
    }

    @Override
    public void disband() {}

    @Override
    public void close() {}
}
