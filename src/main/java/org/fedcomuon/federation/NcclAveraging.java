package org.fedcomuon.federation;

import java.util.List;
import java.util.Objects;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.NcclMean;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Variable;

/** Means by NCCL: each device sums its own clients, and NCCL adds up the sums of the devices. */
final class NcclAveraging implements Averaging {
    private final Meeting meeting;
    private final int self;
    private final Clients clients;
    private final Device device;
    private final NcclMean nccl;
    private final double[] ownWeights;
    private Buffer sum;

    /** All devices are here before any returns. */
    NcclAveraging(Meeting meeting, int self, Clients clients) {
        this.meeting = meeting;
        this.self = self;
        this.clients = clients;
        device = clients.device();
        ownWeights = new double[clients.count()];
        sum = device.allocate("a sum for NCCL", ElementType.FLOAT32, 0);
        try {
            meeting.opened[self] = device;
            meeting.rendezvous.await();
            if (self == 0) {
                meeting.nccl = NcclMean.of(List.of(meeting.opened));
            }
            meeting.rendezvous.await();
            nccl = Objects.requireNonNull(meeting.nccl);
        } catch (RuntimeException e) {
            sum.close();
            disband(); // nobody uses it: it takes all to come this far
            throw e;
        }
    }

    @Override
    public void meet(Variable... posted) {
        meeting.rendezvous.await();
    }

    @Override
    public void average(int i, Variable variable) {
        long length = variable.length();
        if (sum.length() < length) {
            sum.close();
            sum = device.allocate("a sum for NCCL", ElementType.FLOAT32, length);
        }
        Batch one = new Batch(sum, 0, 1, length, length);
        Batch rows = variable.buffer().batch(clients.count(), length);
        double all = 0;
        for (double weight : meeting.weights) {
            all += weight;
        }
        double here = 0;
        for (int k = 0; k < clients.count(); k++) {
            ownWeights[k] = meeting.weights[clients.number(k)];
            here += ownWeights[k];
        }
        sum.zero();
        if (here > 0) {
            device.average(rows, ownWeights);
            device.ema(Math.min(1, here / all), rows.client(0), one);
        }
        device.synchronize(); // what fails does so here, where no device waits within NCCL for this one
        meeting.rendezvous.await();
        nccl.sum(one);
        device.ema(1, new Batch(sum, 0, clients.count(), length, clients.count() == 1 ? length : 0), rows);
    }

    @Override
    public String title() {
        return "%s (%s)".formatted(ExchangeKind.NCCL, nccl.title());
    }

    @Override
    public void drain() {
        try {
            device.synchronize();
        } catch (DeviceException e) {
            // The call that failed has said so, or will.
        }
    }

    @Override
    public void disband() {
        NcclMean shared = meeting.nccl;
        if (self == 0 && shared != null) {
            shared.close();
        }
    }

    @Override
    public void close() {
        sum.close();
    }
}
