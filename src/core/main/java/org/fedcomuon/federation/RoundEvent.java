package org.fedcomuon.federation;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/** A {@link Round} in a flight recording; its duration is the round's, evaluations and checkpoints of it included. */
@Name("org.fedcomuon.Round")
@Label("Round")
@Category("FedCoMuon")
@Description("Local steps of all clients and their exchange")
@StackTrace(false)
final class RoundEvent extends Event {
    @Label("Run")
    String run = "";

    @Label("Number")
    long number;

    @Label("Steps Done")
    long step;

    @Label("Participants")
    int participants;

    @Label("Dropped")
    int dropped;

    @Label("Communicated since the Beginning")
    @DataAmount
    long communicatedBytes;

    @Label("Mean Loss of the Clients")
    double loss;

    @Label("Seconds in Oracles so far")
    double gradientSeconds;

    @Label("Seconds in Orthogonalized Steps so far")
    double orthogonalizeSeconds;

    @Label("Seconds in Exchanges so far")
    double exchangeSeconds;

    void commit(String name, Round round) {
        end();
        if (shouldCommit()) {
            run = name;
            number = round.number();
            step = round.step();
            participants = round.participants();
            dropped = round.dropped();
            communicatedBytes = round.communicatedBytes();
            loss = round.meanLoss();
            gradientSeconds = round.gradientSeconds();
            orthogonalizeSeconds = round.orthogonalizeSeconds();
            exchangeSeconds = round.exchangeSeconds();
            commit();
        }
    }
}
