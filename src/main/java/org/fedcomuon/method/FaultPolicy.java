package org.fedcomuon.method;

/** What happens when a client's oracle throws, or returns NaN or infinity. */
public enum FaultPolicy {
    /** The run ends, naming the client and the step. */
    FAIL,
    /**
     * The client is left out for the rest of the round, which is counted and reported; its own state is what it was
     * before the fault, and it receives the round's average.
     */
    DROP
}
