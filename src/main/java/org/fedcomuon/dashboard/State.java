package org.fedcomuon.dashboard;

import java.util.Locale;

/** How far a run is. */
enum State {
    /** It has not begun: data are being read, say. */
    WAITING,
    RUNNING,
    DONE,
    STOPPED,
    FAILED,
    /** Whoever ran it has gone without a word. */
    GONE;

    boolean isEnd() {
        return compareTo(RUNNING) > 0;
    }

    /** As the page knows it. */
    String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
