package org.fedcomuon.internal.vendor;

import java.lang.foreign.MemorySegment;

/**
 * A cuSOLVER handle on the device that was current when it was created, however C is called. Functions return the
 * library's status.
 */
public sealed interface CusolverBinding extends AutoCloseable permits CusolverPanama, JCudaCusolver {
    /** Returns the library, its version and how it is called, such as {@code cuSOLVER 12.2.0}. */
    String title();

    /** Returns whether the library has {@link CusolverCall.Polar}. */
    boolean hasPolar();

    /** Returns whether the library has {@link CusolverCall.SyevBatched}. */
    boolean hasEigenvectors();

    int setStream(MemorySegment stream);

    /** Queries the workspace of a call: bytes on the device, then on the host. */
    int queryWorkspace(CusolverCall call, long[] bytes);

    /**
     * Enqueues the work on the stream.
     *
     * @param device as many bytes as {@link #queryWorkspace} requires
     * @param host as many bytes as {@link #queryWorkspace} requires
     * @param info on the device: an int for each matrix
     */
    int run(CusolverCall call, MemorySegment device, MemorySegment host, MemorySegment info);

    /** Destroys the handle. Closing it twice does nothing. */
    @Override
    void close();
}
