package org.fedcomuon.internal.vendor;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import org.fedcomuon.internal.bindings.cusolver.CusolverNative;

/** cuSOLVER through Panama. */
final class CusolverPanama implements CusolverBinding {
    /** The version of CUDA 12, in which cuSOLVER's own version is one lower. */
    private static final int OLDEST = 11;

    private final String title;
    private final MethodHandle setStreamCall;
    private final MethodHandle sgesvdSize;
    private final MethodHandle dgesvdSize;
    private final MethodHandle sgesvd;
    private final MethodHandle dgesvd;
    private final MethodHandle sgesvdjSize;
    private final MethodHandle dgesvdjSize;
    private final MethodHandle sgesvdj;
    private final MethodHandle dgesvdj;
    private final MethodHandle gesvdjBatchedSize;
    private final MethodHandle gesvdjBatched;
    private final MethodHandle gesvdpSize;
    private final MethodHandle gesvdp;
    private final Optional<MethodHandle> syevBatchedSize;
    private final Optional<MethodHandle> syevBatched;
    private final Optional<MethodHandle> polarSize;
    private final Optional<MethodHandle> polar;

    private final MemorySegment answer; // two longs, of queries
    private final MemorySegment sigmaError;
    private final Deque<Runnable> destroy = new ArrayDeque<>();
    private final MemorySegment handle;
    private final MemorySegment jacobi;
    private final MemorySegment parameters;

