package org.fedcomuon.bench.calls;

import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;
import java.util.concurrent.TimeUnit;
import org.fedcomuon.device.Devices;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** {@code fcm_abi_version()}: nothing but the call. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class AbiVersionCalls {
    /** A separate class, so that it is linked after the library is loaded. */
    private static final class Critical {
        static final MethodHandle HANDLE = Linker.nativeLinker()
                .downcallHandle(
                        FedComuonNative.fcm_abi_version$address(),
                        FedComuonNative.fcm_abi_version$descriptor(),
                        Linker.Option.critical(false));
    }

    @Setup
    public void load() {
        Devices.libraryInfo();
    }

    @Benchmark
    public int bindings() {
        return FedComuonNative.fcm_abi_version();
    }

    @Benchmark
    public int critical() throws Throwable {
        return (int) Critical.HANDLE.invokeExact();
    }

    @Benchmark
    public int jni(Jni jni) {
        return JniCalls.abiVersion();
    }
}
