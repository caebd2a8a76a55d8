package org.fedcomuon.internal.vendor;

import java.nio.file.Path;
import java.util.function.Supplier;
import org.fedcomuon.internal.BackendLibrary;
import org.fedcomuon.internal.NativeLibrary;

/**
 * NVIDIA's libraries for one kind of device. They are found in the directory that
 * {@value CudaLinker#DIRECTORY_PROPERTY} names, else by the system's linker, of the CUDA 12 or 13 line; simulated
 * devices take the simulated ones beside their own library.
 *
 * <p>They are called through Panama. JCuda is the other way, for one library at a time, if its jars are on the class
 * path:
 *
 * <ul>
 *   <li>where Panama finds no library that it can use, because the named directory does not have it, or because what is
 *       installed of CUDA 13 lacks a function while CUDA 12 is installed beside it; this is logged with the reason;
 *   <li>where {@value #BINDING_PROPERTY} asks for it.
 * </ul>
 *
 * <p>JCuda brings no cuBLAS: its JNI libraries are linked with those of CUDA 12, which the system's linker must find.
 * So it does not help where there is no CUDA 12. Nor does it help in a JVM that denies native access to Panama, because
 * our own library is called by that. NCCL has no JCuda binding.
 */
public final class CudaBindings {
    /** {@code panama} or {@code jcuda}; without it, the first and then the second. */
    static final String BINDING_PROPERTY = "fedcomuon.cuda.binding";

    /** The directory of the simulated libraries, instead of {@code cudasim} beside that of the simulated devices. */
    static final String SIMULATED_PROPERTY = "fedcomuon.cudasim.libraries";

    private final String kind;
    private final boolean simulated;
    private final CudaLinker linker;

    private CudaBindings(String kind, boolean simulated, CudaLinker linker) {
        this.kind = kind;
        this.simulated = simulated;
        this.linker = linker;
    }

    /** Looks for the libraries of real GPUs; {@code kind} is used in messages. */
    public static CudaBindings real(String kind) {
        return new CudaBindings(kind, false, CudaLinker.system());
    }

    /** Looks for the libraries of simulated GPUs; {@code kind} is used in messages. */
    public static CudaBindings simulated(String kind) {
        String given = System.getProperty(SIMULATED_PROPERTY);
        Path directory = given != null
                ? Path.of(given)
                : BackendLibrary.CUDASIM.load() instanceof NativeLibrary.Loaded(Path file)
                        ? file.resolveSibling("cudasim")
                        : Path.of("cudasim");
        return new CudaBindings(kind, true, CudaLinker.in(directory));
    }

    /** A library that is there, its version, and {@code Panama} or {@code JCuda}. */
    public record Found(String version, String file, String binding) {}

    /**
     * Returns how a library would be called. Neither a GPU nor a driver is needed.
     *
     * @throws VendorException.LibraryMissing when the library cannot be used
     */
    public Found describe(CudaLinker.Vendor vendor) {
        Supplier<Found> panama = () -> found(panama(vendor), "Panama");
        return vendor == CudaLinker.Vendor.NCCL
                ? panama.get() // JCuda has no NCCL
                : choose(kind, vendor, panama, () -> found(jcuda(vendor), "JCuda"));
    }

    private static Found found(CudaLinker.Opened opened, String binding) {
        String version = switch (opened.vendor()) {
            case CUBLAS -> CublasPanama.version(opened);
            case CUSOLVER -> CusolverPanama.version(opened);
            case NCCL -> NcclLibrary.version(opened);
        };
        return new Found(version, opened.file(), binding);
    }

    /**
     * Creates a cuBLAS handle on the CUDA device that is current; {@code device} is its name in messages.
     *
     * @throws VendorException.LibraryMissing when the library cannot be used
     */
    public CublasBinding cublas(String device) {
        CudaLinker.Vendor vendor = CudaLinker.Vendor.CUBLAS;
        return choose(device, vendor, () -> new CublasPanama(panama(vendor)), () -> {
            jcuda(vendor);
            return new JCudaCublas();
        });
    }

    /**
     * Creates a cuSOLVER handle on the CUDA device that is current; {@code device} is its name in messages.
     *
     * @throws VendorException.LibraryMissing when the library cannot be used
     */
    public CusolverBinding cusolver(String device) {
        CudaLinker.Vendor vendor = CudaLinker.Vendor.CUSOLVER;
        return choose(device, vendor, () -> new CusolverPanama(panama(vendor), device), () -> {
            jcuda(vendor);
            return new JCudaCusolver();
        });
    }

    /**
     * Opens NCCL.
     *
     * @throws VendorException.LibraryMissing when the library cannot be used
     */
    public NcclLibrary nccl() {
        return new NcclLibrary(panama(CudaLinker.Vendor.NCCL));
    }

    CudaLinker.Opened panama(CudaLinker.Vendor vendor) {
        return suitable(linker.open(vendor));
    }

    private CudaLinker.Opened jcuda(CudaLinker.Vendor vendor) {
        return suitable(JCudaLibrary.open(vendor, linker));
    }

    /**
     * Refuses a real library for simulated devices and the reverse, because it would follow pointers of the other kind.
     */
    private CudaLinker.Opened suitable(CudaLinker.Outcome outcome) {
        return switch (outcome) {
            case CudaLinker.Missing(String reason) -> throw new VendorException.LibraryMissing(reason);
            case CudaLinker.Opened library -> {
                if (library.isSimulated() != simulated) {
                    throw new VendorException.LibraryMissing("%s is a %s %s, of no use to %s"
                            .formatted(
                                    library.file(),
                                    library.isSimulated() ? "simulated" : "real",
                                    library.vendor().title(),
                                    kind));
                }
                yield library;
            }
        };
    }

    private static <T> T choose(String device, CudaLinker.Vendor vendor, Supplier<T> panama, Supplier<T> jcuda) {
        String asked = System.getProperty(BINDING_PROPERTY, "");
        return switch (asked) {
            case "panama" -> panama.get();
            case "jcuda" -> jcuda.get();
            case "" -> {
                try {
                    yield panama.get();
                } catch (VendorException.LibraryMissing e) {
                    yield fallback(device, vendor, jcuda, String.valueOf(e.getMessage()));
                }
            }
            default ->
                throw new VendorException.UnknownBinding(
                        "%s=%s: panama and jcuda are known".formatted(BINDING_PROPERTY, asked));
        };
    }

    private static <T> T fallback(String device, CudaLinker.Vendor vendor, Supplier<T> jcuda, String reason) {
        T found;
        try {
            found = jcuda.get();
        } catch (VendorException.LibraryMissing e) {
            throw new VendorException.LibraryMissing(
                    "%s: %s; nor through JCuda: %s".formatted(vendor.title(), reason, e.getMessage()));
        }
        VendorCalls.LOG.info("{}: {} is called through JCuda, because: {}", device, vendor.title(), reason);
        return found;
    }
}
