package org.fedcomuon.cluster;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Clients;

/**
 * Connects the members of a federation, as one member sees it. A member has some of the clients and runs their local
 * steps by itself. In an exchange, the members first tell each other their status, which is small, and then compute
 * means over all clients block by block: each computes what its own clients add to a mean, as integers, and an engine
 * adds them up in any order and any grouping. So results are bit-identical however the clients are divided.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="cluster"}
 *
 * <p>All members make the same calls in the same order: an {@link #exchange}, and then {@link #mean} if variables were
 * posted. Called by one thread at a time: that of the member's device, or that which runs the federation.
 */
public interface Cluster extends AutoCloseable {
    /** Returns the number of members. */
    int members();

    /** Returns the number of this member, from 0. Member 0 notifies listeners, evaluates and writes files. */
    int self();

    /**
     * Sends this member's status, waits for those of all members, and returns all of them in the order of the members.
     * An engine need not look into them ({@link WireFormat} makes bytes of them): whether the members run the same is
     * found by the caller, and by all members alike.
     *
     * @throws MemberFailedException when a member has failed
     */
    List<MemberStatus> exchange(MemberStatus mine);

    /**
     * Computes the means of all blocks of the variables posted in the last {@link #exchange}, and returns when the
     * clients here have them. All members bring blocks of the same lengths in the same order. Blocks are independent of
     * each other: the engine decides how many are under way at a time, so that one is computed while another travels.
     *
     * @throws MemberFailedException when a member has failed
     */
    void mean(List<? extends MeanBlock> blocks);

    /**
     * Returns the number of elements of a block that this engine reduces fastest, the same for all members and at most
     * {@link MeanBlock#MOST_ELEMENTS}. An engine that reduces a block before it begins the next is faster with blocks
     * that stay in a cache; one that sends pieces of several blocks at once takes large ones.
     */
    default int blockElements() {
        return MeanBlock.MOST_ELEMENTS;
    }

    /**
     * Returns the bytes that this member has sent and received so far, headers included. They depend on the posted
     * variables and the number of members, not on the number of clients.
     */
    long exchangedBytes();

    /**
     * Returns whether this member was lost and has been started again, from a checkpoint and the exchanges since then.
     * Files of this run that it finds may then be its own.
     */
    default boolean isRejoining() {
        return false;
    }

    /**
     * Returns whether the engine keeps the lock of the run's directory, because member 0 may be started again in
     * another process; otherwise member 0 takes it.
     */
    default boolean keepsLock() {
        return false;
    }

    /** Notifies the others that this member has failed; their next exchange throws. Never throws itself. */
    void fail(String reason);

    @Override
    void close();

    /**
     * What a member tells all others in an exchange. It has what they cannot know by themselves, and does not grow with
     * the number of clients: all members know the weights and who takes part in a round, but not who was dropped.
     *
     * @param run a fingerprint of the problem, data and method
     * @param step it is in, which is the same for all members of a run
     * @param stop whether it has been asked to stop; that of member 0 counts
     * @param posted the variables that are to be averaged; none if the members only wait for each other
     * @param dropped the numbers of its clients that were dropped by a fault in this round, ascending
     * @param seconds spent so far
     * @param faults of its clients since the last exchange
     */
    record MemberStatus(
            String run,
            long step,
            boolean stop,
            List<Posted> posted,
            List<Integer> dropped,
            Map<Clients.Phase, Double> seconds,
            List<ClientFault> faults) {
        /**
         * A variable of which a mean is to be computed.
         *
         * @param length elements per client
         */
        public record Posted(String name, long length) {
            @Override
            public String toString() {
                return "%d of %s".formatted(length, name);
            }
        }

        /** Copies. */
        public MemberStatus {
            posted = List.copyOf(posted);
            dropped = List.copyOf(dropped);
            seconds = Map.copyOf(seconds);
            faults = List.copyOf(faults);
        }

        /** Returns the same status with the stop flag set. */
        public MemberStatus stopping() {
            return new MemberStatus(run, step, true, posted, dropped, seconds, faults);
        }

        /**
         * Checks that all members are at the same point of the same run. Another version, data or setting on one of the
         * hosts shows here at the latest. A federation calls this after every exchange, in every member.
         *
         * @param all statuses, in the order of the members
         * @throws MemberFailedException naming the first member that differs from member 0
         */
        public static void requireSame(List<MemberStatus> all) {
            MemberStatus first = all.getFirst();
            for (int member = 1; member < all.size(); member++) {
                MemberStatus each = all.get(member);
                if (!each.what().equals(first.what())) {
                    throw new MemberFailedException(
                            member, "it brings %s where member 0 brings %s".formatted(each.what(), first.what()));
                }
                if (!each.run.equals(first.run)) {
                    throw new MemberFailedException(
                            member, "it does not run what member 0 runs: its data or its settings are others");
                }
            }
        }

        private String what() {
            var text = new StringBuilder("step %d".formatted(step));
            posted.forEach(each -> text.append(", ").append(each));
            return text.toString();
        }
    }

    /**
     * A part of a variable whose mean the members compute together, as an engine sees it. The members agree on an
     * exponent for each element, the maximum of those of their clients; then each has a sum of integers, and the sum of
     * these sums modulo 2^64 gives the mean. Maximum and sum are associative and commutative, so an engine may reduce
     * in any order and grouping, and the mean is exact up to the rounding that one process would do.
     *
     * <p>The calls for a block, in this order: {@link #exponents}, {@link #sums} with the exponents of all members, and
     * {@link #finish} with the sums of all members. Where another process has computed the mean, {@link #receive} takes
     * the place of {@code finish}; a member that repeats an exchange whose mean is known calls {@code receive} alone.
     *
     * <p>Memory is the engine's, little-endian, of any kind; native memory at a multiple of 8 is used in place on a
     * CPU, other memory is copied. Nothing keeps it after a call.
     *
     * <p>Called by the member's device thread only, between {@link Cluster#exchange} and the return of
     * {@link Cluster#mean}.
     */
    interface MeanBlock {
        /** The maximal number of elements of a block: 4 MiB of exponents, 32 MiB of sums, 16 MiB of a mean. */
        int MOST_ELEMENTS = 1 << 22;

        /** Returns the number of elements. */
        int length();

        /**
         * Returns the bound of the number of terms that sums are scaled by, which is the same for all members and
         * blocks of an exchange. Needed to compute a mean elsewhere.
         */
        long terms();

        /** Returns the sum of the weights of all clients of all members. Needed to compute a mean elsewhere. */
        double total();

        /** Computes the exponents of the clients here: a byte per element, to be compared unsigned. */
        void exponents(MemorySegment into);

        /**
         * Computes the sums of the clients here: 8 bytes per element, to be added modulo 2^64.
         *
         * @param exponents of all members: the maximum of theirs, element by element
         */
        void sums(MemorySegment exponents, MemorySegment into);

        /**
         * Computes the mean and gives it to all clients here.
         *
         * @param exponents of all members, as for {@link #sums}
         * @param sums of all members, added up
         */
        void finish(MemorySegment exponents, MemorySegment sums);

        /** Gives a mean that was computed elsewhere, of floats, to all clients here. */
        void receive(MemorySegment mean);
    }
}
