// Functions that CUDA does not have: for tests, and for the simulated vendor libraries that work on the same devices.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime.h"
#include "types.h"

extern "C" {
// The after-th next call (1 is the very next) of a kind on a device fails, once. what: "malloc", "launch", "copy", "nccl",
// "nccl-stuck", "nccl-dead", "nccl-remote" (vendor/nccl.cpp), "cublas", "cusolver", "cusolver-unconverged" (a matrix of a batch of
// eigenvectors, vendor/cusolver.cpp); or "clear", which removes everything injected on the device, or on all devices if it is -1. Returns 0 on success.
CUDASIM_API int cudasim_inject(const char *what, int device, long long after);
// Bytes allocated on a device and not yet freed; for -1, of all devices and pinned memory together. A free that is pending
// in a stream does not count yet.
CUDASIM_API long long cudasim_live_bytes(int device);
// The number of primary contexts of this process: on a device 0 or 1; for -1, on all devices together.
CUDASIM_API int cudasim_contexts(int device);
// From now on every task submitted to a stream is written as a line to the file at `path`: its device, stream and position,
// the stream and position that it waits for (0 0 for none), and a description. So is every wait of the host, as if it were
// work of stream 0 at position 0, with a description that begins with "wait cuda": trace.h lists the functions. NULL ends
// the trace. Returns 0 on success.
CUDASIM_API int cudasim_trace(const char *path);
}

namespace cudasim {

// The message of the last fault of any device: what a kernel did, where, and in which thread; empty if there was none.
CUDASIM_API std::string last_fault();

// Resets all devices, memory, streams, errors and injected faults, and reads the environment again. Objects created before
// must not be used afterwards.
CUDASIM_API void reconfigure();

// Returns true if this call is the one that cudasim_inject selected to fail.
CUDASIM_API bool injected(const char *what, int device);

// The device of a stream (the current device for the null stream), or -1 if there is no such stream.
CUDASIM_API int stream_device(cudaStream_t stream);

// Submits work to a stream in the same way as a kernel. While it runs, the memory of the stream's device, of its peers and
// of `devices` is accessible. An exception becomes a fault of the device.
CUDASIM_API cudaError_t enqueue(cudaStream_t stream, const char *what, std::function<void()> work,
                                const std::vector<int> &devices = {});

// Submits work that is done only when the kernels of other streams take part, as NCCL's are: it occupies its stream until
// over(there) returns true, whether anything ever makes it so or not, and then runs. `there` says whether the streams of
// `peers` have come to these events. over takes no lock, and is not asked any more when the device has failed. A caller who
// waits for the work lets those streams advance, because nothing runs on its own.
CUDASIM_API cudaError_t enqueue_waiting(cudaStream_t stream, const char *what, std::function<bool(bool there)> over,
                                        const std::vector<cudaEvent_t> &peers, std::function<void()> work,
                                        const std::vector<int> &devices);

// Whether a kernel or a copy on the device has failed since it was reset.
CUDASIM_API bool has_failed(int device);

// The classification of an address.
struct Place {
    enum class Kind { host, pinned, device, freed, unallocated };
    Kind kind = Kind::host;
    int device = -1;
    const unsigned char *base = nullptr;  // of the allocation that contains it (or did before it was freed)
    size_t bytes = 0;
    bool pool = false;   // from cudaMallocAsync: accessible to peers by cudaMemPoolSetAccess
    bool ready = true;   // false until the stream reaches the allocation
    // bytes from the address to the end of its allocation
    size_t room(const void *address) const {
        return static_cast<size_t>(base + bytes - static_cast<const unsigned char *>(address));
    }
};
CUDASIM_API Place place_of(const void *address);
CUDASIM_API std::string describe(const void *address);

}  // namespace cudasim
