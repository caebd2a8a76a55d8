package org.fedcomuon.federation;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.fedcomuon.method.ClientFault;

/** A {@link ClientFault} in a flight recording. */
@Name("org.fedcomuon.ClientFault")
@Label("Client Fault")
@Category("FedCoMuon")
@Description("A client whose oracle failed, and which was dropped from the rest of its round")
@StackTrace(false)
final class ClientFaultEvent extends Event {
    @Label("Run")
    String run = "";

    @Label("Client")
    int client;

    @Label("Step")
    long step;

    @Label("Kind")
    String kind = "";

    @Label("Reason")
    String reason = "";

    void commit(String name, ClientFault fault) {
        if (shouldCommit()) {
            run = name;
            client = fault.client();
            step = fault.step();
            kind = fault.kind().name();
            reason = fault.reason();
            commit();
        }
    }
}
