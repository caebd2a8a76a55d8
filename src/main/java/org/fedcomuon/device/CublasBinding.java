package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;

/**
 * cuBLAS with a handle on the device that was current when this was made, by whatever way of calling C. Functions
 * answer with the library's status.
 */
sealed interface CublasBinding extends AutoCloseable permits CublasPanama, JCudaCublas {
    /** What it is and by which way it is called, such as {@code cuBLAS 13.1.0}. */
    String title();

    /** Gives the handle the stream it works on, and room for its sums; both stay the caller's. */
    int prepare(MemorySegment stream, MemorySegment workspace);

    int run(CublasCall call);

    /** The library's words for a status. */
    String words(int status);

    /** Destroys the handle; the second time does nothing. */
    @Override
    void close();
}
