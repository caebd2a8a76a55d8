package org.fedcomuon.federation;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.StreamEvent;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Variable;

/**
 * Means summed in client order: each device computes its own stretch of a variable over all clients. So the bits are
 * those that one device would get. The subclasses differ in how a device gets at the values of the others.
 *
 * <p>The devices meet on the host only to say that everything has been given out; what has to wait for what, the
 * devices know by events.
 */
abstract sealed class OrderedAveraging implements Averaging permits DirectAveraging, StagedAveraging {
    final SharedState shared;
    final int self;
    final Clients clients;
    final Device device;
    final Placement placement;
    private final Deque<AutoCloseable> owned = new ArrayDeque<>();
    private final StreamEvent ready; // what is posted has been computed
    final StreamEvent summed; // the stretch is computed

    OrderedAveraging(SharedState shared, int self, Clients clients, Placement placement) {
        this.shared = shared;
        this.self = self;
        this.clients = clients;
        this.device = clients.device();
        this.placement = placement;
        ready = own(device.event());
        summed = own(device.event());
        shared.ordered[self] = this;
    }

    /**
     * Returns the faster of both: direct if every device reaches the memory of every other, else staged. All devices
     * are here before any returns.
     *
     * @param mostChunk elements, to stage in chunks of at most so many; 0 to choose by the devices and by size
     */
    static OrderedAveraging of(SharedState shared, int self, Clients clients, Placement placement, long mostChunk) {
        shared.opened[self] = clients.device();
        shared.barrier.await();
        boolean all = Arrays.stream(shared.opened).allMatch(clients.device()::reaches);
        shared.reaches[self] = all && mostChunk == 0;
        shared.barrier.await();
        for (boolean one : shared.reaches) {
            if (!one) {
                return new StagedAveraging(shared, self, clients, placement, mostChunk);
            }
        }
        return new DirectAveraging(shared, self, clients, placement);
    }

    final <T extends AutoCloseable> T own(T resource) {
        owned.push(resource);
        return resource;
    }

    @Override
    public final void post(Variable... posted) {
        shared.posted[self] = posted;
        ready.record();
        shared.barrier.await();
    }

    /** Returns the event after which the posted variables of a device may be read. */
    final StreamEvent ready(int other) {
        return shared.ordered[other].ready;
    }

    @Override
    public final void average(int i, Variable variable) {
        if (shared.devices() == 1) {
            device.average(variable.buffer().batch(clients.count(), variable.length()), shared.weights);
            return;
        }
        sum(i, variable.length());
        shared.barrier.await(); // every device has given out its copies and sums
        spread(variable);
        shared.barrier.await(); // and has looked at everybody's events and stretch
    }

    /** Computes the stretch of this device, of the {@code i}-th variable that was posted. */
    abstract void sum(int i, long length);

    /** Brings the mean to all clients here, when all devices have given out their sums. */
    abstract void spread(Variable variable);

    /** Copies the values of the first client here to all others. */
    final void spreadFirst(Variable variable) {
        long length = variable.length();
        Buffer values = variable.buffer();
        int others = clients.count() - 1;
        if (others > 0) {
            device.ema(
                    1,
                    new Batch(values, 0, others, length, others == 1 ? length : 0),
                    new Batch(values, length, others, length, length));
        }
    }

    /** Returns where the stretch of a device begins. */
    final long start(long length, int other) {
        return length * other / shared.devices();
    }

    @Override
    public final String title() {
        return Federation.ExchangeKind.ORDERED.toString();
    }

    @Override
    public void drain() {
        try {
            device.synchronize();
        } catch (DeviceException e) {
            // The failed call throws, or has thrown.
        }
    }

    @Override
    public final void disband() {}

    @Override
    public void close() {
        while (!owned.isEmpty()) {
            try {
                owned.pop().close();
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new AssertionError(e); // nothing here declares one
            }
        }
    }
}
