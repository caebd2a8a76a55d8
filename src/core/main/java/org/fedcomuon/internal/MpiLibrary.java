package org.fedcomuon.internal;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Map;
import java.util.Optional;

/**
 * The few functions of Open MPI that we use. Its handles are addresses of symbols in the library, unlike those of
 * MPICH, whose programs it cannot stand in for: so MPICH is recognized and refused. One a process, and of one thread at
 * a time.
 */
public final class MpiLibrary {
    /** Open MPI 3 to 5. */
    private static final String FILE = "libmpi.so.40";

    private static final String INSTALL = "sudo apt-get install openmpi-bin";
    private static final int SERIALIZED = 2; // MPI_THREAD_SERIALIZED
    private static final int SUCCESS = 0;
    private static final int LONGEST_TEXT = 512;

    private final MemorySegment inPlace = MemorySegment.ofAddress(1); // MPI_IN_PLACE
    private final Arena arena = Arena.ofAuto();
    private final SymbolLookup library;
    private final MemorySegment world;
    private final MemorySegment bytes;
    private final MemorySegment unsignedChar;
    private final MemorySegment longLong;
    private final MemorySegment maximum;
    private final MemorySegment sum;
    private final MethodHandle allReduce;
    private final MethodHandle send;
    private final MethodHandle receive;
    private final MethodHandle broadcast;
    private final int rank;
    private final int size;
    private final String host;

