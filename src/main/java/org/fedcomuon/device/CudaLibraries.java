package org.fedcomuon.device;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.fedcomuon.internal.BackendLibrary;
import org.fedcomuon.internal.NativeLibrary;
import org.jspecify.annotations.Nullable;

/**
 * cuBLAS and cuSOLVER of one CUDA device. They are found in the directory that {@value CudaLinker#DIRECTORY_PROPERTY}
 * names, else by the system's linker, of the CUDA 12 or 13 line; a simulated device takes the simulated ones beside its
 * own library.
 *
 * <p>They are called through Panama, or through JCuda where that finds nothing: JCuda brings JNI libraries of its own,
 * which know where CUDA 12 is. {@value #BINDING_PROPERTY} chooses one of the two.
 *
 * <p>Products of matrices are computed one call a client, so that a client's bits do not depend on how many share its
 * device; {@code -Dfedcomuon.cuda.deterministic=false} gives that up for one call for all.
 */
final class CudaLibraries implements VendorLibraries {
    /** {@code panama} or {@code jcuda}; without it, the first and then the second. */
    static final String BINDING_PROPERTY = "fedcomuon.cuda.binding";

    /** {@code false} allows what is faster and depends on how the clients are spread over devices. */
    static final String DETERMINISTIC_PROPERTY = "fedcomuon.cuda.deterministic";

    /** The directory of the simulated libraries, instead of {@code cudasim} beside that of the simulated devices. */
    static final String SIMULATED_PROPERTY = "fedcomuon.cudasim.libraries";

    /** From how many multiplications on cuBLAS takes a product. Below, a launch a client costs more than it saves. */
    private static final long LEAST_WORK = 1L << 20;

    private final NativeDevice device;
    private final CudaLinker linker;
    private final boolean together;
    private final CublasBlas blas;
    private @Nullable CusolverSolver solver;

    private CudaLibraries(NativeDevice device, CudaLinker linker, CublasBlas blas) {
        this.device = device;
        this.linker = linker;
        this.together = !Boolean.parseBoolean(System.getProperty(DETERMINISTIC_PROPERTY, "true"));
        this.blas = blas;
    }

    /** Those of a device, or {@link VendorLibraries.Missing} with a reason where cuBLAS cannot be had. */
    static VendorLibraries of(NativeDevice device) {
        CudaLinker linker = linker(device.kind());
        try {
            return new CudaLibraries(device, linker, new CublasBlas(device, cublas(device, linker)));
        } catch (DeviceException.LibraryMissing e) {
            return new Missing(device.name(), String.valueOf(e.getMessage()));
        }
    }

    /** Where to look for the libraries of a kind of device. */
    static CudaLinker linker(DeviceKind kind) {
        if (kind != DeviceKind.CUDASIM) {
            return CudaLinker.system();
        }
        String given = System.getProperty(SIMULATED_PROPERTY);
        if (given != null) {
            return CudaLinker.in(Path.of(given));
        }
        return BackendLibrary.CUDASIM.load() instanceof NativeLibrary.Loaded(Path file)
                ? CudaLinker.in(file.resolveSibling("cudasim"))
                : CudaLinker.in(Path.of("cudasim"));
    }

    /**
     * Each library, as devices of a kind would use it: looked for as {@link #of} does. Neither a GPU nor a driver is
     * needed.
     */
    static List<LibraryInfo> describe(DeviceKind kind) {
        CudaLinker linker = linker(kind);
        var all = new ArrayList<LibraryInfo>();
        for (CudaLinker.Vendor vendor : CudaLinker.Vendor.values()) {
            Supplier<LibraryInfo> panama = () -> described(vendor, suitable(kind, linker.open(vendor)), "Panama");
            try {
                all.add(
                        vendor == CudaLinker.Vendor.NCCL
                                ? panama.get() // JCuda has no NCCL
                                : bound(
                                        kind.prefix(),
                                        vendor,
                                        panama,
                                        () -> described(
                                                vendor, suitable(kind, JCudaLibrary.open(vendor, linker)), "JCuda")));
            } catch (DeviceException e) {
                all.add(LibraryInfo.missing(vendor.title(), String.valueOf(e.getMessage())));
            }
        }
        return List.copyOf(all);
    }

    private static LibraryInfo described(CudaLinker.Vendor vendor, CudaLinker.Opened opened, String binding) {
        String version = switch (vendor) {
            case CUBLAS -> CublasPanama.version(opened);
            case CUSOLVER -> CusolverPanama.version(opened);
            case NCCL -> NcclLibrary.version(opened);
        };
        return LibraryInfo.found(vendor.title(), version, opened.file(), binding);
    }

