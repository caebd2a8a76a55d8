package org.fedcomuon.dashboard;

import java.nio.charset.StandardCharsets;

/**
 * A message to browsers in the format of server-sent events.
 *
 * @param number by which a browser that reconnects names the last event it has received
 * @param isLast whether no event follows
 */
record Event(long number, String text, boolean isLast) {
    byte[] bytes() {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
