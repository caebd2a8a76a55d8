package org.fedcomuon.cluster.spark;

import java.io.Serializable;
import java.util.UUID;

/**
 * What all members are to do; goes with each job.
 *
 * @param id of this run, that no other run in the same executor has
 * @param members how many there are
 * @param program that each of them runs
 */
record Order(String id, int members, Program program) implements Serializable {
    static Order of(int members, Program program) {
        return new Order(UUID.randomUUID().toString(), members, program);
    }

    /** What a member does, in a thread of its own, meeting the others as often as they meet it. */
    interface Program extends Serializable {
        /** Runs to the end; an exception is the member's last word. */
        void run(Member member, Start start) throws Exception;
    }
}