    /** Thrown when MPI cannot be used here. The message is one line with the reason. */
    public static final class Unusable extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Unusable(String message) {
            super(message);
        }
    }

    /** MPI has reported an error. */
    public static final class Failed extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Failed(String message) {
            super(message);
        }
    }

    /**
     * Returns the reason why MPI cannot be used in a process that was started like this one, if so.
     *
     * @param environment of the process
     */
    static Optional<String> objection(Map<String, String> environment) {
        if (environment.containsKey("OMPI_COMM_WORLD_SIZE")) {
            return Optional.empty();
        }
        return Optional.of(
                environment.containsKey("PMI_SIZE") || environment.containsKey("MPI_LOCALNRANKS")
                        ? "this mpirun is MPICH's; what is supported is Open MPI's (%s, then mpirun.openmpi)"
                                .formatted(INSTALL)
                        : "this process was not started by Open MPI; start it with: mpirun -np N ./fedcomuon ...");
    }

    /**
     * Joins the processes that were started together.
     *
     * @throws Unusable when there is no Open MPI, or it did not start this process
     */
    public static MpiLibrary join() {
        objection(System.getenv()).ifPresent(reason -> {
            throw new Unusable(reason);
        });
        SymbolLookup library;
        try {
            library = SymbolLookup.libraryLookup(FILE, Arena.global());
        } catch (IllegalArgumentException e) {
            throw new Unusable("%s is not found; install it: %s".formatted(FILE, INSTALL));
        }
        return new MpiLibrary(library);
    }

    private MpiLibrary(SymbolLookup library) {
        this.library = library;
        world = symbol("ompi_mpi_comm_world");
        bytes = symbol("ompi_mpi_byte");
        unsignedChar = symbol("ompi_mpi_unsigned_char");
        longLong = symbol("ompi_mpi_long_long_int");
        maximum = symbol("ompi_mpi_op_max");
        sum = symbol("ompi_mpi_op_sum");
        allReduce = function("MPI_Allreduce", ADDRESS, ADDRESS, JAVA_INT, ADDRESS, ADDRESS, ADDRESS);
        send = function("MPI_Send", ADDRESS, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT, ADDRESS);
        receive = function("MPI_Recv", ADDRESS, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT, ADDRESS, ADDRESS);
        broadcast = function("MPI_Bcast", ADDRESS, JAVA_INT, ADDRESS, JAVA_INT, ADDRESS);
        MemorySegment answer = arena.allocate(JAVA_INT);
        call(
                function("MPI_Init_thread", ADDRESS, ADDRESS, JAVA_INT, ADDRESS),
                MemorySegment.NULL,
                MemorySegment.NULL,
                SERIALIZED,
                answer);
        if (answer.get(JAVA_INT, 0) < SERIALIZED) {
            throw new Unusable("this Open MPI was built without support for threads");
        }
        // MPI_ERRORS_RETURN; otherwise an error would end the process without a word of ours.
        call(function("MPI_Comm_set_errhandler", ADDRESS, ADDRESS), world, symbol("ompi_mpi_errors_return"));
        call(function("MPI_Comm_rank", ADDRESS, ADDRESS), world, answer);
        rank = answer.get(JAVA_INT, 0);
        call(function("MPI_Comm_size", ADDRESS, ADDRESS), world, answer);
        size = answer.get(JAVA_INT, 0);
        MemorySegment name = arena.allocate(LONGEST_TEXT);
        call(function("MPI_Get_processor_name", ADDRESS, ADDRESS), name, answer);
        host = name.getString(0);
    }

    /** Returns which of the processes this is. */
    public int rank() {
        return rank;
    }

    /** Returns how many there are. */
    public int size() {
        return size;
    }

    /** Returns the name of the host of this process. */
    public String host() {
        return host;
    }

    /** Returns whether all processes are on this host. */
    public boolean isOneHost() {
        return Integer.toString(size).equals(System.getenv("OMPI_COMM_WORLD_LOCAL_SIZE"));
    }

    /** Returns when {@code from} may be used again. */
    public void send(MemorySegment from, int to) {
        call(send, from, Math.toIntExact(from.byteSize()), bytes, to, 0, world);
    }

    /** Waits for the given number of bytes. */
    public void receive(MemorySegment into, int from) {
        call(receive, into, Math.toIntExact(into.byteSize()), bytes, from, 0, world, MemorySegment.NULL);
    }

    /** Broadcasts the content of the memory of process 0 to all processes. */
    public void broadcast(MemorySegment data) {
        call(broadcast, data, Math.toIntExact(data.byteSize()), bytes, 0, world);
    }

    /** Replaces every byte by the maximum over all processes, as unsigned numbers. */
    public void max(MemorySegment data) {
        call(allReduce, inPlace, data, Math.toIntExact(data.byteSize()), unsignedChar, maximum, world);
    }

    /** Replaces every 64-bit integer by the sum over all processes, modulo 2^64. */
    public void sum(MemorySegment data) {
        call(allReduce, inPlace, data, Math.toIntExact(data.byteSize() / Long.BYTES), longLong, sum, world);
    }

    /** Leaves the others; all do. */
    public void leave() {
        call(function("MPI_Finalize"));
    }

    /** Ends all processes, this one too. */
    public void abort(int exitCode) {
        call(function("MPI_Abort", ADDRESS, JAVA_INT), world, exitCode);
    }

    private MemorySegment symbol(String name) {
        return library.find(name)
                .orElseThrow(() -> new Unusable("%s has no %s: it is not Open MPI's".formatted(FILE, name)));
    }

    private MethodHandle function(String name, MemoryLayout... parameters) {
        return Linker.nativeLinker().downcallHandle(symbol(name), FunctionDescriptor.of(JAVA_INT, parameters));
    }

    private void call(MethodHandle function, Object... arguments) {
        int status;
        try {
            status = (int) function.invokeWithArguments(arguments);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError(e); // native functions throw nothing
        }
        if (status != SUCCESS) {
            throw new Failed("MPI: " + describe(status));
        }
    }

    private String describe(int status) {
        MemorySegment text = arena.allocate(LONGEST_TEXT);
        MemorySegment length = arena.allocate(JAVA_INT);
        try {
            function("MPI_Error_string", JAVA_INT, ADDRESS, ADDRESS).invokeWithArguments(status, text, length);
        } catch (Throwable e) {
            return "error " + status;
        }
        return text.getString(0);
    }
}
