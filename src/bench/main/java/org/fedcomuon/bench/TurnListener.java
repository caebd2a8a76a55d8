package org.fedcomuon.bench;

/** Receives the progress of a benchmark, between measurements. Called by the measuring thread. */
public interface TurnListener {
    /** Shows nothing. */
    TurnListener NONE = (what, done, turns) -> {};

    /**
     * Called before the next turn.
     *
     * @param what the contender that is measured next; at the end, the benchmark that has been measured
     * @param done the number of turns before this one; 0 restarts the count
     * @param turns the number of turns of the benchmark, which may decrease as contenders are left out
     */
    void onTurn(String what, int done, int turns);
}
