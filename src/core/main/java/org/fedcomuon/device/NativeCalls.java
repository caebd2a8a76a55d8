package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.fedcomuon.internal.NativeLibrary;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.fedcomuon.internal.bindings.fedcomuon.fcm_error;

/** The one place where a native status becomes an exception. Each user has an error struct of its own. */
final class NativeCalls {
    private final MemorySegment error;

    NativeCalls(Arena arena) {
        error = fcm_error.allocate(arena);
    }

    /** Must come before the first call of a process into the library. */
    static void requireLibrary() {
        if (NativeLibrary.load() instanceof NativeLibrary.Missing(String reason)) {
            throw new DeviceException.LibraryMissing(reason);
        }
    }

    /** Returns where the call that follows may write why it failed. */
    MemorySegment error() {
        return error;
    }

    /** Returns how large the workspace has to be if it was too small for the last call; 0 otherwise. */
    long workspaceNeeded(int status) {
        return status == FedComuonNative.FCM_INVALID_ARGUMENT() ? fcm_error.bytes(error) : 0;
    }

    void check(int status, String function) {
        if (status == FedComuonNative.FCM_OK()) {
            return;
        }
        String message = fcm_error.message(error).getString(0);
        throw failure(status, message.isEmpty() ? function + " failed" : message);
    }

    private DeviceException failure(int status, String message) {
        if (status == FedComuonNative.FCM_INVALID_ARGUMENT()) {
            return new DeviceException.InvalidOperand(message);
        }
        if (status == FedComuonNative.FCM_OUT_OF_MEMORY()) {
            return new DeviceException.OutOfMemory(message);
        }
        if (status == FedComuonNative.FCM_UNSUPPORTED()) {
            return new DeviceException.Unsupported(message);
        }
        if (status == FedComuonNative.FCM_NOT_FINITE()) {
            return new DeviceException.NotFinite(
                    message,
                    new Device.Position(fcm_error.client(error), fcm_error.block(error), fcm_error.index(error)),
                    fcm_error.address(error),
                    fcm_error.mark(error));
        }
        return new DeviceException.Fault(message); // a device error or a fault of the library
    }
}