    /**
     * Makes a handle on the current device.
     *
     * @throws VendorException.LibraryMissing when this version of the library cannot be used
     * @throws VendorException.Refused when the library does not start
     */
    CusolverPanama(CudaLinker.Opened library, String device) {
        title = "cuSOLVER " + version(library);
        setStreamCall = function(library, "cusolverDnSetStream");
        sgesvdSize = function(library, "cusolverDnSgesvd_bufferSize");
        dgesvdSize = function(library, "cusolverDnDgesvd_bufferSize");
        sgesvd = function(library, "cusolverDnSgesvd");
        dgesvd = function(library, "cusolverDnDgesvd");
        sgesvdjSize = function(library, "cusolverDnSgesvdj_bufferSize");
        dgesvdjSize = function(library, "cusolverDnDgesvdj_bufferSize");
        sgesvdj = function(library, "cusolverDnSgesvdj");
        dgesvdj = function(library, "cusolverDnDgesvdj");
        gesvdjBatchedSize = function(library, "cusolverDnSgesvdjBatched_bufferSize");
        gesvdjBatched = function(library, "cusolverDnSgesvdjBatched");
        gesvdpSize = function(library, "cusolverDnXgesvdp_bufferSize");
        gesvdp = function(library, "cusolverDnXgesvdp");
        syevBatchedSize = library.find(CusolverNative.class, "cusolverDnXsyevBatched_bufferSize");
        syevBatched = library.find(CusolverNative.class, "cusolverDnXsyevBatched");
        polarSize = library.find(CusolverNative.class, "cusolverDnXpolar_bufferSize");
        polar = library.find(CusolverNative.class, "cusolverDnXpolar");
        Arena arena = Arena.ofAuto();
        answer = arena.allocate(ValueLayout.JAVA_LONG, 2);
        sigmaError = arena.allocate(ValueLayout.JAVA_DOUBLE);
        try {
            handle = made(library, device, "cusolverDnCreate", "cusolverDnDestroy");
            jacobi = made(library, device, "cusolverDnCreateGesvdjInfo", "cusolverDnDestroyGesvdjInfo");
            parameters = made(library, device, "cusolverDnCreateParams", "cusolverDnDestroyParams");
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    private MemorySegment made(CudaLinker.Opened library, String device, String creator, String destroyer) {
        MethodHandle create = function(library, creator);
        MethodHandle end = function(library, destroyer);
        int status = VendorCalls.of(() -> (int) create.invokeExact(answer));
        if (status != CusolverNative.CUSOLVER_STATUS_SUCCESS()) {
            throw new VendorException.Refused(CudaLinker.Vendor.CUSOLVER, creator, status, "");
        }
        MemorySegment object = answer.get(ValueLayout.ADDRESS, 0);
        destroy.push(() -> {
            int ended = VendorCalls.of(() -> (int) end.invokeExact(object));
            if (ended != CusolverNative.CUSOLVER_STATUS_SUCCESS()) {
                VendorCalls.LOG.warn("{}: {} answered {}", device, destroyer, String.valueOf(ended));
            }
        });
        return object;
    }

    /** Needs no handle and no GPU. */
    static String version(CudaLinker.Opened library) {
        MethodHandle query = function(library, "cusolverGetVersion");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment value = arena.allocate(ValueLayout.JAVA_INT);
            int status = VendorCalls.of(() -> (int) query.invokeExact(value));
            int version = status == CusolverNative.CUSOLVER_STATUS_SUCCESS() ? value.get(ValueLayout.JAVA_INT, 0) : 0;
            String text = "%d.%d.%d".formatted(version / 1000, version / 100 % 10, version % 100);
            if (version / 1000 < OLDEST) {
                throw new VendorException.LibraryMissing(
                        "%s is cuSOLVER %s, but %d or later is needed".formatted(library.file(), text, OLDEST));
            }
            return text;
        }
    }

    private static MethodHandle function(CudaLinker.Opened library, String name) {
        return library.function(CusolverNative.class, name);
    }

    @Override
    public String title() {
        return title;
    }

    @Override
    public boolean hasPolar() {
        return polar.isPresent() && polarSize.isPresent();
    }

    @Override
    public boolean hasEigenvectors() {
        return syevBatched.isPresent() && syevBatchedSize.isPresent();
    }

    @Override
    public int setStream(MemorySegment stream) {
        return VendorCalls.of(() -> (int) setStreamCall.invokeExact(handle, stream));
    }

    @Override
    public int queryWorkspace(CusolverCall call, long[] bytes) {
        answer.fill((byte) 0);
        long element = call.wide() ? Double.BYTES : Float.BYTES;
        int economy = 1;
        int status = VendorCalls.of(() -> switch (call) {
            case CusolverCall.Gesvd c ->
                (int) (c.wide() ? dgesvdSize : sgesvdSize).invokeExact(handle, c.m(), c.n(), answer);
            case CusolverCall.Gesvdj c -> {
                int job = job(c.vectors());
                yield (int) (c.wide() ? dgesvdjSize : sgesvdjSize)
                        .invokeExact(
                                handle, job, economy, c.m(), c.n(), c.a(), c.lda(), c.s(), c.u(), c.ldu(), c.v(),
                                c.ldv(), answer, jacobi);
            }
            case CusolverCall.GesvdjBatched c -> {
                int job = job(c.vectors());
                yield (int) gesvdjBatchedSize.invokeExact(
                        handle, job, c.m(), c.n(), c.a(), c.lda(), c.s(), c.u(), c.ldu(), c.v(), c.ldv(), answer,
                        jacobi, c.batch());
            }
            case CusolverCall.Gesvdp c -> {
                int job = job(c.vectors());
                int type = type(c.wide());
                MemorySegment host = answer.asSlice(Long.BYTES);
                yield (int) gesvdpSize.invokeExact(
                        handle,
                        parameters,
                        job,
                        economy,
                        (long) c.m(),
                        (long) c.n(),
                        type,
                        c.a(),
                        (long) c.lda(),
                        type,
                        c.s(),
                        type,
                        c.u(),
                        (long) c.ldu(),
                        type,
                        c.v(),
                        (long) c.ldv(),
                        type,
                        answer,
                        host);
            }
            case CusolverCall.SyevBatched c -> {
                int job = job(c.vectors());
                int lower = CusolverNative.CUSOLVER_FILL_LOWER();
                int type = type(c.wide());
                MemorySegment host = answer.asSlice(Long.BYTES);
                yield (int) syevBatchedSize
                        .orElseThrow()
                        .invokeExact(
                                handle,
                                parameters,
                                job,
                                lower,
                                (long) c.n(),
                                type,
                                c.a(),
                                (long) c.n(),
                                type,
                                c.w(),
                                type,
                                answer,
                                host,
                                (long) c.batch());
            }
            case CusolverCall.Polar c -> {
                int full = CusolverNative.CUSOLVER_FILL_FULL();
                int type = type(c.wide());
                MemorySegment host = answer.asSlice(Long.BYTES);
                yield (int) polarSize
                        .orElseThrow()
                        .invokeExact(
                                handle,
                                parameters,
                                full,
                                (long) c.m(),
                                (long) c.n(),
                                type,
                                c.a(),
                                (long) c.lda(),
                                type,
                                c.h(),
                                (long) c.ldh(),
                                type,
                                answer,
                                host);
            }
        });
        boolean inBytes = switch (call) {
            case CusolverCall.Gesvdp _, CusolverCall.SyevBatched _, CusolverCall.Polar _ -> true;
            case CusolverCall.Gesvd _, CusolverCall.Gesvdj _, CusolverCall.GesvdjBatched _ -> false;
        };
        bytes[0] = inBytes ? answer.get(ValueLayout.JAVA_LONG, 0) : answer.get(ValueLayout.JAVA_INT, 0) * element;
        bytes[1] = answer.get(ValueLayout.JAVA_LONG, Long.BYTES);
        return status;
    }

    @Override
    public int run(CusolverCall call, MemorySegment device, MemorySegment host, MemorySegment info) {
        int elements = (int) (device.byteSize() / (call.wide() ? Double.BYTES : Float.BYTES));
        MemorySegment none = MemorySegment.NULL;
        int economy = 1;
        return VendorCalls.of(() -> switch (call) {
            case CusolverCall.Gesvd c -> {
                byte job = (byte) (c.vectors() ? 'S' : 'N');
                yield (int) (c.wide() ? dgesvd : sgesvd)
                        .invokeExact(
                                handle, job, job, c.m(), c.n(), c.a(), c.lda(), c.s(), c.u(), c.ldu(), c.vt(), c.ldvt(),
                                device, elements, none, info);
            }
            case CusolverCall.Gesvdj c -> {
                int job = job(c.vectors());
                yield (int) (c.wide() ? dgesvdj : sgesvdj)
                        .invokeExact(
                                handle, job, economy, c.m(), c.n(), c.a(), c.lda(), c.s(), c.u(), c.ldu(), c.v(),
                                c.ldv(), device, elements, info, jacobi);
            }
            case CusolverCall.GesvdjBatched c -> {
                int job = job(c.vectors());
                yield (int) gesvdjBatched.invokeExact(
                        handle, job, c.m(), c.n(), c.a(), c.lda(), c.s(), c.u(), c.ldu(), c.v(), c.ldv(), device,
                        elements, info, jacobi, c.batch());
            }
            case CusolverCall.Gesvdp c -> {
                int job = job(c.vectors());
                int type = type(c.wide());
                long onDevice = device.byteSize();
                long onHost = host.byteSize();
                yield (int) gesvdp.invokeExact(
                        handle,
                        parameters,
                        job,
                        economy,
                        (long) c.m(),
                        (long) c.n(),
                        type,
                        c.a(),
                        (long) c.lda(),
                        type,
                        c.s(),
                        type,
                        c.u(),
                        (long) c.ldu(),
                        type,
                        c.v(),
                        (long) c.ldv(),
                        type,
                        device,
                        onDevice,
                        host,
                        onHost,
                        info,
                        sigmaError);
            }
            case CusolverCall.SyevBatched c -> {
                int job = job(c.vectors());
                int lower = CusolverNative.CUSOLVER_FILL_LOWER();
                int type = type(c.wide());
                long onDevice = device.byteSize();
                long onHost = host.byteSize();
                yield (int) syevBatched
                        .orElseThrow()
                        .invokeExact(
                                handle,
                                parameters,
                                job,
                                lower,
                                (long) c.n(),
                                type,
                                c.a(),
                                (long) c.n(),
                                type,
                                c.w(),
                                type,
                                device,
                                onDevice,
                                host,
                                onHost,
                                info,
                                (long) c.batch());
            }
            case CusolverCall.Polar c -> {
                int full = CusolverNative.CUSOLVER_FILL_FULL();
                int type = type(c.wide());
                long onDevice = device.byteSize();
                long onHost = host.byteSize();
                yield (int) polar.orElseThrow()
                        .invokeExact(
                                handle,
                                parameters,
                                full,
                                (long) c.m(),
                                (long) c.n(),
                                type,
                                c.a(),
                                (long) c.lda(),
                                type,
                                c.h(),
                                (long) c.ldh(),
                                type,
                                device,
                                onDevice,
                                host,
                                onHost,
                                none,
                                none,
                                none,
                                info);
            }
        });
    }

    static int job(boolean vectors) {
        return vectors ? CusolverNative.CUSOLVER_EIG_MODE_VECTOR() : CusolverNative.CUSOLVER_EIG_MODE_NOVECTOR();
    }

    static int type(boolean wide) {
        return wide ? CusolverNative.CUSOLVER_R_64F() : CusolverNative.CUSOLVER_R_32F();
    }

    @Override
    public void close() {
        destroy.forEach(Runnable::run);
        destroy.clear();
    }
}
