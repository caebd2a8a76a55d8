package org.fedcomuon.data;

import java.io.IOException;

/** A dataset could not be fetched; the message is one line that says why, and what else can be done. */
public final class FetchException extends IOException {
    private static final long serialVersionUID = 1L;

    /** Creates an exception with the line that is shown. */
    public FetchException(String message) {
        super(message);
    }

    /** Creates an exception that keeps its {@code cause}. */
    public FetchException(String message, Throwable cause) {
        super(message, cause);
    }
}
