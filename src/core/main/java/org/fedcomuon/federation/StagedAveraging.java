package org.fedcomuon.federation;

import java.util.List;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.CopyStream;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.StreamEvent;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Variable;

/**
 * Means of devices that do not reach each other's memory: each device copies its own stretch of all clients, sums it,
 * and the others copy the result.
 *
 * <p>A stretch is gathered in chunks, into two slots in turn: while one chunk is summed, the next is copied beside it.
 */
final class StagedAveraging extends OrderedAveraging {
    private static final int SLOTS = 2;
    private static final long SLOT_BYTES = 32 << 20;
    /** More chunks than this give no more overlap worth having. */
    private static final long CHUNKS = 8;
    /** Elements; below, starting a copy takes longer than the copy. */
    private static final long LEAST_CHUNK = 1 << 14;

    private final long mostChunk;
    private final CopyStream stream;
    private final StreamEvent gathered; // the stream has read what it needs of everybody's
    private final StreamEvent taken; // all stretches have arrived here
    private final StreamEvent[] filled = new StreamEvent[SLOTS];
    private final StreamEvent[] free = new StreamEvent[SLOTS];
    private final Buffer[] slots = new Buffer[SLOTS];
    private Buffer stretch;

    /** @param mostChunk elements; 0 to choose by size */
    StagedAveraging(SharedState shared, int self, Clients clients, Placement placement, long mostChunk) {
        super(shared, self, clients, placement);
        this.mostChunk = mostChunk;
        try {
            stream = own(device.copyStream());
            gathered = own(stream.event());
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
    }

    @Override
    void sum(int i, long length) {
        long from = start(length, self);
        long size = start(length, self + 1) - from;
        for (int other = 0; other < shared.devices(); other++) {
            stream.await(ready(other));
            device.await(of(other).taken); // of the previous exchange: no device reads the stretch any more
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
                sumSlot((int) ((c - 1) % SLOTS), at, Math.min(chunk, size - at));
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

    private void sumSlot(int slot, long at, long count) {
        device.await(filled[slot]);
        device.average(slots[slot].batch(shared.weights.length, count), shared.weights);
        stretch.copyFrom(slots[slot], 0, at, count);
        free[slot].record();
    }

    /** All stretches come to the first client here, once, and from there to its neighbours. */
    @Override
    void spread(Variable variable) {
        long length = variable.length();
        Buffer values = variable.buffer();
        for (int other = 0; other < shared.devices(); other++) {
            stream.await(of(other).gathered); // it has read the values that are to be overwritten
        }
        for (int other = 0; other < shared.devices(); other++) {
            long at = start(length, other);
            stream.await(of(other).summed);
            stream.copy(values, at, of(other).stretch, 0, start(length, other + 1) - at);
        }
        taken.record();
        device.await(taken);
        spreadFirst(variable);
    }

    private StagedAveraging of(int other) {
        return (StagedAveraging) shared.ordered[other]; // all devices have the same kind
    }

    @Override
    public void drain() {
        try {
            stream.synchronize();
        } catch (DeviceException e) {
            // The failed call throws, or has thrown.
        }
        super.drain();
    }

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
        super.close();
    }
}
