package org.fedcomuon.internal.vendor;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.fedcomuon.internal.bindings.cublas.CublasNative;

/** cuBLAS through Panama. */
final class CublasPanama implements CublasBinding {
    /** The lines of CUDA that the declarations in {@code native/include/vendor} were written for. */
    private static final int OLDEST = 12;

    private final String title;
    private final MethodHandle destroy;
    private final MethodHandle setStream;
    private final MethodHandle setMathMode;
    private final MethodHandle setWorkspace;
    private final MethodHandle getStatusString;
    private final MethodHandle sgemm;
    private final MethodHandle dgemm;
    private final MethodHandle gemmEx;
    private final MethodHandle gemmStridedBatchedEx;
    private final MethodHandle ssyrk;
    private final MethodHandle dsyrk;
    private final MethodHandle ssymm;
    private final MethodHandle dsymm;

    private final MemorySegment alpha;
    private final MemorySegment beta;
    private MemorySegment handle;
    private int mode = CublasNative.CUBLAS_DEFAULT_MATH();

    /**
     * Makes a handle on the current device.
     *
     * @throws VendorException.LibraryMissing when this version of the library cannot be used
     * @throws VendorException.Refused when the library does not start
     */
    CublasPanama(CudaLinker.Opened library) {
        title = "cuBLAS " + version(library);
        destroy = function(library, "cublasDestroy_v2");
        setStream = function(library, "cublasSetStream_v2");
        setMathMode = function(library, "cublasSetMathMode");
        setWorkspace = function(library, "cublasSetWorkspace_v2");
        getStatusString = function(library, "cublasGetStatusString");
        sgemm = function(library, "cublasSgemm_v2");
        dgemm = function(library, "cublasDgemm_v2");
        gemmEx = function(library, "cublasGemmEx");
        gemmStridedBatchedEx = function(library, "cublasGemmStridedBatchedEx");
        ssyrk = function(library, "cublasSsyrk_v2");
        dsyrk = function(library, "cublasDsyrk_v2");
        ssymm = function(library, "cublasSsymm_v2");
        dsymm = function(library, "cublasDsymm_v2");
        Arena arena = Arena.ofAuto();
        alpha = arena.allocate(ValueLayout.JAVA_DOUBLE);
        beta = arena.allocate(ValueLayout.JAVA_DOUBLE);
        MemorySegment made = arena.allocate(ValueLayout.ADDRESS);
        MethodHandle create = function(library, "cublasCreate_v2");
        int status = VendorCalls.of(() -> (int) create.invokeExact(made));
        if (status != CublasNative.CUBLAS_STATUS_SUCCESS()) {
            throw new VendorException.Refused(CudaLinker.Vendor.CUBLAS, "cublasCreate", status, words(status));
        }
        handle = made.get(ValueLayout.ADDRESS, 0);
    }

