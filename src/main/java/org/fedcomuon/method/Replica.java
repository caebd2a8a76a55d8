package org.fedcomuon.method;

/** A method at work on the clients of one device. Made by {@link Method#on}. Called by the device's thread. */
public interface Replica {
    /** Sets the initial state, all clients starting from the same W. */
    void initialize(Server server);

    /** One local step, with the exchange at its end when the step says so. */
    void step(Step t, Server server);
}
