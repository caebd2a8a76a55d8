package org.fedcomuon.cluster;

/**
 * What connects the members of a federation, as one member sees it. A member has some of the clients and runs their
 * local steps by itself; now and then all meet, and means over all clients are worked out in client order, so that a
 * run has the same bits however its clients are divided.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="cluster"}
 *
 * <p>All members make the same calls in the same order. Called by one thread at a time: a member's device meets the
 * others, and what runs the federation says how it ended.
 */
public interface Cluster extends AutoCloseable {
    /** How many there are. */
    int members();

    /** Which one this is, from 0. Member 0 speaks for the run: it tells listeners, evaluates and writes files. */
    int self();

    /**
     * Brings what this member has to the others, waits for all, and takes what they agreed on.
     *
     * @throws MemberFailedException when a member cannot go on
     */
    Answer meet(Contribution mine);

    /**
     * Whether this member was lost and has been started again, from a checkpoint and what was answered since then: then
     * files of this run that it finds may be its own.
     */
    default boolean isRejoining() {
        return false;
    }

    /** Tells the others that this member cannot go on; they learn it when they meet next. Never throws. */
    void fail(String reason);

    @Override
    void close();
}
