package org.fedcomuon.cluster.spark;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.network.client.TransportClient;
import org.fedcomuon.cluster.spark.Message.Kind;
import org.fedcomuon.cluster.spark.Message.Piece;
import org.fedcomuon.cluster.spark.PieceDevice.Slot;
import org.fedcomuon.device.ElementType;
import org.jspecify.annotations.Nullable;

/**
 * What a member does that has others below it: it adds up what these and itself contribute, sends that to the node
 * above, and passes on the answers. It keeps nothing beyond an answer; who misses one asks the driver. Thread-safe.
 */
final class Relay implements AutoCloseable {
    /** The connections of the member that it belongs to. */
    interface Links {
        /** Sends to the node above, if it is connected; values are held until it has settled. */
        void up(Message message, Slot values);

        /** Sends to a node below. */
        void down(TransportClient connection, Message message, Slot values);
    }

    private final int self;
    private final List<Integer> below;
    private final Links links;
    private final PieceDevice device = new PieceDevice();
    private final Map<Integer, TransportClient> connections = new ConcurrentHashMap<>(); // of those below
    private final Map<Piece, Gathering> gatherings = new HashMap<>(); // guarded by itself

    private static final class Gathering {
        final Map<Integer, Slot> exponents = new LinkedHashMap<>(); // by node
        final Map<Integer, Slot> sums = new LinkedHashMap<>();
        final Map<Kind, Upward> unanswered = new LinkedHashMap<>();

        @Nullable
        Slot combined; // exponents of all members, from above

        void release() {
            exponents.values().forEach(Slot::release);
            sums.values().forEach(Slot::release);
            unanswered.values().forEach(each -> each.values().release());
            if (combined != null) {
                combined.release();
            }
        }
    }

    /** What was sent to the node above. */
    private record Upward(Message message, Slot values) {}

    Relay(int self, List<Integer> below, Links links) {
        this.self = self;
        this.below = List.copyOf(below);
        this.links = links;
    }

    /** Begins to receive from a node below. */
    Transport.Incoming fromBelow(TransportClient connection, Message message) {
        connections.put(message.node(), connection);
        Slot slot = device.take(message.kind() == Kind.SUMS ? ElementType.INT64 : ElementType.UINT8);
        return new Transport.Incoming(slot.memory(message.count()), () -> contribute(message, slot), slot::release);
    }

    /** Takes what the member itself contributes. */
    void own(Message message, MemorySegment values) {
        Slot slot = device.take(message.kind() == Kind.SUMS ? ElementType.INT64 : ElementType.UINT8);
        slot.memory(message.count()).copyFrom(values);
        contribute(message, slot);
    }

    /** @param slot held; this takes it over */
    private void contribute(Message message, Slot slot) {
        synchronized (gatherings) {
            int now = message.exchange();
            gatherings.entrySet().removeIf(each -> {
                boolean old = each.getKey().exchange() < now;
                if (old) {
                    each.getValue().release();
                }
                return old;
            });
            Gathering gathering = gatherings.computeIfAbsent(message.piece(), _ -> new Gathering());
            boolean sums = message.kind() == Kind.SUMS;
            Map<Integer, Slot> parts = sums ? gathering.sums : gathering.exponents;
            if (gathering.unanswered.containsKey(message.kind()) || (!sums && gathering.combined != null)) {
                slot.release();
                repeatBelow(message, gathering);
                return;
            }
            Slot before = parts.put(message.node(), slot);
            if (before != null) {
                before.release(); // it is the same
            } else if (parts.containsKey(self) && parts.keySet().containsAll(below)) {
                device.submit(() -> send(message, gathering, List.copyOf(parts.values())));
            }
        }
    }

    private void repeatBelow(Message message, Gathering gathering) {
        TransportClient connection = connections.get(message.node());
        if (connection != null && gathering.combined != null) {
            links.down(connection, message.as(Kind.COMBINED, self, 0), gathering.combined);
        }
    }

    private void send(Message message, Gathering gathering, List<Slot> parts) {
        Slot all = parts.getFirst();
        if (message.kind() == Kind.SUMS) {
            parts.stream().skip(1).forEach(part -> add(part, all, message.count()));
        } else {
            device.combine(parts, message.count());
        }
        Message up = message.as(message.kind(), self, 0);
        synchronized (gatherings) {
            if (gatherings.get(message.piece()) != gathering) {
                return; // the driver has answered meanwhile, and all was released
            }
            (message.kind() == Kind.SUMS ? gathering.sums : gathering.exponents).clear();
            gathering.unanswered.put(message.kind(), new Upward(up, all));
            links.up(up, all);
        }
        parts.stream().skip(1).forEach(Slot::release);
    }

    private static void add(Slot part, Slot to, int elements) {
        MemorySegment from = part.memory(elements);
        MemorySegment sum = to.memory(elements);
        for (long i = 0; i < elements; i++) {
            sum.setAtIndex(
                    ValueLayout.JAVA_LONG,
                    i,
                    sum.getAtIndex(ValueLayout.JAVA_LONG, i) + from.getAtIndex(ValueLayout.JAVA_LONG, i));
        }
    }

    /** Returns memory for an answer from above, which the caller holds. */
    Slot take(Kind answer) {
        return device.take(answer == Kind.MEAN ? ElementType.FLOAT32 : ElementType.UINT8);
    }

    /** Passes an answer from above on to those below. */
    void answered(Message message, Slot values) {
        synchronized (gatherings) {
            Gathering gathering = gatherings.get(message.piece());
            if (gathering != null && message.kind() == Kind.MEAN) {
                gatherings.remove(message.piece());
                device.submit(gathering::release); // after what is being added up
            } else if (gathering != null && gathering.combined == null) {
                gathering.combined = values.hold();
            }
        }
        for (int node : below) {
            TransportClient connection = connections.get(node);
            if (connection != null) {
                links.down(connection, message.as(message.kind(), self, 0), values);
            }
        }
    }

    /** Sends everything up again that has no answer: the node above may be another one. */
    void repeat() {
        synchronized (gatherings) {
            for (Gathering gathering : gatherings.values()) {
                for (Upward sent : gathering.unanswered.values()) {
                    if (sent.message().kind() == Kind.SUMS || gathering.combined == null) {
                        links.up(sent.message(), sent.values());
                    }
                }
            }
        }
    }

    @Override
    public void close() {
        device.close();
    }
}
