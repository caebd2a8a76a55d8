package org.fedcomuon.federation;

import org.fedcomuon.method.Variable;

/**
 * Computes means over the clients of all devices. Every device has its own instance, and all make the same calls. Not
 * thread-safe; confined to the device thread.
 */
sealed interface Averaging extends AutoCloseable permits OrderedAveraging, NcclAveraging, ClusterAveraging {
    /**
     * Posts variables and waits until all devices have posted theirs. Afterwards the weights of all clients are in the
     * shared state.
     */
    void post(Variable... posted);

    /** Replaces every client's value of {@code variable}, the {@code i}-th that was posted, by the mean. */
    void average(int i, Variable variable);

    /** Returns its name in a run's record. */
    String title();

    /** Waits for asynchronous work, whether it succeeded or failed. */
    void drain();

    /** Releases what depends on the other devices, when all have drained. */
    void disband();

    @Override
    void close();
}
