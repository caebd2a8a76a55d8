package org.fedcomuon.dashboard;

import java.util.Locale;

/** The state of a run. */
enum State {
    /** It has not begun; for instance, data are being read. */
    WAITING,
    RUNNING,
    DONE,
    STOPPED,
    FAILED,
    /** The page was closed before the run reported its end. */
    GONE;

    boolean isEnd() {
        return compareTo(RUNNING) > 0;
    }

    /** Its name in JSON. */
    String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
