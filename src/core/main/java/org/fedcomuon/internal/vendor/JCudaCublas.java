package org.fedcomuon.internal.vendor;

import static org.fedcomuon.internal.vendor.JCudaPointers.pointer;

import java.lang.foreign.MemorySegment;
import jcuda.Pointer;
import jcuda.cudaDataType;
import jcuda.jcublas.JCublas2;
import jcuda.jcublas.cublasHandle;
import org.fedcomuon.internal.bindings.cublas.CublasNative;

/** cuBLAS through JCuda. */
final class JCudaCublas implements CublasBinding {
    private final cublasHandle handle = new cublasHandle();
    private int mode = CublasNative.CUBLAS_DEFAULT_MATH();
    private final String title;
    private boolean closed;

    /** Makes a handle on the current device. */
    JCudaCublas() {
        int status = JCublas2.cublasCreate(handle);
        if (status != CublasNative.CUBLAS_STATUS_SUCCESS()) {
            throw new VendorException.Refused(CudaLinker.Vendor.CUBLAS, "cublasCreate", status, words(status));
        }
        var part = new int[1];
        var version = new StringBuilder("cuBLAS ");
        for (int which = CublasNative.MAJOR_VERSION(); which <= CublasNative.PATCH_LEVEL(); which++) {
            JCublas2.cublasGetProperty(which, part);
            version.append(part[0]).append(which < CublasNative.PATCH_LEVEL() ? "." : " through JCuda");
        }
        title = version.toString();
    }

    @Override
    public String title() {
        return title;
    }

    @Override
    public int prepare(MemorySegment stream, MemorySegment workspace) {
        int status = JCublas2.cublasSetStream(handle, JCudaPointers.stream(stream));
        if (status == CublasNative.CUBLAS_STATUS_SUCCESS()) {
            status = setMathMode(CublasNative.CUBLAS_PEDANTIC_MATH());
        }
        if (status == CublasNative.CUBLAS_STATUS_SUCCESS()) {
            status = JCublas2.cublasSetWorkspace(handle, pointer(workspace), workspace.byteSize());
        }
        return status;
    }

    private int setMathMode(int wanted) {
        int status = JCublas2.cublasSetMathMode(handle, wanted);
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
        int type = cudaDataType.CUDA_R_32F;
        int algorithm = CublasNative.CUBLAS_GEMM_DEFAULT();
        return switch (call) {
            case CublasCall.Gemm c ->
                c.wide()
                        ? JCublas2.cublasDgemm(
                                handle,
                                c.opA(),
                                c.opB(),
                                c.m(),
                                c.n(),
                                c.k(),
                                scale(true, c.alpha()),
                                pointer(c.a()),
                                c.lda(),
                                pointer(c.b()),
                                c.ldb(),
                                scale(true, c.beta()),
                                pointer(c.c()),
                                c.ldc())
                        : JCublas2.cublasSgemm(
                                handle,
                                c.opA(),
                                c.opB(),
                                c.m(),
                                c.n(),
                                c.k(),
                                scale(false, c.alpha()),
                                pointer(c.a()),
                                c.lda(),
                                pointer(c.b()),
                                c.ldb(),
                                scale(false, c.beta()),
                                pointer(c.c()),
                                c.ldc());
            case CublasCall.GemmEx c ->
                JCublas2.cublasGemmEx_new(
                        handle,
                        c.opA(),
                        c.opB(),
                        c.m(),
                        c.n(),
                        c.k(),
                        scale(false, c.alpha()),
                        pointer(c.a()),
                        type,
                        c.lda(),
                        pointer(c.b()),
                        type,
                        c.ldb(),
                        scale(false, c.beta()),
                        pointer(c.c()),
                        type,
                        c.ldc(),
                        c.computeType(),
                        algorithm);
            case CublasCall.GemmBatch c ->
                JCublas2.cublasGemmStridedBatchedEx_new(
                        handle,
                        c.opA(),
                        c.opB(),
                        c.m(),
                        c.n(),
                        c.k(),
                        scale(false, c.alpha()),
                        pointer(c.a()),
                        type,
                        c.lda(),
                        c.strideA(),
                        pointer(c.b()),
                        type,
                        c.ldb(),
                        c.strideB(),
                        scale(false, c.beta()),
                        pointer(c.c()),
                        type,
                        c.ldc(),
                        c.strideC(),
                        c.count(),
                        c.computeType(),
                        algorithm);
            case CublasCall.Syrk c ->
                c.wide()
                        ? JCublas2.cublasDsyrk(
                                handle,
                                c.triangle(),
                                c.op(),
                                c.n(),
                                c.k(),
                                scale(true, c.alpha()),
                                pointer(c.a()),
                                c.lda(),
                                scale(true, c.beta()),
                                pointer(c.c()),
                                c.ldc())
                        : JCublas2.cublasSsyrk(
                                handle,
                                c.triangle(),
                                c.op(),
                                c.n(),
                                c.k(),
                                scale(false, c.alpha()),
                                pointer(c.a()),
                                c.lda(),
                                scale(false, c.beta()),
                                pointer(c.c()),
                                c.ldc());
            case CublasCall.Symm c ->
                c.wide()
                        ? JCublas2.cublasDsymm(
                                handle,
                                c.side(),
                                c.triangle(),
                                c.m(),
                                c.n(),
                                scale(true, c.alpha()),
                                pointer(c.a()),
                                c.lda(),
                                pointer(c.b()),
                                c.ldb(),
                                scale(true, c.beta()),
                                pointer(c.c()),
                                c.ldc())
                        : JCublas2.cublasSsymm(
                                handle,
                                c.side(),
                                c.triangle(),
                                c.m(),
                                c.n(),
                                scale(false, c.alpha()),
                                pointer(c.a()),
                                c.lda(),
                                pointer(c.b()),
                                c.ldb(),
                                scale(false, c.beta()),
                                pointer(c.c()),
                                c.ldc());
        };
    }

    private static Pointer scale(boolean wide, double value) {
        return wide ? Pointer.to(new double[] {value}) : Pointer.to(new float[] {(float) value});
    }

    @Override
    public String words(int status) {
        return JCublas2.cublasGetStatusString(status);
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            JCublas2.cublasDestroy(handle);
        }
    }
}
