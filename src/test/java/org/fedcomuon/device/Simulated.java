package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import org.fedcomuon.internal.BackendLibrary;
import org.fedcomuon.internal.NativeLibrary;
import org.junit.jupiter.api.Assumptions;

/** Simulated CUDA devices, and faults for them. Tests that need one are skipped where the build left them out. */
public final class Simulated {
    private Simulated() {}

    /** {@code cudasim:ordinal}, or the test is skipped with the reason. */
    static NativeDevice open(int ordinal) {
        try {
            return (NativeDevice) Devices.open("cudasim:" + ordinal, 2, InstructionSet.AUTO);
        } catch (DeviceException.Unavailable e) {
            if (!String.valueOf(e.getMessage()).contains("no libfedcomuon_cudasim.so")) {
                throw e; // one that is there must work
            }
            return Assumptions.abort("no simulated devices: " + e.getMessage());
        }
    }

    /** Beside the library of the simulated devices. */
    static Path directory(String name) {
        if (BackendLibrary.CUDASIM.load() instanceof NativeLibrary.Loaded(Path file)) {
            return file.resolveSibling(name);
        }
        return Assumptions.abort("no simulated devices");
    }

    static CublasBlas blas(NativeDevice device) {
        device.stream();
        var library = CudaLibraries.opened(device, CudaLibraries.linker(device.kind()), CudaLinker.Vendor.CUBLAS);
        return new CublasBlas(device, new CublasPanama(library, device.name()));
    }

    static CusolverSolver solver(NativeDevice device, CusolverSolver.Method method) {
        device.stream();
        var library = CudaLibraries.opened(device, CudaLibraries.linker(device.kind()), CudaLinker.Vendor.CUSOLVER);
        return new CusolverSolver(device, new CusolverPanama(library, device.name()), method);
    }

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

    /** Of everything that is allocated on a device, whoever asked for it. */
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

    private static SymbolLookup runtime() {
        return SymbolLookup.libraryLookup(directory("libcudasim.so"), Arena.global());
    }
}
