package org.fedcomuon.cluster.spark;

import java.io.Serializable;
import java.security.SecureRandom;

/**
 * The specification that all members of a run share.
 *
 * @param number the number of this run, which is in every message: hard to guess, and unique in an executor
 * @param tree of the members
 * @param program what each member runs
 */
record RunSpec(long number, Tree tree, Program program) implements Serializable {
    static RunSpec of(Tree tree, Program program) {
        return new RunSpec(new SecureRandom().nextLong(), tree, program);
    }

    int members() {
        return tree.members();
    }

    /** The program of a member, which runs in its own thread and takes part in every exchange. */
    interface Program extends Serializable {
        /** Runs to the end; an exception ends the member, and is reported to the driver. */
        void run(Member member, StartPoint start) throws Exception;
    }
}
