package org.fedcomuon.method;

/**
 * A client whose oracle failed.
 *
 * @param client which, from 0
 * @param step during which step, from 0; -1 during initialisation
 * @param kind whether it threw, or returned what is not a number
 * @param reason what it threw, or where its result is not finite; of several lines the first, because those of libtorch
 *     go on with a page of C++ frames
 */
public record ClientFault(int client, long step, Kind kind, String reason) {
    /** What went wrong. */
    public enum Kind {
        /** Its oracle threw an exception. */
        THREW,
        /** Its oracle returned NaN or infinity; when a run diverges, this is often how it shows. */
        NOT_FINITE
    }

    /** Keeps the first line of the reason. */
    public ClientFault {
        reason = reason.lines().findFirst().orElse("");
    }

    @Override
    public String toString() {
        return "client %d failed %s: %s"
                .formatted(client, step < 0 ? "in its initialisation" : "in step " + step, reason);
    }

    /** What happens when a client's oracle throws, or returns NaN or infinity. */
    public enum Policy {
        /** The run ends, naming the client and the step. */
        FAIL,
        /**
         * The client is left out for the rest of the round, which is counted and reported; nothing of the evaluation
         * that failed has touched its state, and it receives the round's average.
         */
        DROP
    }
}
