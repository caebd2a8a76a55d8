package org.fedcomuon.cluster;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Clients;

/**
 * Connects the members of a federation, as one member sees it. A member has some of the clients and runs their local
 * steps by itself. In an exchange, means over all clients are computed in client order, so that results are
 * bit-identical however the clients are divided.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="cluster"}
 *
 * <p>All members make the same calls in the same order. Called by one thread at a time: that of the member's device, or
 * that which runs the federation.
 */
public interface Cluster extends AutoCloseable {
    /** Returns the number of members. */
    int members();

    /** Returns the number of this member, from 0. Member 0 notifies listeners, evaluates and writes files. */
    int self();

    /**
     * Sends this member's contribution, waits for those of all members, and returns the answer that all receive.
     *
     * @throws MemberFailedException when a member has failed
     */
    Answer exchange(Contribution mine);

    /**
     * Returns whether this member was lost and has been started again, from a checkpoint and the answers since then.
     * Files of this run that it finds may then be its own.
     */
    default boolean isRejoining() {
        return false;
    }

    /** Notifies the others that this member has failed; their next exchange throws. Never throws itself. */
    void fail(String reason);

    @Override
    void close();

    /**
     * The answer that all members receive from an exchange.
     *
     * <p>Immutable, except for the means.
     *
     * @param statuses of every member, in their order
     * @param weights of every client
     * @param means of the values, in the order of the contributions; valid until the next exchange
     */
    record Answer(List<MemberStatus> statuses, List<Double> weights, List<MemorySegment> means) {
        /** Copies the lists, not what is in the means. */
        public Answer {
            statuses = List.copyOf(statuses);
            weights = List.copyOf(weights);
            means = List.copyOf(means);
        }
    }

    /**
     * The status of a member.
     *
     * @param run a fingerprint of the problem, data and method
     * @param step it is in, which is the same for all members of a run
     * @param stop whether it has been asked to stop; that of member 0 counts
     * @param seconds spent so far
     * @param faults of its clients since the last exchange
     */
    record MemberStatus(
            String run, long step, boolean stop, Map<Clients.Phase, Double> seconds, List<ClientFault> faults) {
        /** Copies. */
        public MemberStatus {
            seconds = Map.copyOf(seconds);
            faults = List.copyOf(faults);
        }

        /** Returns the same status with the stop flag set. */
        public MemberStatus stopping() {
            return new MemberStatus(run, step, true, seconds, faults);
        }

        void writeTo(DataOutput out) throws IOException {
            out.writeUTF(WireFormat.clip(run));
            out.writeLong(step);
            out.writeBoolean(stop);
            out.writeInt(seconds.size());
            for (Map.Entry<Clients.Phase, Double> each : seconds.entrySet()) {
                out.writeUTF(each.getKey().name());
                out.writeDouble(each.getValue());
            }
            out.writeInt(faults.size());
            for (ClientFault fault : faults) {
                out.writeInt(fault.client());
                out.writeLong(fault.step());
                out.writeUTF(fault.kind().name());
                out.writeUTF(WireFormat.clip(fault.reason()));
            }
        }

        static MemberStatus readFrom(DataInput in) throws IOException {
            String run = in.readUTF();
            long step = in.readLong();
            boolean stop = in.readBoolean();
            var seconds = new EnumMap<Clients.Phase, Double>(Clients.Phase.class);
            for (int left = in.readInt(); left > 0; left--) {
                seconds.put(Clients.Phase.valueOf(in.readUTF()), in.readDouble());
            }
            var faults = new ArrayList<ClientFault>();
            for (int left = in.readInt(); left > 0; left--) {
                faults.add(new ClientFault(
                        in.readInt(), in.readLong(), ClientFault.Kind.valueOf(in.readUTF()), in.readUTF()));
            }
            return new MemberStatus(run, step, stop, seconds, faults);
        }
    }
}
