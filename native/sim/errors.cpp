#include "host_thread.h"

namespace cudasim {

namespace {

struct ErrorText {
    cudaError_t error;
    const char *name;
    const char *words;
};
constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidHostPointer, "cudaErrorInvalidHostPointer", "invalid host pointer"},
    {cudaErrorInvalidDevicePointer, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable", "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported", "peer access is not supported between these two devices"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {cudaErrorPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText *find(cudaError_t error) {
    for (const ErrorText &entry : kErrors) {
        if (entry.error == error) return &entry;
    }
    return nullptr;
}

// A device that has failed reports that before anything else.
bool device_failed(HostThread &thread) {
    try {
        Machine &machine = *Machine::get();
        if (thread.device >= machine.devices() || !machine.faults().failed(thread.device)) return false;
        thread.fail(cudaErrorLaunchFailure, machine.faults().words(thread.device).c_str());
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

}  // namespace

HostThread &HostThread::current() {
    thread_local HostThread one;
    return one;
}

cudaError_t HostThread::fail(cudaError_t error, const char *why) {
    last = error;
    described = error;
    words = why;
    return error;
}

cudaError_t cudaPeekAtLastError() {
    HostThread &thread = HostThread::current();
    device_failed(thread);
    return thread.last;
}

cudaError_t cudaGetLastError() {
    const cudaError_t error = cudaPeekAtLastError();
    HostThread::current().last = cudaSuccess;
    return error;
}

const char *cudaGetErrorName(cudaError_t error) {
    const ErrorText *found = find(error);
    return found == nullptr ? "unrecognized error code" : found->name;
}

const char *cudaGetErrorString(cudaError_t error) {
    thread_local std::string words;
    const ErrorText *found = find(error);
    if (found == nullptr) return "unrecognized error code";
    const HostThread &thread = HostThread::current();
    // The message is kept after cudaGetLastError(), because a program calls that before it asks for the message.
    if (error != thread.described || thread.words.empty()) return found->words;
    words = std::string(found->words) + ": " + thread.words;
    return words.c_str();
}

}  // namespace cudasim
