package org.fedcomuon.federation;

import org.fedcomuon.method.Variable;

/**
 * How means over the clients of all devices are worked out, as one device does it: every device has one, and all make
 * the same calls. Of the device's thread.
 */
sealed interface Averaging extends AutoCloseable permits OrderedAveraging, NcclAveraging, ClusterAveraging {
    /**
     * Waits for all to post what they have been given to compute so far. Afterwards everybody's weights are in the
     * meeting.
     */
    void meet(Variable... posted);

    /** After that: every client's value of {@code variable}, the {@code i}-th that was posted, becomes the mean. */
    void average(int i, Variable variable);

    /** What it is called in a run's record. */
    String title();

    /** Waits for what is under way beside the device's own work, whatever became of it. */
    void drain();

    /** Gives up what the devices share, when all have drained. */
    void disband();

    @Override
    void close();
}
