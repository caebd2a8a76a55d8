package org.example.embedding;

/** A request that is not carried out, with the status of its answer. */
final class Refused extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int status;

    Refused(int status, String message) {
        super(message);
        this.status = status;
    }

    int status() {
        return status;
    }
}
