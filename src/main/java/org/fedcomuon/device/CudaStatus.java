package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;
import org.fedcomuon.internal.bindings.cublas.CublasNative;
import org.fedcomuon.internal.bindings.cusolver.CusolverNative;
import org.fedcomuon.internal.bindings.nccl.NcclNative;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Calls of NVIDIA's libraries, and what becomes of the codes they answer with. */
final class CudaStatus {
    static final Logger LOG = LoggerFactory.getLogger(CudaStatus.class);

    private CudaStatus() {}

    /** A downcall that answers with a status. */
    @FunctionalInterface
    interface Call {
        int make() throws Throwable;
    }

    /** A downcall that answers with a pointer. */
    @FunctionalInterface
    interface Query {
        MemorySegment make() throws Throwable;
    }

    static int of(Call call) {
        try {
            return call.make();
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a downcall throws nothing checked", e);
        }
    }

    /** A string of the library's own. */
    static String words(Query query) {
        try {
            MemorySegment text = query.make();
            return text.equals(MemorySegment.NULL)
                    ? ""
                    : text.reinterpret(Long.MAX_VALUE).getString(0);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a downcall throws nothing checked", e);
        }
    }

    static DeviceException cublas(String device, String what, int status, String words) {
        String message = "%s: %s: cuBLAS says: %s (status %d)".formatted(device, what, words, status);
        if (status == CublasNative.CUBLAS_STATUS_ALLOC_FAILED()) {
            return new DeviceException.OutOfMemory(message);
        }
        if (status == CublasNative.CUBLAS_STATUS_INVALID_VALUE()) {
            return new DeviceException.InvalidOperand(message);
        }
        if (status == CublasNative.CUBLAS_STATUS_NOT_SUPPORTED()
                || status == CublasNative.CUBLAS_STATUS_ARCH_MISMATCH()) {
            return new DeviceException.Unsupported(message);
        }
        return new DeviceException.Fault(message);
    }

    static DeviceException cusolver(String device, String what, int status) {
        String message = "%s: %s: cuSOLVER says: %s (status %d)".formatted(device, what, cusolverWords(status), status);
        if (status == CusolverNative.CUSOLVER_STATUS_ALLOC_FAILED()) {
            return new DeviceException.OutOfMemory(message);
        }
        if (status == CusolverNative.CUSOLVER_STATUS_INVALID_VALUE()) {
            return new DeviceException.InvalidOperand(message);
        }
        if (status == CusolverNative.CUSOLVER_STATUS_NOT_SUPPORTED()
                || status == CusolverNative.CUSOLVER_STATUS_ARCH_MISMATCH()
                || status == CusolverNative.CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED()) {
            return new DeviceException.Unsupported(message);
        }
        return new DeviceException.Fault(message);
    }

    /** cuSOLVER has no words of its own. */
    private static String cusolverWords(int status) {
        return switch (status) {
            case 1 -> "not initialized";
            case 2 -> "allocation failed";
            case 3 -> "invalid value";
            case 4 -> "the device lacks a feature";
            case 5 -> "memory could not be accessed";
            case 6 -> "the work did not run";
            case 7 -> "internal error";
            case 8 -> "this type of matrix is not supported";
            case 9 -> "not supported";
            default -> "an error it does not explain";
        };
    }

    static DeviceException nccl(String device, String what, int result, String words) {
        String message = "%s: %s: NCCL says: %s (result %d)".formatted(device, what, words, result);
        return result == NcclNative.ncclInvalidArgument() || result == NcclNative.ncclInvalidUsage()
                ? new DeviceException.InvalidOperand(message)
                : new DeviceException.Fault(message, result == NcclNative.ncclRemoteError());
    }
}
