package org.fedcomuon.device;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntSupplier;
import jcuda.NativePointerObject;
import jcuda.Pointer;
import jcuda.jcublas.JCublas2;
import jcuda.jcusolver.JCusolver;
import jcuda.runtime.cudaStream_t;
import org.fedcomuon.internal.NativeCache;

/**
 * JCuda, which is optional: its classes may be missing, and so may the JNI libraries they load. It is made for CUDA 12.
 *
 * <p>The jars {@code jcuda-natives}, {@code jcublas-natives} and {@code jcusolver-natives} 12.6.0 hold the JNI
 * libraries. On a class path JCuda unpacks them itself, to where we say; on a module path it does not see other jars,
 * so unpack them and name the directory with {@code -Djava.library.path}.
 */
final class JCudaLibrary {
    /** What the JNI libraries ask the linker for. */
    private static final String CUBLAS = "libcublas.so.12";

    private static final String CUSOLVER = "libcusolver.so.11";

    private static final Map<CudaLinker.Vendor, String> REASONS = new ConcurrentHashMap<>();

    private JCudaLibrary() {}

    /** @throws DeviceException.LibraryMissing when JCuda or what it needs is not there */
    static CublasBinding cublas(NativeDevice device, CudaLinker linker) {
        CudaLibraries.suitable(device.kind(), open(CudaLinker.Vendor.CUBLAS, linker));
        return new JCudaCublas(device.name());
    }

    /** @throws DeviceException.LibraryMissing when JCuda or what it needs is not there */
    static CusolverBinding cusolver(NativeDevice device, CudaLinker linker) {
        CudaLibraries.suitable(device.kind(), open(CudaLinker.Vendor.CUSOLVER, linker));
        return new JCudaCusolver(device.name());
    }

    /**
     * Makes JCuda ready for a library, and tells which file that is.
     *
     * @throws DeviceException.LibraryMissing when JCuda or what it needs is not there
     */
    static CudaLinker.Outcome open(CudaLinker.Vendor vendor, CudaLinker linker) {
        return switch (vendor) {
            case CUBLAS -> {
                linker.preload(vendor, List.of(CUBLAS));
                load(vendor, () -> {
                    JCublas2.setExceptionsEnabled(false); // statuses are ours to judge
                    JCublas2.initialize();
                });
                yield CudaLinker.open(vendor, CUBLAS);
            }
            case CUSOLVER -> {
                linker.preload(vendor, List.of(CUSOLVER, "libcusolverMg.so.11"));
                load(vendor, () -> {
                    JCusolver.setExceptionsEnabled(false);
                    JCusolver.initialize();
                });
                yield CudaLinker.open(vendor, CUSOLVER);
            }
            case NCCL -> throw new DeviceException.LibraryMissing("JCuda has no NCCL");
        };
    }

    /** The first failure is kept: a class that could not be initialized says nothing more the second time. */
    private static void load(CudaLinker.Vendor vendor, Runnable loading) {
        String known = REASONS.get(vendor);
        if (known != null) {
            throw new DeviceException.LibraryMissing(known);
        }
        try {
            // On a class path JCuda unpacks to the directory for temporary files, and loads what others have put there.
            NativeCache.withOwnTemporaryDirectory(loading);
        } catch (IOException e) {
            throw new DeviceException.LibraryMissing("JCuda's JNI library cannot be unpacked: " + e);
        } catch (LinkageError | IllegalCallerException e) {
            String reason = e instanceof NoClassDefFoundError
                    ? "JCuda is not on the path (%s)".formatted(e.getMessage())
                    : "JCuda's JNI library does not load: " + firstLine(e);
            REASONS.put(vendor, reason);
            throw new DeviceException.LibraryMissing(reason);
        }
    }

    private static String firstLine(Throwable e) {
        return String.valueOf(e.getMessage()).lines().findFirst().orElse("").strip();
    }

    /** A pointer to where a segment is. */
    static Pointer pointer(MemorySegment segment) {
        return new Address(segment.address());
    }

    private static final class Address extends Pointer {
        Address(long address) {
            super(address);
        }
    }

    /** A stream that somebody else has made. JCuda has no way to say that, so its own field is written. */
    static cudaStream_t stream(MemorySegment stream) {
        var result = new cudaStream_t();
        set(result, stream.address());
        return result;
    }

    /**
     * Makes an object of a library's. Some of JCuda's functions pass on what the Java object points to, instead of
     * taking the answer and keeping it: so it points to a place for the answer first.
     */
    static int create(NativePointerObject object, IntSupplier creator) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment slot = arena.allocate(ValueLayout.JAVA_LONG);
            set(object, slot.address());
            int status = creator.getAsInt();
            if (get(object) == slot.address()) {
                set(object, slot.get(ValueLayout.JAVA_LONG, 0));
            }
            return status;
        }
    }

    private static void set(NativePointerObject object, long address) {
        try {
            pointerField().setLong(object, address);
        } catch (ReflectiveOperationException e) {
            throw elsewhere(e);
        }
    }

    private static long get(NativePointerObject object) {
        try {
            return pointerField().getLong(object);
        } catch (ReflectiveOperationException e) {
            throw elsewhere(e);
        }
    }

    private static Field pointerField() throws ReflectiveOperationException {
        Field field = NativePointerObject.class.getDeclaredField("nativePointer");
        field.setAccessible(true);
        return field;
    }

    private static DeviceException elsewhere(ReflectiveOperationException e) {
        return new DeviceException.LibraryMissing("this version of JCuda keeps its pointers elsewhere: " + e);
    }
}
