// The runtime's state per host thread (the current device and the last error), and the wrapper around every function of the
// interface.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <string>

#include "machine.h"

namespace cudasim {

struct HostThread {
    int device = 0;
    cudaError_t last = cudaSuccess;
    std::string words;  // message of the last error, kept after cudaGetLastError()
    cudaError_t described = cudaSuccess;

    static HostThread &current();

    cudaError_t fail(cudaError_t error, const char *why);
};

// No exception reaches the caller: a refusal becomes CUDA's error code, and its message is kept for cudaGetErrorString.
template <class Body>
cudaError_t call(Body &&body) noexcept {
    HostThread &thread = HostThread::current();
    try {
        body(*Machine::get(), thread);
        return cudaSuccess;
    } catch (const ApiError &e) {
        return thread.fail(e.code(), e.what());
    } catch (const std::bad_alloc &) {
        return thread.fail(cudaErrorMemoryAllocation, "out of host memory");
    } catch (const std::exception &e) {
        return thread.fail(cudaErrorInitializationError, e.what());
    }
}

// For functions that need a context: the first creates the primary context of the current device.
template <class Body>
cudaError_t call_in_context(Body &&body) noexcept {
    return call([&](Machine &machine, HostThread &thread) {
        machine.need_context(thread.device);
        body(machine, thread);
    });
}

}  // namespace cudasim
