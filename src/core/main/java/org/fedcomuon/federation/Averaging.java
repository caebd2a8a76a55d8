package org.fedcomuon.federation;

import java.util.List;
import org.fedcomuon.method.Variable;

/**
 * Computes means over the clients of all devices. A mean is exact before it is rounded once, so its bits do not depend
 * on how the devices divide the work, nor on which of these is used:
 *
 * <ul>
 *   <li>{@link DirectAveraging} reads the values where they are: one device, or CPUs, whose memory is one;
 *   <li>{@link PeerAveraging} exchanges exponents and sums between GPUs of this process, by reads or by copies;
 *   <li>{@link NcclAveraging} has NCCL reduce them;
 *   <li>{@link ClusterAveraging} has an engine reduce them between processes.
 * </ul>
 *
 * <p>Every device has its own instance, and all make the same calls. Not thread-safe; confined to the device thread.
 */
sealed interface Averaging extends AutoCloseable
        permits DirectAveraging, PeerAveraging, NcclAveraging, ClusterAveraging {
    /**
     * Posts variables and waits until all devices have posted theirs. Afterwards, {@link SharedState#dropped} has the
     * clients that were dropped anywhere.
     *
     * @param weights of the rows here, before they are scaled
     */
    void post(List<Variable> posted, double[] weights);

    /** Replaces every row of the posted variables by the mean. */
    void average(List<Variable> posted, double[] weights, RoundWeights round);

    /** Returns its name in a run's record. */
    String title();

    /** Returns the bytes that this device has sent to others and received from them. */
    long exchangedBytes();

    /** Waits for asynchronous work, whether it succeeded or failed. */
    void drain();

    /** Releases what depends on the other devices, when all have drained. */
    void disband();

    @Override
    void close();
}
