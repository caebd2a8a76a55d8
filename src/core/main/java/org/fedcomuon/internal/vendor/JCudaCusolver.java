package org.fedcomuon.internal.vendor;

import static org.fedcomuon.internal.vendor.JCudaPointers.pointer;

import java.lang.foreign.MemorySegment;
import jcuda.Pointer;
import jcuda.jcusolver.JCusolver;
import jcuda.jcusolver.JCusolverDn;
import jcuda.jcusolver.cusolverDnHandle;
import jcuda.jcusolver.gesvdjInfo;
import org.fedcomuon.internal.bindings.cusolver.CusolverNative;

/**
 * cuSOLVER through JCuda. Its Java side is that of CUDA 11.7, so there are neither a polar decomposition nor batched
 * eigenvectors of large matrices; nor gesvdp, for which it hands the library addresses that it never set.
 */
final class JCudaCusolver implements CusolverBinding {
    private static final int ECONOMY = 1;

    private final cusolverDnHandle handle = new cusolverDnHandle();
    private final gesvdjInfo jacobi = new gesvdjInfo();
    private final String title;
    private boolean closed;

    /** Makes a handle on the current device. */
    JCudaCusolver() {
        check("cusolverDnCreate", JCusolverDn.cusolverDnCreate(handle));
        check(
                "cusolverDnCreateGesvdjInfo",
                JCudaPointers.create(jacobi, () -> JCusolverDn.cusolverDnCreateGesvdjInfo(jacobi)));
        var version = new int[1];
        JCusolver.cusolverGetVersion(version);
        title = "cuSOLVER %d.%d.%d through JCuda".formatted(version[0] / 1000, version[0] / 100 % 10, version[0] % 100);
    }

    private static void check(String what, int status) {
        if (status != CusolverNative.CUSOLVER_STATUS_SUCCESS()) {
            throw new VendorException.Refused(CudaLinker.Vendor.CUSOLVER, what, status, "");
        }
    }

    @Override
    public String title() {
        return title;
    }

    @Override
    public boolean hasPolar() {
        return false;
    }

    @Override
    public boolean hasEigenvectors() {
        return false;
    }

    @Override
    public int setStream(MemorySegment stream) {
        return JCusolverDn.cusolverDnSetStream(handle, JCudaPointers.stream(stream));
    }

    @Override
    public int queryWorkspace(CusolverCall call, long[] bytes) {
        var elements = new int[1];
        int status = switch (call) {
            case CusolverCall.Gesvd c ->
                c.wide()
                        ? JCusolverDn.cusolverDnDgesvd_bufferSize(handle, c.m(), c.n(), elements)
                        : JCusolverDn.cusolverDnSgesvd_bufferSize(handle, c.m(), c.n(), elements);
            case CusolverCall.Gesvdj c -> {
                int job = CusolverPanama.job(c.vectors());
                yield c.wide()
                        ? JCusolverDn.cusolverDnDgesvdj_bufferSize(
                                handle,
                                job,
                                ECONOMY,
                                c.m(),
                                c.n(),
                                pointer(c.a()),
                                c.lda(),
                                pointer(c.s()),
                                pointer(c.u()),
                                c.ldu(),
                                pointer(c.v()),
                                c.ldv(),
                                elements,
                                jacobi)
                        : JCusolverDn.cusolverDnSgesvdj_bufferSize(
                                handle,
                                job,
                                ECONOMY,
                                c.m(),
                                c.n(),
                                pointer(c.a()),
                                c.lda(),
                                pointer(c.s()),
                                pointer(c.u()),
                                c.ldu(),
                                pointer(c.v()),
                                c.ldv(),
                                elements,
                                jacobi);
            }
            case CusolverCall.GesvdjBatched c ->
                JCusolverDn.cusolverDnSgesvdjBatched_bufferSize(
                        handle,
                        CusolverPanama.job(true),
                        c.m(),
                        c.n(),
                        pointer(c.a()),
                        c.lda(),
                        pointer(c.s()),
                        pointer(c.u()),
                        c.ldu(),
                        pointer(c.v()),
                        c.ldv(),
                        elements,
                        jacobi,
                        c.batch());
            case CusolverCall.Gesvdp _, CusolverCall.SyevBatched _, CusolverCall.Polar _ ->
                CusolverNative.CUSOLVER_STATUS_NOT_SUPPORTED();
        };
        bytes[0] = (long) elements[0] * (call.wide() ? Double.BYTES : Float.BYTES);
        bytes[1] = 0;
        return status;
    }

    @Override
    public int run(CusolverCall call, MemorySegment device, MemorySegment host, MemorySegment info) {
        int elements = (int) (device.byteSize() / (call.wide() ? Double.BYTES : Float.BYTES));
        Pointer work = pointer(device);
        Pointer answer = pointer(info);
        return switch (call) {
            case CusolverCall.Gesvd c -> {
                char job = c.vectors() ? 'S' : 'N';
                Pointer none = new Pointer();
                yield c.wide()
                        ? JCusolverDn.cusolverDnDgesvd(
                                handle,
                                job,
                                job,
                                c.m(),
                                c.n(),
                                pointer(c.a()),
                                c.lda(),
                                pointer(c.s()),
                                pointer(c.u()),
                                c.ldu(),
                                pointer(c.vt()),
                                c.ldvt(),
                                work,
                                elements,
                                none,
                                answer)
                        : JCusolverDn.cusolverDnSgesvd(
                                handle,
                                job,
                                job,
                                c.m(),
                                c.n(),
                                pointer(c.a()),
                                c.lda(),
                                pointer(c.s()),
                                pointer(c.u()),
                                c.ldu(),
                                pointer(c.vt()),
                                c.ldvt(),
                                work,
                                elements,
                                none,
                                answer);
            }
            case CusolverCall.Gesvdj c -> {
                int job = CusolverPanama.job(c.vectors());
                yield c.wide()
                        ? JCusolverDn.cusolverDnDgesvdj(
                                handle,
                                job,
                                ECONOMY,
                                c.m(),
                                c.n(),
                                pointer(c.a()),
                                c.lda(),
                                pointer(c.s()),
                                pointer(c.u()),
                                c.ldu(),
                                pointer(c.v()),
                                c.ldv(),
                                work,
                                elements,
                                answer,
                                jacobi)
                        : JCusolverDn.cusolverDnSgesvdj(
                                handle,
                                job,
                                ECONOMY,
                                c.m(),
                                c.n(),
                                pointer(c.a()),
                                c.lda(),
                                pointer(c.s()),
                                pointer(c.u()),
                                c.ldu(),
                                pointer(c.v()),
                                c.ldv(),
                                work,
                                elements,
                                answer,
                                jacobi);
            }
            case CusolverCall.GesvdjBatched c ->
                JCusolverDn.cusolverDnSgesvdjBatched(
                        handle,
                        CusolverPanama.job(true),
                        c.m(),
                        c.n(),
                        pointer(c.a()),
                        c.lda(),
                        pointer(c.s()),
                        pointer(c.u()),
                        c.ldu(),
                        pointer(c.v()),
                        c.ldv(),
                        work,
                        elements,
                        answer,
                        jacobi,
                        c.batch());
            case CusolverCall.Gesvdp _, CusolverCall.SyevBatched _, CusolverCall.Polar _ ->
                CusolverNative.CUSOLVER_STATUS_NOT_SUPPORTED();
        };
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            JCusolverDn.cusolverDnDestroyGesvdjInfo(jacobi);
            JCusolverDn.cusolverDnDestroy(handle);
        }
    }
}
