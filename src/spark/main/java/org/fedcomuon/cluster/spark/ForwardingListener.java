package org.fedcomuon.cluster.spark;

import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.method.ClientFault;

/** Forwards the events of the first member to the listeners of the driver. */
record ForwardingListener(Member member) implements Listener {
    @Override
    public void onWarning(String warning) {
        member.report("warning: " + warning);
    }

    @Override
    public void onEvaluation(Evaluation evaluation) {
        member.report(evaluation);
    }

    @Override
    public void onClientFault(ClientFault fault) {
        member.report(fault.toString());
    }
}
