package org.fedcomuon.cluster.spark;

import java.io.Serializable;
import java.util.UUID;

/**
 * The specification that all members of a run share; part of every Spark job.
 *
 * @param id the identifier of this run, unique in an executor
 * @param members the number of members
 * @param program what each member runs
 */
record RunSpec(String id, int members, Program program) implements Serializable {
    static RunSpec of(int members, Program program) {
        return new RunSpec(UUID.randomUUID().toString(), members, program);
    }

    /** The program of a member, which runs in its own thread and takes part in every exchange. */
    interface Program extends Serializable {
        /** Runs to the end; an exception ends the member, and is reported to the driver. */
        void run(Member member, StartPoint start) throws Exception;
    }
}
