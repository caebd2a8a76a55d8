package org.fedcomuon.federation;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.CopyStream;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.StreamEvent;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Variable;

/**
 * Means summed in client order: each device computes its own stretch of a variable over all clients, and the others
 * copy it. So the bits are those that one device would get.
 *
 * <p>A stretch is gathered in chunks, into two slots in turn: while one chunk is summed, the next is copied beside it.
 * The devices meet on the host only to say that everything has been given out; what has to wait for what, the devices
 * know by marks.
 */
final class OrderedAveraging implements Averaging {
    private static final int SLOTS = 2;
    private static final long SLOT_BYTES = 32 << 20;
    /** More chunks than this give no more overlap worth having. */
    private static final long CHUNKS = 8;
    /** Elements; below, starting a copy takes longer than the copy. */
    private static final long LEAST_CHUNK = 1 << 14;

    private final SharedState shared;
    private final int self;
    private final Clients clients;
    private final Device device;
    private final Placement placement;
    private final long mostChunk;
    private final Deque<AutoCloseable> owned = new ArrayDeque<>();
    private final CopyStream stream;
    private final StreamEvent ready; // what is posted has been computed
    private final StreamEvent gathered; // the stream has read what it needs of everybody's
    private final StreamEvent summed; // the stretch is computed
    private final StreamEvent taken; // all stretches have arrived here
    private final StreamEvent[] filled = new StreamEvent[SLOTS];
    private final StreamEvent[] free = new StreamEvent[SLOTS];
    private final Buffer[] slots = new Buffer[SLOTS];
    private Buffer stretch;

    /** @param mostChunk elements; 0 to choose by size */
    OrderedAveraging(SharedState shared, int self, Clients clients, Placement placement, long mostChunk) {
        this.shared = shared;
        this.self = self;
        this.clients = clients;
        this.device = clients.device();
        this.placement = placement;
        this.mostChunk = mostChunk;
        try {
            stream = own(device.copyStream());
            ready = own(device.event());
            gathered = own(stream.event());
            summed = own(device.event());
            taken = own(stream.event());
            for (int slot = 0; slot < SLOTS; slot++) {
                filled[slot] = own(stream.event());
                free[slot] = own(device.event());
                slots[slot] = device.allocate("a chunk of all clients", ElementType.FLOAT32, 0);
            }
            stretch = device.allocate("a stretch of the mean", ElementType.FLOAT32, 0);
        } catch (RuntimeException e) {
            close();
            throw e;
        }
        shared.ordered[self] = this;
    }

    private <T extends AutoCloseable> T own(T resource) {
        owned.push(resource);
        return resource;
    }

    @Override
    public void post(Variable... posted) {
        shared.posted[self] = posted;
        ready.record();
        shared.barrier.await();
    }

    @Override
    public void average(int i, Variable variable) {
        if (shared.devices() == 1) {
            device.average(variable.buffer().batch(clients.count(), variable.length()), shared.weights);
            return;
        }
        gather(i, variable.length());
        shared.barrier.await(); // every device has given out its copies and sums
        spread(variable);
        shared.barrier.await(); // and has looked at everybody's events and stretch
    }

    private void gather(int i, long length) {
        long from = start(length, self);
        long size = start(length, self + 1) - from;
        for (OrderedAveraging other : shared.ordered) {
            stream.await(other.ready);
            device.await(other.taken); // of the previous exchange: no device reads the stretch any more
        }
        long chunk = chunk(size);
        makeRoom(size, chunk);
        long chunks = Math.ceilDiv(size, chunk);
        for (long c = 0; c <= chunks; c++) {
            if (c < chunks) {
                fill((int) (c % SLOTS), i, length, from + c * chunk, Math.min(chunk, size - c * chunk));
            }
            if (c > 0) {
                long at = (c - 1) * chunk;
                sum((int) ((c - 1) % SLOTS), at, Math.min(chunk, size - at));
            }
        }
        gathered.record();
        summed.record();
    }

    private long chunk(long size) {
        if (mostChunk > 0) {
            return mostChunk;
        }
        long fits = SLOT_BYTES / Float.BYTES / shared.weights.length;
        return Math.max(1, Math.min(fits, Math.max(LEAST_CHUNK, Math.ceilDiv(size, CHUNKS))));
    }

    private void makeRoom(long size, long chunk) {
        long capacity = Math.min(size, chunk) * shared.weights.length;
        for (int slot = 0; slot < SLOTS; slot++) {
            if (slots[slot].length() < capacity) {
                slots[slot].close();
                slots[slot] = device.allocate("a chunk of all clients", ElementType.FLOAT32, capacity);
                free[slot].record();
            }
        }
        if (stretch.length() < size) {
            stretch.close();
            stretch = device.allocate("a stretch of the mean", ElementType.FLOAT32, size);
        }
    }

    /** Elements {@code at} to {@code at + count} of every client, in client order, come to a slot. */
    private void fill(int slot, int i, long length, long at, long count) {
        stream.await(free[slot]);
        for (int other = 0; other < shared.devices(); other++) {
            Buffer source = shared.posted[other][i].buffer();
            List<Integer> rows = placement.clients().get(other);
            for (int k = 0; k < rows.size(); k++) {
                stream.copy(slots[slot], rows.get(k) * count, source, k * length + at, count);
            }
        }
        filled[slot].record();
    }

    private void sum(int slot, long at, long count) {
        device.await(filled[slot]);
        device.average(slots[slot].batch(shared.weights.length, count), shared.weights);
        stretch.copyFrom(slots[slot], 0, at, count);
        free[slot].record();
    }

    /** All stretches come to the first client here, once, and from there to its neighbours. */
    private void spread(Variable variable) {
        long length = variable.length();
        Buffer values = variable.buffer();
        for (OrderedAveraging other : shared.ordered) {
            stream.await(other.gathered); // it has read the values that are to be overwritten
        }
        for (int other = 0; other < shared.devices(); other++) {
            long at = start(length, other);
            stream.await(shared.ordered[other].summed);
            stream.copy(values, at, shared.ordered[other].stretch, 0, start(length, other + 1) - at);
        }
        taken.record();
        device.await(taken);
        int others = clients.count() - 1;
        if (others > 0) {
            device.ema(
                    1,
                    new Batch(values, 0, others, length, others == 1 ? length : 0),
                    new Batch(values, length, others, length, length));
        }
    }

    /** Returns where the stretch of a device begins. */
    private long start(long length, int other) {
        return length * other / shared.devices();
    }

    @Override
    public String title() {
        return Federation.ExchangeKind.ORDERED.toString();
    }

    @Override
    public void drain() {
        try {
            stream.synchronize();
            device.synchronize();
        } catch (DeviceException e) {
            // The failed call throws, or has thrown.
        }
    }

    @Override
    public void disband() {}

    @Override
    public void close() {
        for (Buffer slot : slots) {
            if (slot != null) {
                slot.close();
            }
        }
        if (stretch != null) {
            stretch.close();
        }
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
