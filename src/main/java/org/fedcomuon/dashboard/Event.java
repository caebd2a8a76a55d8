package org.fedcomuon.dashboard;

import java.nio.charset.StandardCharsets;

/**
 * A message to browsers, as server-sent events are written.
 *
 * @param number by which one that comes back says what it has heard
 * @param isLast whether nothing comes after
 */
record Event(long number, String text, boolean isLast) {
    static final Event LAST = new Event(0, "event: bye\ndata: {}\n\n", true);

    byte[] bytes() {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
