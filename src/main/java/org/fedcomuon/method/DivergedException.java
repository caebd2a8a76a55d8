package org.fedcomuon.method;

/** A run's own numbers left the range of floats: NaN or infinity in a momentum or in the weights. */
public final class DivergedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final long step;
    private final int client;
    private final String block;

    DivergedException(long step, int client, String variable, String block) {
        super("diverged in step %d: %s of client %d is not finite in block '%s'"
                .formatted(step, variable, client, block));
        this.step = step;
        this.client = client;
        this.block = block;
    }

    /** The step, from 0. */
    public long step() {
        return step;
    }

    /** The client, from 0. */
    public int client() {
        return client;
    }

    /** The parameter block. */
    public String block() {
        return block;
    }
}
