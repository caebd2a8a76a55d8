package org.fedcomuon.federation;

import java.time.Duration;
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
    private final SharedState shared;
    private final Clients clients;
    private final Device device;
    private final NcclMean nccl;
    private final double[] ownWeights;
    private Buffer sum;

    /** All devices are here before any returns, and all fail when one does. */
    NcclAveraging(SharedState shared, int self, Clients clients, Duration timeLimit) {
        this.shared = shared;
        this.clients = clients;
        device = clients.device();
        ownWeights = new double[clients.count()];
        sum = device.allocate("a sum for NCCL", ElementType.FLOAT32, 0);
        try {
            shared.opened[self] = device;
            shared.barrier.await();
            if (self == 0) {
                shared.nccl = NcclMean.Group.of(List.of(shared.opened), timeLimit);
            }
            shared.barrier.await();
            nccl = Objects.requireNonNull(shared.nccl).join(device);
        } catch (RuntimeException e) {
            sum.close();
            throw e;
        }
        try {
            shared.barrier.await();
        } catch (RuntimeException e) {
            nccl.abandon();
            sum.close();
            throw e;
        }
    }

    @Override
    public void post(Variable... posted) {
        shared.barrier.await();
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
        for (double weight : shared.weights) {
            all += weight;
        }
        double here = 0;
        for (int k = 0; k < clients.count(); k++) {
            ownWeights[k] = shared.weights[clients.number(k)];
            here += ownWeights[k];
        }
        sum.zero();
        if (here > 0) {
            device.average(rows, ownWeights);
            device.ema(Math.min(1, here / all), rows.client(0), one);
        }
        nccl.sum(one);
        device.ema(1, new Batch(sum, 0, clients.count(), length, clients.count() == 1 ? length : 0), rows);
    }

    @Override
    public String title() {
        return "%s (%s)".formatted(Federation.ExchangeKind.NCCL, nccl.title());
    }

    /** Before the device is waited for, which would not return while a kernel of NCCL waits for another that failed. */
    @Override
    public void drain() {
        if (shared.barrier.isAborted()) {
            nccl.abandon();
        }
        try {
            device.synchronize();
        } catch (DeviceException e) {
            // The failed call throws, or has thrown.
        }
    }

    @Override
    public void disband() {
        nccl.close();
    }

    @Override
    public void close() {
        sum.close();
    }
}
