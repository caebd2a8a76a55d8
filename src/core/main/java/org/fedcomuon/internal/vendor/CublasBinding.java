package org.fedcomuon.internal.vendor;

import java.lang.foreign.MemorySegment;

/**
 * A cuBLAS handle on the device that was current when it was created, however C is called. Functions return the
 * library's status.
 */
public sealed interface CublasBinding extends AutoCloseable permits CublasPanama, JCudaCublas {
    /** Returns the library, its version and how it is called, such as {@code cuBLAS 13.1.0}. */
    String title();

    /** Sets the stream that the handle works on, and its workspace; both remain the caller's. */
    int prepare(MemorySegment stream, MemorySegment workspace);

    int run(CublasCall call);

    /** Returns the library's description of a status. */
    String words(int status);

    /** Destroys the handle. Closing it twice does nothing. */
    @Override
    void close();
}
