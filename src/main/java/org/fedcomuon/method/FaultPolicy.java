package org.fedcomuon.method;

/** What happens when a client's oracle throws, or returns NaN or infinity. */
public enum FaultPolicy {
    /** The run ends, naming the client and the step. */
    FAIL,
    /**
     * The client is left out for the rest of the round, which is counted and reported; nothing of the evaluation that
     * failed has touched its state, and it receives the round's average.
     */
    DROP
}
