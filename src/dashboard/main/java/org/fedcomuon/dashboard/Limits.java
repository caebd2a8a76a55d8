package org.fedcomuon.dashboard;

import java.time.Duration;

/**
 * What the visitors of a page can take, all together, of the process that runs it.
 *
 * @param connections that are open at once, as long as there are file descriptors for so many
 * @param requestBytes a request up to the end of its header
 * @param waitingBytes of answers that have been made and not been read; when they are reached, no more are made
 * @param request the time in which a request must have arrived
 * @param answer the time in which what there is to read must have been read
 * @param parting the time in which a visitor must close its side after the answer
 */
record Limits(
        int connections, int requestBytes, long waitingBytes, Duration request, Duration answer, Duration parting) {
    static final Limits USUAL =
            new Limits(128, 16 << 10, 4L << 20, Duration.ofSeconds(10), Duration.ofSeconds(30), Duration.ofSeconds(2));
}
