package org.fedcomuon.testing;

import java.io.File;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/** The runtime of the simulated CUDA devices: injects faults into it, traces it, and counts its memory. */
public final class Simulator {
    private Simulator() {}

    /** The {@code after}-th next call of a kind on a device fails, once; {@code clear} takes everything back. */
    public static void inject(String what, int device, long after) {
        try (Arena arena = Arena.ofConfined()) {
            int status = (int) Linker.nativeLinker()
                    .downcallHandle(
                            runtime().findOrThrow("cudasim_inject"),
                            FunctionDescriptor.of(
                                    ValueLayout.JAVA_INT,
                                    ValueLayout.ADDRESS,
                                    ValueLayout.JAVA_INT,
                                    ValueLayout.JAVA_LONG))
                    .invokeExact(arena.allocateFrom(what), device, after);
            if (status != 0) {
                throw new AssertionError("cudasim_inject does not know " + what);
            }
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /** Counts everything that is allocated on a device, by any caller. */
    public static long liveBytes(int device) {
        try {
            return (long) Linker.nativeLinker()
                    .downcallHandle(
                            runtime().findOrThrow("cudasim_live_bytes"),
                            FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT))
                    .invokeExact(device);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /**
     * Does something while everything that is submitted to a stream, and every wait of the host, is written to
     * {@code file}, for {@link Trace#read}.
     */
    public static void traced(Path file, Callable<?> body) throws Exception {
        trace(Optional.of(file));
        try {
            body.call();
        } finally {
            trace(Optional.empty());
        }
    }

    private static void trace(Optional<Path> file) {
        try (Arena arena = Arena.ofConfined()) {
            int status = (int) Linker.nativeLinker()
                    .downcallHandle(
                            runtime().findOrThrow("cudasim_trace"),
                            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS))
                    .invokeExact(file.map(path -> arena.allocateFrom(path.toString()))
                            .orElse(MemorySegment.NULL));
            if (status != 0) {
                throw new AssertionError("no trace in %s".formatted(file));
            }
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private static SymbolLookup runtime() {
        return SymbolLookup.libraryLookup(library(), Arena.global());
    }

    private static Path library() {
        return Stream.of(System.getProperty("fedcomuon.native.path", "").split(File.pathSeparator, -1))
                .map(directory -> Path.of(directory, "libcudasim.so"))
                .filter(Files::exists)
                .findFirst()
                .orElseGet(() -> Assumptions.abort("no libcudasim.so: the simulated devices have not been built"));
    }
}
