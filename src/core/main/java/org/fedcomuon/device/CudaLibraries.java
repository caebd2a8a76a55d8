package org.fedcomuon.device;

import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.internal.vendor.CublasBinding;
import org.fedcomuon.internal.vendor.CudaBindings;
import org.fedcomuon.internal.vendor.CudaLinker;
import org.fedcomuon.internal.vendor.VendorException;
import org.jspecify.annotations.Nullable;

/**
 * cuBLAS and cuSOLVER of one CUDA device, as {@link CudaBindings} finds them.
 *
 * <p>Products of matrices are computed one call per client, so that a client's results do not depend on how many share
 * its device; {@code -Dfedcomuon.cuda.deterministic=false} gives that up for one call for all.
 */
final class CudaLibraries implements VendorLibraries {
    /** {@code false} allows what is faster and depends on how the clients are spread over devices. */
    static final String DETERMINISTIC_PROPERTY = "fedcomuon.cuda.deterministic";

    /**
     * The least number of multiplications at which cuBLAS computes a product. For smaller products, a launch per client
     * costs more than it saves.
     */
    private static final long LEAST_WORK = 1L << 20;

    private final NativeDevice device;
    private final CudaBindings bindings;
    private final boolean together;
    private final CublasBlas blas;
    private @Nullable CusolverSolver solver;

    private CudaLibraries(NativeDevice device, CudaBindings bindings, CublasBlas blas) {
        this.device = device;
        this.bindings = bindings;
        this.together = together();
        this.blas = blas;
    }

    /**
     * Returns the libraries of a device, or {@link VendorLibraries.Missing} with a reason where cuBLAS is not
     * available.
     */
    static VendorLibraries of(NativeDevice device) {
        CudaBindings bindings = bindings(device.kind());
        CublasBinding cublas;
        try {
            device.stream(); // the handle will be of the device that is current
            cublas = bindings.cublas(device.name());
        } catch (VendorException.LibraryMissing e) {
            return new Missing(device.name(), String.valueOf(e.getMessage()));
        } catch (VendorException e) {
            throw CudaStatus.of(device.name(), e);
        }
        return new CudaLibraries(device, bindings, new CublasBlas(device, cublas));
    }

    /** Returns whether a call may serve all clients, whose bits then depend on how many share the device. */
    static boolean together() {
        return !Boolean.parseBoolean(System.getProperty(DETERMINISTIC_PROPERTY, "true"));
    }

    /** Returns the libraries of a kind of device. */
    static CudaBindings bindings(DeviceKind kind) {
        return kind == DeviceKind.CUDASIM ? CudaBindings.simulated(kind.prefix()) : CudaBindings.real(kind.prefix());
    }

    /**
     * Returns each library, as devices of a kind would use it: looked for as {@link #of} does. Neither a GPU nor a
     * driver is needed.
     */
    static List<Devices.VendorLibrary> describe(DeviceKind kind) {
        CudaBindings bindings = bindings(kind);
        var all = new ArrayList<Devices.VendorLibrary>();
        for (CudaLinker.Vendor vendor : CudaLinker.Vendor.values()) {
            try {
                CudaBindings.Found found = bindings.describe(vendor);
                all.add(Devices.VendorLibrary.found(vendor.title(), found.version(), found.file(), found.binding()));
            } catch (VendorException e) {
                all.add(Devices.VendorLibrary.missing(vendor.title(), String.valueOf(e.getMessage())));
            }
        }
        return List.copyOf(all);
    }

    @Override
    public Blas blas() {
        return blas;
    }

    @Override
    public CusolverSolver solver() {
        if (solver == null) {
            try {
                device.stream(); // the handle will be of the device that is current
                solver = new CusolverSolver(device, bindings.cusolver(device.name()), CusolverSolver.Method.AUTO);
            } catch (VendorException.LibraryMissing e) {
                throw new DeviceException.Unsupported(
                        "%s has no decompositions: %s".formatted(device.name(), e.getMessage()));
            } catch (VendorException e) {
                throw CudaStatus.of(device.name(), e);
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
                && MatrixOperands.isStored(product.a())
                && MatrixOperands.isStored(product.b());
    }

    @Override
    public void multiply(Product product) {
        MatrixBatch out = product.out();
        MatrixBatch base = product.base();
        if (MatrixOperands.overlap(out, product.a())
                || MatrixOperands.overlap(out, product.b())
                || (base != null && MatrixOperands.overlap(out, base))) {
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
