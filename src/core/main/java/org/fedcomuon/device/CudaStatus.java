package org.fedcomuon.device;

import org.fedcomuon.internal.bindings.cublas.CublasNative;
import org.fedcomuon.internal.bindings.cusolver.CusolverNative;
import org.fedcomuon.internal.bindings.nccl.NcclNative;
import org.fedcomuon.internal.vendor.VendorException;

/** Turns a status of NVIDIA's libraries into an exception. */
final class CudaStatus {
    private CudaStatus() {}

    /** Returns the exception for a library that could not be set up for {@code device}. */
    static DeviceException of(String device, VendorException failure) {
        String message = String.valueOf(failure.getMessage());
        return switch (failure) {
            case VendorException.LibraryMissing _ -> new DeviceException.LibraryMissing(message);
            case VendorException.UnknownBinding _ -> new DeviceException.Unsupported(message);
            case VendorException.Refused refused ->
                switch (refused.vendor()) {
                    case CUBLAS -> cublas(device, refused.function(), refused.status(), refused.words());
                    case CUSOLVER -> cusolver(device, refused.function(), refused.status());
                    case NCCL -> nccl(device, refused.function(), refused.status(), refused.words());
                };
        };
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

    /** Returns the text of a status, because cuSOLVER has no function for it. */
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
