package org.fedcomuon.internal.vendor;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.fedcomuon.internal.bindings.nccl.NcclNative;

/** NCCL through Panama. Functions return the library's result. */
public final class NcclLibrary {
    /** The first that has a mean. */
    private static final int OLDEST = 21000;

    private final String title;
    private final MethodHandle getErrorString;
    private final MethodHandle getLastError;
    private final MethodHandle initAll;
    private final MethodHandle destroy;
    private final MethodHandle abort;
    private final MethodHandle allReduce;

    /** @throws VendorException.LibraryMissing when this version of the library cannot be used */
    NcclLibrary(CudaLinker.Opened library) {
        title = "NCCL " + version(library);
        getErrorString = function(library, "ncclGetErrorString");
        getLastError = function(library, "ncclGetLastError");
        initAll = function(library, "ncclCommInitAll");
        destroy = function(library, "ncclCommDestroy");
        abort = function(library, "ncclCommAbort");
        allReduce = function(library, "ncclAllReduce");
    }

    /** Needs no GPU. */
    static String version(CudaLinker.Opened library) {
        MethodHandle query = function(library, "ncclGetVersion");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment value = arena.allocate(ValueLayout.JAVA_INT);
            int result = VendorCalls.of(() -> (int) query.invokeExact(value));
            int version = result == NcclNative.ncclSuccess() ? value.get(ValueLayout.JAVA_INT, 0) : 0;
            String text = "%d.%d.%d".formatted(version / 10000, version / 100 % 100, version % 100);
            if (version < OLDEST) {
                throw new VendorException.LibraryMissing(
                        "%s is NCCL %s, but 2.10 or later is needed".formatted(library.file(), text));
            }
            return text;
        }
    }

    private static MethodHandle function(CudaLinker.Opened library, String name) {
        return library.function(NcclNative.class, name);
    }

    public String title() {
        return title;
    }

    /** Creates a communicator for each device, in their order. */
    public int init(int[] ordinals, MemorySegment[] communicators) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment made = arena.allocate(ValueLayout.ADDRESS, ordinals.length);
            MemorySegment devices = arena.allocateFrom(ValueLayout.JAVA_INT, ordinals);
            int count = ordinals.length;
            int result = VendorCalls.of(() -> (int) initAll.invokeExact(made, count, devices));
            if (result == NcclNative.ncclSuccess()) {
                for (int i = 0; i < count; i++) {
                    communicators[i] = made.getAtIndex(ValueLayout.ADDRESS, i);
                }
            }
            return result;
        }
    }

    public int destroy(MemorySegment communicator) {
        return VendorCalls.of(() -> (int) destroy.invokeExact(communicator));
    }

    /**
     * Ends a communicator instead of {@link #destroy}; callable by any thread, and threads that wait within the library
     * return.
     */
    public int abort(MemorySegment communicator) {
        return VendorCalls.of(() -> (int) abort.invokeExact(communicator));
    }

    /** Reduces in place. */
    public int allReduce(
            MemorySegment vector,
            long count,
            int type,
            int operation,
            MemorySegment communicator,
            MemorySegment stream) {
        return VendorCalls.of(
                () -> (int) allReduce.invokeExact(vector, vector, count, type, operation, communicator, stream));
    }

    /** Returns the library's description of a result and of the last failure of this thread. */
    public String words(int result) {
        String general = VendorCalls.words(() -> (MemorySegment) getErrorString.invokeExact(result));
        String last = VendorCalls.words(() -> (MemorySegment) getLastError.invokeExact(MemorySegment.NULL));
        return last.isBlank() ? general : general + ", " + last.strip();
    }
}
