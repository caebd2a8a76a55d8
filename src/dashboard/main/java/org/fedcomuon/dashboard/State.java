package org.fedcomuon.dashboard;

import java.util.Locale;

/** The state of a run. */
enum State {
    /** It has not begun; for instance, data are being read. */
    WAITING("waiting"),
    RUNNING("running"),
    DONE("done"),
    STOPPED("stopped"),
    FAILED("failed"),
    /** The page was closed before the run reported its end. */
    GONE("ended without a result");

    private final String label;

    State(String label) {
        this.label = label;
    }

    boolean isEnd() {
        return compareTo(RUNNING) > 0;
    }

    /** Its name in JSON. */
    String word() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** What the page calls it. */
    String label() {
        return label;
    }
}
