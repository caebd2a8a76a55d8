package org.fedcomuon.method;

/**
 * A client whose oracle failed.
 *
 * @param client which, from 0
 * @param step during which step, from 0; -1 during initialisation
 * @param kind whether it threw, or returned what is not a number
 * @param reason one line: what it threw, or where its result is not finite
 */
public record ClientFault(int client, long step, Kind kind, String reason) {
    /** What went wrong. */
    public enum Kind {
        /** Its oracle threw an exception. */
        THREW,
        /** Its oracle returned NaN or infinity; when a run diverges, this is often how it shows. */
        NOT_FINITE
    }

    @Override
    public String toString() {
        return "client %d failed %s: %s"
                .formatted(client, step < 0 ? "in its initialisation" : "in step " + step, reason);
    }
}
