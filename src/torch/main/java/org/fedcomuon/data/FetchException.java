package org.fedcomuon.data;

import java.io.IOException;

/** Thrown when a data set could not be fetched. The message is one line with the reason and an alternative. */
public final class FetchException extends IOException {
    private static final long serialVersionUID = 1L;

    /** Creates an exception with its message. */
    public FetchException(String message) {
        super(message);
    }

    /** Creates an exception with its message and its cause. */
    public FetchException(String message, Throwable cause) {
        super(message, cause);
    }
}
