package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Variable;

/**
 * Means of devices that reach each other's memory: one kernel reads a device's stretch of every client where it is, and
 * writes the mean to the first client of every device. Nothing is copied between the devices, and no room is needed.
 */
final class DirectAveraging extends OrderedAveraging {
    DirectAveraging(SharedState shared, int self, Clients clients, Placement placement) {
        super(shared, self, clients, placement);
    }

    @Override
    void sum(int i, long length) {
        for (int other = 0; other < shared.devices(); other++) {
            device.await(ready(other));
        }
        long from = start(length, self);
        long size = start(length, self + 1) - from;
        var rows = new Batch[shared.weights.length]; // by client
        var targets = new ArrayList<Batch>();
        for (int other = 0; other < shared.devices(); other++) {
            Buffer values = shared.posted[other][i].buffer();
            List<Integer> here = placement.clients().get(other);
            for (int k = 0; k < here.size(); k++) {
                rows[here.get(k)] = new Batch(values, k * length + from, 1, size, size);
            }
            targets.add(rows[here.getFirst()]);
        }
        if (size > 0) {
            device.average(List.of(rows), shared.weights, targets);
        }
        summed.record();
    }

    /** From the first client here to its neighbours, when no device reads their values any more. */
    @Override
    void spread(Variable variable) {
        for (OrderedAveraging other : shared.ordered) {
            device.await(other.summed);
        }
        spreadFirst(variable);
    }
}
