package org.fedcomuon.federation;

import java.nio.file.Path;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/** A checkpoint in a flight recording. */
@Name("org.fedcomuon.Checkpoint")
@Label("Checkpoint")
@Category("FedCoMuon")
@Description("The state of all clients, written to disk")
@StackTrace(false)
final class CheckpointEvent extends Event {
    @Label("Run")
    String run = "";

    @Label("Steps Done")
    long step;

    @Label("File")
    String file = "";

    void commit(String name, long steps, Path written) {
        end();
        if (shouldCommit()) {
            run = name;
            step = steps;
            file = written.toString();
            commit();
        }
    }
}