    private static CublasBinding cublas(NativeDevice device, CudaLinker linker) {
        device.stream(); // the handle will be of the device that is current
        return bound(
                device.name(),
                CudaLinker.Vendor.CUBLAS,
                () -> new CublasPanama(opened(device, linker, CudaLinker.Vendor.CUBLAS), device.name()),
                () -> JCudaLibrary.cublas(device, linker));
    }

    private static CusolverBinding cusolver(NativeDevice device, CudaLinker linker) {
        device.stream();
        return bound(
                device.name(),
                CudaLinker.Vendor.CUSOLVER,
                () -> new CusolverPanama(opened(device, linker, CudaLinker.Vendor.CUSOLVER), device.name()),
                () -> JCudaLibrary.cusolver(device, linker));
    }

    /** A library that is there, and real for a real device and simulated for a simulated one. */
    static CudaLinker.Opened opened(NativeDevice device, CudaLinker linker, CudaLinker.Vendor vendor) {
        return suitable(device.kind(), linker.open(vendor));
    }

    /** The other sort would follow pointers that are not what it takes them for. */
    static CudaLinker.Opened suitable(DeviceKind kind, CudaLinker.Outcome outcome) {
        return switch (outcome) {
            case CudaLinker.Missing(String reason) -> throw new DeviceException.LibraryMissing(reason);
            case CudaLinker.Opened library -> {
                if (library.isSimulated() != (kind == DeviceKind.CUDASIM)) {
                    throw new DeviceException.LibraryMissing("%s is a %s %s, of no use to %s"
                            .formatted(
                                    library.file(),
                                    library.isSimulated() ? "simulated" : "real",
                                    library.vendor().title(),
                                    kind.prefix()));
                }
                yield library;
            }
        };
    }

    private static <T> T bound(String device, CudaLinker.Vendor vendor, Supplier<T> panama, Supplier<T> jcuda) {
        String asked = System.getProperty(BINDING_PROPERTY, "");
        return switch (asked) {
            case "panama" -> panama.get();
            case "jcuda" -> jcuda.get();
            case "" -> {
                try {
                    yield panama.get();
                } catch (DeviceException.LibraryMissing e) {
                    yield fallback(device, vendor, jcuda, String.valueOf(e.getMessage()));
                }
            }
            default ->
                throw new DeviceException.Unsupported(
                        "%s=%s: panama and jcuda are known".formatted(BINDING_PROPERTY, asked));
        };
    }

    private static <T> T fallback(String device, CudaLinker.Vendor vendor, Supplier<T> jcuda, String reason) {
        T found;
        try {
            found = jcuda.get();
        } catch (DeviceException.LibraryMissing e) {
            throw new DeviceException.LibraryMissing(
                    "%s: %s; nor through JCuda: %s".formatted(vendor.title(), reason, e.getMessage()));
        }
        CudaStatus.LOG.info("{}: {} is called through JCuda, because: {}", device, vendor.title(), reason);
        return found;
    }

    @Override
    public Blas blas() {
        return blas;
    }

    @Override
    public CusolverSolver solver() {
        if (solver == null) {
            try {
                solver = new CusolverSolver(device, cusolver(device, linker), CusolverSolver.Method.AUTO);
            } catch (DeviceException.LibraryMissing e) {
                throw new DeviceException.Unsupported(
                        "%s has no decompositions: %s".formatted(device.name(), e.getMessage()));
            }
        }
        return solver;
    }

    @Override
    public String title() {
        return blas.title();
    }

    @Override
    public boolean multiplies() {
        return true;
    }

    @Override
    public boolean takes(Product product) {
        MatrixBatch out = product.out();
        return (long) out.rows() * out.cols() * product.a().cols() >= LEAST_WORK
                && CudaOperands.isStored(product.a())
                && CudaOperands.isStored(product.b());
    }

    @Override
    public void multiply(Product product) {
        MatrixBatch out = product.out();
        MatrixBatch base = product.base();
        if (CudaOperands.overlap(out, product.a())
                || CudaOperands.overlap(out, product.b())
                || (base != null && CudaOperands.overlap(out, base))) {
            throw new DeviceException.InvalidOperand("multiply: the result in %s overlaps an operand"
                    .formatted(out.buffer().label()));
        }
        double baseFactor = 0;
        if (base != null && product.baseFactor() != 0) {
            device.rearrange(base, out); // cuBLAS adds to what is there
            baseFactor = product.baseFactor();
        }
        blas.multiply(product.precision(), together, product.factor(), product.a(), product.b(), baseFactor, out);
    }

    @Override
    public void close() {
        try {
            if (solver != null) {
                solver.close();
                solver = null;
            }
        } finally {
            blas.close();
        }
    }
}
