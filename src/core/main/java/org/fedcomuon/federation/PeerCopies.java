package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.CopyStream;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.StreamEvent;
import org.fedcomuon.method.Clients;

/**
 * Means of devices that do not reach each other's memory: each copies the exponents of the others, their sums of its
 * own stretch, and the means of theirs. The copies have a stream of their own, so that those of one section run beside
 * the kernels of the next.
 */
final class PeerCopies extends PeerAveraging {
    private final CopyStream stream;
    private final List<Arrivals> arrivals = new ArrayList<>(); // by slot

    /** What a section has from the other devices. */
    private final class Arrivals {
        final StreamEvent exponentsHere = own(stream.event());
        final StreamEvent sumsHere = own(stream.event());
        final StreamEvent meanHere = own(stream.event());
        final GrowingBuffer exponents = own(new GrowingBuffer(device, "exponents of other devices", ElementType.UINT8));
        final GrowingBuffer sums = own(new GrowingBuffer(device, "sums of other devices", ElementType.INT64));
        final GrowingBuffer mean = own(new GrowingBuffer(device, "a stretch of the mean", ElementType.FLOAT32));
    }

    PeerCopies(SharedState shared, int self, Clients clients, long mostElements) {
        super(shared, self, clients, mostElements);
        try {
            stream = own(device.copyStream());
            open();
            for (int i = 0; i < SLOTS; i++) {
                arrivals.add(new Arrivals());
            }
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    private static PeerCopies of(PeerAveraging other) {
        return (PeerCopies) other; // all devices have the same kind
    }

    @Override
    void awaitLast(PeerAveraging other, int slot) {
        super.awaitLast(other, slot);
        device.await(of(other).arrivals.get(slot).meanHere);
    }

    @Override
    void makeRoom(int slot, long elements) {
        Arrivals here = arrivals.get(slot);
        int others = shared.devices() - 1;
        long stretch = Math.ceilDiv(elements, shared.devices());
        here.exponents.grow(others * elements);
        here.sums.grow(others * stretch);
        here.mean.grow(stretch);
    }

    /** Returns the number of another device among the others. */
    private int place(int other) {
        return other < self ? other : other - 1;
    }

    @Override
    Batch exponents(int other, int slot, long count) {
        Arrivals here = arrivals.get(slot);
        long to = place(other) * count;
        stream.await(slots.get(slot).sumsReady); // of the section before, which has read what was there
        stream.await(shared.peers[other].slots.get(slot).exponentsReady);
        stream.copy(
                here.exponents.get(),
                to,
                shared.peers[other].slots.get(slot).exponents.get(),
                0,
                count);
        return here.exponents.vector(to, count);
    }

    @Override
    void awaitExponents(int slot) {
        arrivals.get(slot).exponentsHere.record();
        device.await(arrivals.get(slot).exponentsHere);
    }

    @Override
    Batch sums(int other, int slot, long from, long count) {
        Arrivals here = arrivals.get(slot);
        long to = place(other) * count;
        stream.await(slots.get(slot).meanReady); // of the section before, which has read what was there
        stream.await(shared.peers[other].slots.get(slot).sumsReady);
        stream.copy(
                here.sums.get(), to, shared.peers[other].slots.get(slot).sums.get(), from, count);
        return here.sums.vector(to, count);
    }

    @Override
    void awaitSums(int slot) {
        arrivals.get(slot).sumsHere.record();
        device.await(arrivals.get(slot).sumsHere);
    }

    /** The first client here has it at once; the others copy theirs from what only the next section overwrites. */
    @Override
    List<Batch> targets(Section section, int slot, long from, long count) {
        for (PeerAveraging other : shared.peers) {
            device.await(of(other).arrivals.get(slot).meanHere); // of the section before: no device reads it any more
        }
        return List.of(section.first(from, count), arrivals.get(slot).mean.vector(0, count));
    }

    @Override
    void take(Section section, int slot) {
        stream.await(slots.get(slot).sumsReady); // the values here have been read
        for (int other = 0; other < shared.devices(); other++) {
            long from = start(section, other);
            long size = start(section, other + 1) - from;
            if (other != self && size > 0) {
                stream.await(shared.peers[other].slots.get(slot).meanReady);
                stream.copy(
                        section.variable().buffer(),
                        section.at() + from,
                        of(shared.peers[other]).arrivals.get(slot).mean.get(),
                        0,
                        size);
            }
        }
        StreamEvent here = arrivals.get(slot).meanHere;
        here.record();
        device.await(here);
        section.spread(device);
    }

    @Override
    public String title() {
        return "peer (copies)";
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
}
