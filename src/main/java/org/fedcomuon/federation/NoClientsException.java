package org.fedcomuon.federation;

/** Every client of a round has been dropped, so there is nothing to average. */
public final class NoClientsException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    NoClientsException() {
        super("no client is left in the round: every one that took part has failed, or has weight 0");
    }
}
