package org.fedcomuon.method;

/**
 * Where the clients of all devices meet. Every device calls the same exchanges in the same order; each call is one
 * round trip between the clients and the server, and is counted as such.
 *
 * <p>Of the device's thread: each has its own view of it.
 */
public interface Server {
    /**
     * Every client's value becomes the weighted mean over the clients that take part, summed in client order. Clients
     * that do not take part receive it too, as they would before they next do.
     */
    void average(Variable... variables);

    /**
     * The same for values that travel compressed.
     *
     * @param up bytes that a client sends
     * @param down bytes that a client receives
     */
    void average(long up, long down, Variable... variables);

    /** The clients that take part, as a share of all, by weight: 1 when all do. */
    double share();
}
