package org.fedcomuon.internal.vendor;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jcuda.jcublas.JCublas2;
import jcuda.jcusolver.JCusolver;
import org.fedcomuon.internal.NativeCache;

/**
 * JCuda, which is optional: its classes may be missing, and so may the JNI libraries they load. It is made for CUDA 12.
 *
 * <p>The jars {@code jcuda-natives}, {@code jcublas-natives} and {@code jcusolver-natives} 12.6.0 hold the JNI
 * libraries. On a class path JCuda unpacks them itself, to where we say; on a module path it does not see other jars,
 * so unpack them and name the directory with {@code -Djava.library.path}.
 */
public final class JCudaLibrary {
    /** The libraries that the JNI libraries need from the linker. */
    private static final String CUBLAS = "libcublas.so.12";

    private static final String CUSOLVER = "libcusolver.so.11";

    private static final Map<CudaLinker.Vendor, String> REASONS = new ConcurrentHashMap<>();

    private JCudaLibrary() {}

    /**
     * Makes JCuda ready for a library, and tells which file that is.
     *
     * @throws VendorException.LibraryMissing when JCuda or a library that it needs is missing
     */
    public static CudaLinker.Outcome open(CudaLinker.Vendor vendor, CudaLinker linker) {
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
            case NCCL -> throw new VendorException.LibraryMissing("JCuda has no NCCL");
        };
    }

    /**
     * Loads a library. The first failure is kept, because a class that could not be initialized gives no reason the
     * second time.
     */
    private static void load(CudaLinker.Vendor vendor, Runnable loading) {
        String known = REASONS.get(vendor);
        if (known != null) {
            throw new VendorException.LibraryMissing(known);
        }
        try {
            // On a class path JCuda unpacks to the directory for temporary files, and loads what others have put there.
            NativeCache.withOwnTemporaryDirectory(loading);
        } catch (IOException e) {
            throw new VendorException.LibraryMissing("JCuda's JNI library cannot be unpacked: " + e);
        } catch (LinkageError | IllegalCallerException e) {
            String reason = e instanceof NoClassDefFoundError
                    ? "JCuda is not on the path (%s)".formatted(e.getMessage())
                    : "JCuda's JNI library does not load: " + firstLine(e);
            REASONS.put(vendor, reason);
            throw new VendorException.LibraryMissing(reason);
        }
    }

    private static String firstLine(Throwable e) {
        return String.valueOf(e.getMessage()).lines().findFirst().orElse("").strip();
    }
}
