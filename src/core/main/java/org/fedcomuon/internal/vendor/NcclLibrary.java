package org.fedcomuon.internal.vendor;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.fedcomuon.internal.bindings.nccl.NcclNative;
import org.fedcomuon.internal.bindings.nccl.ncclConfig;
import org.fedcomuon.internal.bindings.nccl.ncclUniqueId;

/**
 * NCCL through Panama. Functions return the library's result. Communicators never block: a call that has to wait for
 * other ranks returns {@code ncclInProgress}, and {@link #asyncError} says when it no longer does.
 */
public final class NcclLibrary {
    /** The first with communicators that do not block. */
    private static final int OLDEST = 21400;

    private final String title;
    private final MethodHandle getErrorString;
    private final MethodHandle getLastError;
    private final MethodHandle getUniqueId;
    private final MethodHandle initRank;
    private final MethodHandle getAsyncError;
    private final MethodHandle destroy;
    private final MethodHandle abort;
    private final MethodHandle allReduce;

    /** @throws VendorException.LibraryMissing when this version of the library cannot be used */
    NcclLibrary(CudaLinker.Opened library) {
        title = "NCCL " + version(library);
        getErrorString = function(library, "ncclGetErrorString");
        getLastError = function(library, "ncclGetLastError");
        getUniqueId = function(library, "ncclGetUniqueId");
        initRank = library.function(
                "ncclCommInitRankConfig",
                FunctionDescriptor.of(
                        ValueLayout.JAVA_INT,
                        ValueLayout.ADDRESS,
                        ValueLayout.JAVA_INT,
                        ncclUniqueId.layout(),
                        ValueLayout.JAVA_INT,
                        ValueLayout.ADDRESS));
        getAsyncError = function(library, "ncclCommGetAsyncError");
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
                        "%s is NCCL %s, but 2.14 or later is needed".formatted(library.file(), text));
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

    /** Writes a new id, by which the ranks of a group find each other, to {@code id} of {@link #idBytes}. */
    public int uniqueId(MemorySegment id) {
        return VendorCalls.of(() -> (int) getUniqueId.invokeExact(id));
    }

    public static long idBytes() {
        return ncclUniqueId.layout().byteSize();
    }

    /**
     * Joins a group on the CUDA device that is current. {@code communicator} is written even while the result is
     * {@code ncclInProgress}, and stays null when nothing was made.
     */
    public int join(MemorySegment id, int ranks, int rank, MemorySegment[] communicator) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment made = arena.allocate(ValueLayout.ADDRESS);
            MemorySegment config = ncclConfig.allocate(arena);
            ncclConfig.size(config, ncclConfig.layout().byteSize());
            ncclConfig.magic(config, NcclNative.NCCL_CONFIG_MAGIC());
            ncclConfig.version(config, NcclNative.NCCL_CONFIG_VERSION());
            ncclConfig.blocking(config, 0);
            int result = VendorCalls.of(() -> (int) initRank.invokeExact(made, ranks, id, rank, config));
            communicator[0] = made.get(ValueLayout.ADDRESS, 0);
            return result;
        }
    }

    /** Returns the state of a communicator, or why it cannot be asked. */
    public int asyncError(MemorySegment communicator) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(ValueLayout.JAVA_INT);
            int result = VendorCalls.of(() -> (int) getAsyncError.invokeExact(communicator, state));
            return result == NcclNative.ncclSuccess() ? state.get(ValueLayout.JAVA_INT, 0) : result;
        }
    }

    /** Waits for the work of a communicator, and ends it. */
    public int destroy(MemorySegment communicator) {
        return VendorCalls.of(() -> (int) destroy.invokeExact(communicator));
    }

    /** Ends a communicator and the kernels that wait for other ranks. No other thread may be in a call on it. */
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
