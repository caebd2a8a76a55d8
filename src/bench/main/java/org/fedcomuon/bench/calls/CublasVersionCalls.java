package org.fedcomuon.bench.calls;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.concurrent.TimeUnit;
import jcuda.jcublas.JCublas2;
import jcuda.jcublas.cublasHandle;
import org.fedcomuon.internal.bindings.cublas.CublasNative;
import org.fedcomuon.internal.vendor.CudaLinker;
import org.fedcomuon.internal.vendor.JCudaLibrary;
import org.fedcomuon.internal.vendor.VendorCalls;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * {@code cublasGetVersion_v2(handle, &version)} from a library that has only this function and ignores the handle, so
 * that the cost of JCuda's JNI can be compared on any machine. Each contender reads the result.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class CublasVersionCalls {
    private static final CudaLinker.Vendor CUBLAS = CudaLinker.Vendor.CUBLAS;

    private final MemorySegment handle = Arena.global().allocate(16);
    private final MemorySegment version = Arena.global().allocate(ValueLayout.JAVA_INT);
    private final int[] versions = new int[1];

    private static CudaLinker linker() {
        return CudaLinker.in(JniCalls.library("libcublas.so.12").getParent());
    }

    /** Handles like those of the cuBLAS binding: the library is found at run time, so they are not constants. */
    @State(Scope.Thread)
    public static class Bindings {
        private final MethodHandle getVersion;

        public Bindings() {
            getVersion = switch (linker().open(CUBLAS)) {
                case CudaLinker.Opened library -> library.function(CublasNative.class, "cublasGetVersion_v2");
                case CudaLinker.Missing(String reason) -> throw new IllegalStateException(reason);
            };
        }
    }

    @State(Scope.Thread)
    public static class JCuda {
        private final cublasHandle handle = new cublasHandle();

        @Setup
        public void load() {
            JCudaLibrary.open(CUBLAS, linker());
        }
    }

    @Benchmark
    public int bindings(Bindings bindings) {
        int status = VendorCalls.of(() -> (int) bindings.getVersion.invokeExact(handle, version));
        return status + version.get(ValueLayout.JAVA_INT, 0);
    }

    @Benchmark
    public int jni(Jni jni) {
        int status = JniCalls.cublasVersion(handle.address(), version.address());
        return status + version.get(ValueLayout.JAVA_INT, 0);
    }

    @Benchmark
    public int jniArray(Jni jni) {
        int status = JniCalls.cublasVersionArray(handle.address(), versions);
        return status + versions[0];
    }

    @Benchmark
    public int jcuda(JCuda jcuda) {
        int status = JCublas2.cublasGetVersion(jcuda.handle, versions);
        return status + versions[0];
    }
}
