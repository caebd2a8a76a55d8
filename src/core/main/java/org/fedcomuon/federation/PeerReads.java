package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.StreamEvent;
import org.fedcomuon.method.Clients;

/**
 * Means of GPUs that reach each other's memory: kernels read the exponents and sums of the others where they are, and
 * write the mean of a stretch to the first client of every device.
 */
final class PeerReads extends PeerAveraging {
    PeerReads(SharedState shared, int self, Clients clients, long mostElements) {
        super(shared, self, clients, mostElements);
        try {
            open();
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    @Override
    void makeRoom(int slot, long elements) {}

    @Override
    Batch exponents(int other, int slot, long count) {
        return shared.peers[other].slots.get(slot).exponents.vector(0, count);
    }

    @Override
    void awaitExponents(int slot) {
        for (PeerAveraging other : shared.peers) {
            device.await(other.slots.get(slot).exponentsReady);
        }
    }

    @Override
    Batch sums(int other, int slot, long from, long count) {
        return shared.peers[other].slots.get(slot).sums.vector(from, count);
    }

    @Override
    void awaitSums(int slot) {
        for (PeerAveraging other : shared.peers) {
            device.await(other.slots.get(slot).sumsReady);
        }
    }

    /** Nobody reads the values of this section any more: all sums of it are computed. */
    @Override
    List<Batch> targets(Section section, int slot, long from, long count) {
        var targets = new ArrayList<Batch>();
        for (int other = 0; other < shared.devices(); other++) {
            targets.add(Section.ofFirst(
                    shared.posted.get(other).get(section.posted()).buffer(), section.at() + from, count));
        }
        return targets;
    }

    @Override
    void take(Section section, int slot) {
        for (PeerAveraging other : shared.peers) {
            StreamEvent written = other.slots.get(slot).meanReady;
            device.await(written);
        }
        section.spread(device);
    }

    @Override
    public String title() {
        return "peer (reads)";
    }
}
