package org.fedcomuon.method;

/** What a device's time is spent on. */
public enum Phase {
    /** Steps as a whole; the next three are parts of it. */
    STEP,
    /** The oracles. */
    GRADIENT,
    /** Orthogonalized and vector steps. */
    ORTHOGONALIZE,
    /** Exchanges with the server, waiting for other devices included. */
    EXCHANGE,
    /** Evaluations of the average model, which are no part of a round. */
    EVALUATE
}
