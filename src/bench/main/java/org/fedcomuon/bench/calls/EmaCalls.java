package org.fedcomuon.bench.calls;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.fedcomuon.internal.bindings.fedcomuon.fcm_error;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * {@code fcm_ema} of one client: a call with nine arguments that reads and writes {@code n} floats, in native memory or
 * in arrays. The result is checked at the end.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class EmaCalls {
    private static final double A = 0.5;

    /** A separate class, so that they are linked after the library is loaded. */
    private static final class Critical {
        static final MethodHandle NATIVE = handle(false);
        static final MethodHandle HEAP = handle(true);

        private static MethodHandle handle(boolean heap) {
            return Linker.nativeLinker()
                    .downcallHandle(
                            FedComuonNative.fcm_ema$address(),
                            FedComuonNative.fcm_ema$descriptor(),
                            Linker.Option.critical(heap));
        }
    }

    @Param({"1", "64", "4096"})
    private int n;

    private Device device;
    private Buffer bufferX;
    private Buffer bufferY;
    private Batch batchX;
    private Batch batchY;
    private MemorySegment context;
    private MemorySegment x;
    private MemorySegment y;
    private MemorySegment error;
    private float[] arrayX;
    private float[] arrayY;
    private MemorySegment heapX;
    private MemorySegment heapY;

    @Setup
    public void open() {
        device = Devices.open("cpu:0", 1, InstructionSet.AUTO);
        bufferX = device.allocate("x", ElementType.FLOAT32, n);
        bufferY = device.allocate("y", ElementType.FLOAT32, n);
        bufferX.fill(1);
        batchX = bufferX.batch(1, n);
        batchY = bufferY.batch(1, n);
        // The same without a device: its own context, and unguarded memory.
        error = fcm_error.allocate(Arena.global());
        context = context();
        x = unguarded(1);
        y = unguarded(0);
        arrayX = new float[n];
        arrayY = new float[n];
        Arrays.fill(arrayX, 1);
        heapX = MemorySegment.ofArray(arrayX);
        heapY = MemorySegment.ofArray(arrayY);
    }

    private MemorySegment context() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment answer = arena.allocate(FedComuonNative.C_POINTER);
            int status = FedComuonNative.fcm_context_create(
                    FedComuonNative.FCM_CPU(), 0, 1, FedComuonNative.FCM_ISA_AUTO(), answer, error);
            if (status != FedComuonNative.FCM_OK()) {
                throw new IllegalStateException(fcm_error.message(error).getString(0));
            }
            return MemorySegment.ofAddress(
                    answer.get(FedComuonNative.C_POINTER, 0).address());
        }
    }

    private MemorySegment unguarded(float value) {
        long bytes = (long) n * Float.BYTES;
        MemorySegment memory = MemorySegment.ofAddress(
                        Arena.global().allocate(bytes, 64).address())
                .reinterpret(bytes);
        for (int i = 0; i < n; i++) {
            memory.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
        }
        return memory;
    }

    /**
     * Checks the result: steps of {@code y = x/2 + y/2} from 0 approach x = 1 from below, and the first one gives 1/2.
     */
    @TearDown
    public void check() {
        float[] result = Stream.of(arrayY, y.toArray(ValueLayout.JAVA_FLOAT), bufferY.toFloats(0, n))
                .filter(values -> values[n - 1] != 0)
                .findFirst()
                .orElse(arrayY);
        bufferX.close();
        bufferY.close();
        device.close();
        FedComuonNative.fcm_context_destroy(context);
        for (float value : result) {
            if (!(value >= 0.5f && value <= 1)) {
                throw new IllegalStateException("y has %s, not something between 1/2 and 1".formatted(value));
            }
        }
    }

    /** Measures the public API: arguments are checked, and memory is guarded against being closed in use. */
    @Benchmark
    public void device() {
        device.ema(A, batchX, batchY);
    }

    @Benchmark
    public int bindings() {
        return FedComuonNative.fcm_ema(context, 1, n, A, x, n, y, n, error);
    }

    @Benchmark
    public int critical() throws Throwable {
        return (int) Critical.NATIVE.invokeExact(context, 1L, (long) n, A, x, (long) n, y, (long) n, error);
    }

    @Benchmark
    public int criticalArrays() throws Throwable {
        return (int) Critical.HEAP.invokeExact(context, 1L, (long) n, A, heapX, (long) n, heapY, (long) n, error);
    }

    /** Measures the only way to pass arrays without {@code critical}. */
    @Benchmark
    public int copiedArrays() {
        MemorySegment.copy(arrayX, 0, x, ValueLayout.JAVA_FLOAT, 0, n);
        MemorySegment.copy(arrayY, 0, y, ValueLayout.JAVA_FLOAT, 0, n);
        int status = FedComuonNative.fcm_ema(context, 1, n, A, x, n, y, n, error);
        MemorySegment.copy(y, ValueLayout.JAVA_FLOAT, 0, arrayY, 0, n);
        return status;
    }

    @Benchmark
    public int jni(Jni jni) {
        return JniCalls.ema(context.address(), 1, n, A, x.address(), n, y.address(), n, error.address());
    }

    @Benchmark
    public int jniPinnedArrays(Jni jni) {
        return JniCalls.emaPinned(context.address(), 1, n, A, arrayX, n, arrayY, n, error.address());
    }

    @Benchmark
    public int jniCopiedArrays(Jni jni) {
        return JniCalls.emaCopied(context.address(), 1, n, A, arrayX, n, arrayY, n, error.address());
    }
}