    /** Needs no handle and no GPU. */
    static String version(CudaLinker.Opened library) {
        MethodHandle property = function(library, "cublasGetProperty");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment value = arena.allocate(ValueLayout.JAVA_INT);
            var parts = new int[3];
            for (int part = 0; part < parts.length; part++) {
                int which = part;
                int status = VendorCalls.of(() -> (int) property.invokeExact(which, value));
                parts[part] = status == CublasNative.CUBLAS_STATUS_SUCCESS() ? value.get(ValueLayout.JAVA_INT, 0) : 0;
            }
            if (parts[0] < OLDEST) {
                throw new VendorException.LibraryMissing("%s is cuBLAS %d.%d.%d, but %d or later is needed"
                        .formatted(library.file(), parts[0], parts[1], parts[2], OLDEST));
            }
            return "%d.%d.%d".formatted(parts[0], parts[1], parts[2]);
        }
    }

    private static MethodHandle function(CudaLinker.Opened library, String name) {
        return library.function(CublasNative.class, name);
    }

    @Override
    public String title() {
        return title;
    }

    @Override
    public int prepare(MemorySegment stream, MemorySegment workspace) {
        int status = VendorCalls.of(() -> (int) setStream.invokeExact(handle, stream));
        if (status == CublasNative.CUBLAS_STATUS_SUCCESS()) {
            status = setMathMode(CublasNative.CUBLAS_PEDANTIC_MATH());
        }
        if (status == CublasNative.CUBLAS_STATUS_SUCCESS()) {
            long bytes = workspace.byteSize();
            status = VendorCalls.of(() -> (int) setWorkspace.invokeExact(handle, workspace, bytes));
        }
        return status;
    }

    private int setMathMode(int wanted) {
        int status = VendorCalls.of(() -> (int) setMathMode.invokeExact(handle, wanted));
        if (status == CublasNative.CUBLAS_STATUS_SUCCESS()) {
            mode = wanted;
        }
        return status;
    }

    @Override
    public int run(CublasCall call) {
        if (call.mathMode() != mode) {
            int status = setMathMode(call.mathMode());
            if (status != CublasNative.CUBLAS_STATUS_SUCCESS()) {
                return status;
            }
        }
        return VendorCalls.of(() -> switch (call) {
            case CublasCall.Gemm c -> {
                scales(c.wide(), c.alpha(), c.beta());
                yield (int) (c.wide() ? dgemm : sgemm)
                        .invokeExact(
                                handle, c.opA(), c.opB(), c.m(), c.n(), c.k(), alpha, c.a(), c.lda(), c.b(), c.ldb(),
                                beta, c.c(), c.ldc());
            }
            case CublasCall.GemmEx c -> {
                scales(false, c.alpha(), c.beta());
                int type = CublasNative.CUDA_R_32F();
                int algorithm = CublasNative.CUBLAS_GEMM_DEFAULT();
                yield (int) gemmEx.invokeExact(
                        handle,
                        c.opA(),
                        c.opB(),
                        c.m(),
                        c.n(),
                        c.k(),
                        alpha,
                        c.a(),
                        type,
                        c.lda(),
                        c.b(),
                        type,
                        c.ldb(),
                        beta,
                        c.c(),
                        type,
                        c.ldc(),
                        c.computeType(),
                        algorithm);
            }
            case CublasCall.GemmBatch c -> {
                scales(false, c.alpha(), c.beta());
                int type = CublasNative.CUDA_R_32F();
                int algorithm = CublasNative.CUBLAS_GEMM_DEFAULT();
                yield (int) gemmStridedBatchedEx.invokeExact(
                        handle,
                        c.opA(),
                        c.opB(),
                        c.m(),
                        c.n(),
                        c.k(),
                        alpha,
                        c.a(),
                        type,
                        c.lda(),
                        c.strideA(),
                        c.b(),
                        type,
                        c.ldb(),
                        c.strideB(),
                        beta,
                        c.c(),
                        type,
                        c.ldc(),
                        c.strideC(),
                        c.count(),
                        c.computeType(),
                        algorithm);
            }
            case CublasCall.Syrk c -> {
                scales(c.wide(), c.alpha(), c.beta());
                yield (int) (c.wide() ? dsyrk : ssyrk)
                        .invokeExact(
                                handle,
                                c.triangle(),
                                c.op(),
                                c.n(),
                                c.k(),
                                alpha,
                                c.a(),
                                c.lda(),
                                beta,
                                c.c(),
                                c.ldc());
            }
            case CublasCall.Symm c -> {
                scales(c.wide(), c.alpha(), c.beta());
                yield (int) (c.wide() ? dsymm : ssymm)
                        .invokeExact(
                                handle,
                                c.side(),
                                c.triangle(),
                                c.m(),
                                c.n(),
                                alpha,
                                c.a(),
                                c.lda(),
                                c.b(),
                                c.ldb(),
                                beta,
                                c.c(),
                                c.ldc());
            }
        });
    }

    /** The library reads them before it returns. */
    private void scales(boolean wide, double a, double b) {
        if (wide) {
            alpha.set(ValueLayout.JAVA_DOUBLE, 0, a);
            beta.set(ValueLayout.JAVA_DOUBLE, 0, b);
        } else {
            alpha.set(ValueLayout.JAVA_FLOAT, 0, (float) a);
            beta.set(ValueLayout.JAVA_FLOAT, 0, (float) b);
        }
    }

    @Override
    public String words(int status) {
        return VendorCalls.words(() -> (MemorySegment) getStatusString.invokeExact(status));
    }

    @Override
    public void close() {
        if (handle.equals(MemorySegment.NULL)) {
            return;
        }
        MemorySegment old = handle;
        handle = MemorySegment.NULL;
        int status = VendorCalls.of(() -> (int) destroy.invokeExact(old));
        if (status != CublasNative.CUBLAS_STATUS_SUCCESS()) {
            VendorCalls.LOG.warn("{}: cublasDestroy answered {}", title, words(status));
        }
    }
}
