package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;

/**
 * cuSOLVER with a handle on the device that was current when this was made, by whatever way of calling C. Functions
 * answer with the library's status.
 */
sealed interface CusolverBinding extends AutoCloseable permits CusolverPanama, JCudaCusolver {
    /** What it is and by which way it is called, such as {@code cuSOLVER 12.2.0}. */
    String title();

    /** Whether the library has {@link CusolverCall.Polar}. */
    boolean hasPolar();

    int setStream(MemorySegment stream);

    /** Asks how much room a call wants: bytes on the device, then on the host. */
    int room(CusolverCall call, long[] bytes);

    /**
     * Starts the work; it ends when the stream has come to it.
     *
     * @param device as many bytes as {@link #room} said
     * @param host as many bytes as {@link #room} said
     * @param info on the device: an int for each matrix
     */
    int run(CusolverCall call, MemorySegment device, MemorySegment host, MemorySegment info);

    /** Destroys the handle; the second time does nothing. */
    @Override
    void close();
}
