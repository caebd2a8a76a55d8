package org.fedcomuon.federation;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.fedcomuon.cluster.Cluster.MeanBlock;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.StreamEvent;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Variable;

/**
 * Means of several devices of this process. For each section of a variable
 *
 * <ol>
 *   <li>each device computes the exponents of its own clients,
 *   <li>combines those of all devices, and computes the sums of its own clients,
 *   <li>finishes its stretch of the section from the sums of all devices,
 *   <li>and brings the mean to all of its clients.
 * </ol>
 *
 * <p>The subclasses differ in how a device gets at what the others have computed. Sections follow each other like
 * instructions of a processor: while the first is in its third step, the second is in its second, and the next in its
 * first. The host threads meet between steps, only to know that events have been recorded; which work waits for which,
 * the devices know by these events.
 */
abstract sealed class PeerAveraging implements Averaging permits PeerReads, PeerCopies {
    /**
     * What a section has between its steps. Two take turns: when one is in its last step, its memory is in use no more.
     */
    static final int SLOTS = 2;

    private static final int STEPS = 4;

    final SharedState shared;
    final int self;
    final Clients clients;
    final Device device;
    final List<Slot> slots = new ArrayList<>();
    private final long mostElements;
    private final Deque<AutoCloseable> owned = new ArrayDeque<>();
    private long capacity; // elements of a section that there is room for
    private long bytes;

    /** The memory of a section, and the events of its steps. */
    final class Slot {
        final StreamEvent exponentsReady = own(device.event());
        final StreamEvent sumsReady = own(device.event()); // and all exponents have been read
        final StreamEvent meanReady = own(device.event()); // and all sums have been read
        final GrowingBuffer exponents = own(new GrowingBuffer(device, "exponents of a section", ElementType.UINT8));
        final GrowingBuffer maxima = own(new GrowingBuffer(device, "exponents of all devices", ElementType.UINT8));
        final GrowingBuffer sums = own(new GrowingBuffer(device, "sums of a section", ElementType.INT64));
    }

    /** @param mostElements of a section; 0 to choose */
    PeerAveraging(SharedState shared, int self, Clients clients, long mostElements) {
        this.shared = shared;
        this.self = self;
        this.clients = clients;
        this.device = clients.device();
        this.mostElements = mostElements > 0 ? mostElements : MeanBlock.MOST_ELEMENTS;
        shared.peers[self] = this;
    }

    /** Creates what a section needs; the subclass calls it, and closes this if it fails. */
    final void open() {
        for (int i = 0; i < SLOTS; i++) {
            slots.add(new Slot());
        }
    }

    final <T extends AutoCloseable> T own(T resource) {
        owned.push(resource);
        return resource;
    }

    @Override
    public final void post(List<Variable> posted, double[] weights) {
        shared.posted.set(self, posted);
        shared.barrier.await();
    }

    @Override
    public final void average(List<Variable> posted, double[] weights, RoundWeights round) {
        List<Section> sections = Section.of(posted, mostElements);
        makeRoom(Section.longest(sections));
        for (int i = 0; i < sections.size() + STEPS - 1; i++) {
            if (i < sections.size()) {
                findExponents(sections.get(i), slots.get(i % SLOTS), i % SLOTS, weights);
            }
            if (isOne(i - 1, sections)) {
                sum(sections.get(i - 1), (i - 1) % SLOTS, weights, round);
            }
            if (isOne(i - 2, sections)) {
                finish(sections.get(i - 2), (i - 2) % SLOTS, round);
            }
            if (isOne(i - 3, sections)) {
                take(sections.get(i - 3), (i - 3) % SLOTS);
            }
            shared.barrier.await();
        }
    }

    private static boolean isOne(int i, List<Section> sections) {
        return i >= 0 && i < sections.size();
    }

    private void makeRoom(long longest) {
        if (longest <= capacity) {
            return;
        }
        capacity = longest;
        for (int i = 0; i < SLOTS; i++) {
            for (PeerAveraging other : shared.peers) {
                awaitLast(other, i);
            }
            Slot slot = slots.get(i);
            slot.exponents.grow(capacity);
            slot.maxima.grow(capacity);
            slot.sums.grow(capacity);
            makeRoom(i, capacity);
            slot.sumsReady.record(); // other streams use memory after this one has allocated it
            slot.meanReady.record();
        }
        shared.barrier.await(); // all have the room that others read
    }

    /** Makes this device wait until another uses nothing of a slot of this one. */
    void awaitLast(PeerAveraging other, int slot) {
        device.await(other.slots.get(slot).meanReady);
    }

    /** Enlarges what the subclass has for a slot. */
    abstract void makeRoom(int slot, long elements);

    private void findExponents(Section section, Slot slot, int i, double[] weights) {
        for (PeerAveraging other : shared.peers) {
            device.await(other.slots.get(i).sumsReady); // of the section before: no device reads its exponents any more
        }
        device.meanExponents(section.all(), weights, slot.exponents.vector(0, section.count()));
        slot.exponentsReady.record();
    }

    private void sum(Section section, int i, double[] weights, RoundWeights round) {
        Slot slot = slots.get(i);
        long count = section.count();
        var parts = new ArrayList<Batch>();
        for (int other = 0; other < shared.devices(); other++) {
            parts.add(other == self ? slot.exponents.vector(0, count) : exponents(other, i, count));
        }
        awaitExponents(i);
        device.combineExponents(parts, slot.maxima.vector(0, count));
        for (PeerAveraging other : shared.peers) {
            device.await(other.slots.get(i).meanReady); // of the section before: no device reads its sums any more
        }
        device.meanSums(
                section.all(), weights, round.terms(), slot.maxima.vector(0, count), slot.sums.vector(0, count));
        slot.sumsReady.record();
        bytes += 2L * (shared.devices() - 1) * count; // to and from
    }

    private void finish(Section section, int i, RoundWeights round) {
        Slot slot = slots.get(i);
        long from = start(section, self);
        long size = start(section, self + 1) - from;
        if (size > 0) {
            var parts = new ArrayList<Batch>();
            for (int other = 0; other < shared.devices(); other++) {
                parts.add(other == self ? slot.sums.vector(from, size) : sums(other, i, from, size));
            }
            awaitSums(i);
            device.finishMean(
                    parts,
                    slot.maxima.vector(from, size),
                    round.terms(),
                    round.total(),
                    targets(section, i, from, size));
        }
        slot.meanReady.record();
        int others = shared.devices() - 1;
        bytes += (others * size + section.count() - size) * (Long.BYTES + Float.BYTES); // to and from
    }

    /** Returns where the stretch of a device begins. */
    final long start(Section section, int other) {
        return section.count() * other / shared.devices();
    }

    /** Returns the exponents of another device where this one reads them, after {@link #awaitExponents}. */
    abstract Batch exponents(int other, int slot, long count);

    /** Makes this device wait for the exponents of all others. */
    abstract void awaitExponents(int slot);

    /** Returns sums of another device where this one reads them, after {@link #awaitSums}. */
    abstract Batch sums(int other, int slot, long from, long count);

    /** Makes this device wait for the sums of all others. */
    abstract void awaitSums(int slot);

    /** Returns where the mean of this device's stretch is written. */
    abstract List<Batch> targets(Section section, int slot, long from, long count);

    /** Brings the mean of the whole section to all clients here. */
    abstract void take(Section section, int slot);

    @Override
    public final long exchangedBytes() {
        return bytes;
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
