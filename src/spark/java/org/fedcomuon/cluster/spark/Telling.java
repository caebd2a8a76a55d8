package org.fedcomuon.cluster.spark;

import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.method.ClientFault;

/** What the first member hears of the run goes on to whoever watches the driver. */
record Telling(Member member) implements Listener {
    @Override
    public void onWarning(String warning) {
        member.tell("warning: " + warning);
    }

    @Override
    public void onEvaluation(Evaluation evaluation) {
        member.tell(evaluation);
    }

    @Override
    public void onClientFault(ClientFault fault) {
        member.tell(fault.toString());
    }
}
