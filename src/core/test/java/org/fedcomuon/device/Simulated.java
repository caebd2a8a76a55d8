package org.fedcomuon.device;

import java.nio.file.Path;
import org.fedcomuon.internal.BackendLibrary;
import org.fedcomuon.internal.NativeLibrary;
import org.junit.jupiter.api.Assumptions;

/**
 * Simulated CUDA devices with their vendor libraries. Tests that need one are skipped where the build left them out.
 */
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
    public static Path directory(String name) {
        NativeCalls.requireLibrary(); // loads the others
        if (BackendLibrary.CUDASIM.load() instanceof NativeLibrary.Loaded(Path file)) {
            return file.resolveSibling(name);
        }
        return Assumptions.abort("no simulated devices");
    }

    static CublasBlas blas(NativeDevice device) {
        device.stream();
        return new CublasBlas(device, CudaLibraries.bindings(device.kind()).cublas(device.name()));
    }

    static CusolverSolver solver(NativeDevice device, CusolverSolver.Method method) {
        device.stream();
        return new CusolverSolver(device, CudaLibraries.bindings(device.kind()).cusolver(device.name()), method);
    }
}
