package org.fedcomuon.dashboard;

import java.util.Optional;

/**
 * How far a browser has come in the events: they are kept once for all, so that a browser that does not read holds
 * nothing but its place. Confined to the thread of the server.
 */
final class Subscriber {
    private static final long NOWHERE = -1;

    private Optional<Event> first = Optional.empty();
    private long next = NOWHERE;
    private boolean sending;

    /** Whether it waits for the history to begin with. */
    boolean isJoining() {
        return next == NOWHERE;
    }

    /** Lets it begin with an event of its own, if there is one, and go on with the event of this number. */
    void begin(Optional<Event> own, long number) {
        first = own;
        next = number;
    }

    /** The event that it sends first of all, once. */
    Optional<Event> takeFirst() {
        Optional<Event> own = first;
        first = Optional.empty();
        return own;
    }

    /** The number of the event that is being sent, or else of the next one. */
    long position() {
        return next;
    }

    /** The event at its position is being sent. */
    void send() {
        sending = true;
    }

    /** What was being sent has been sent. */
    void advance() {
        if (sending) {
            next++;
            sending = false;
        }
    }
}
