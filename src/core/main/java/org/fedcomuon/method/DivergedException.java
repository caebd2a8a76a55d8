package org.fedcomuon.method;

/** A run's own numbers left the range of floats: NaN or infinity in a momentum or in the weights. */
public final class DivergedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final long step;
    private final int client;
    private final String place;

    DivergedException(long step, int client, String variable, String place) {
        super("diverged in step %d: %s of client %d is not finite in %s".formatted(step, variable, client, place));
        this.step = step;
        this.client = client;
        this.place = place;
    }

    /** Returns the step, from 0. */
    public long step() {
        return step;
    }

    /** Returns the client, from 0. */
    public int client() {
        return client;
    }

    /** Returns the parameter block or the component, by name. */
    public String place() {
        return place;
    }
}
