// What CUDA does not have: for tests, and for the stand-ins of the vendor's libraries that work on the same devices.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime.h"
#include "types.h"

extern "C" {
// The after-th next call (1 is the very next) of a kind on a device fails, once. what: "malloc", "launch", "copy",
// "nccl", "cublas", "cusolver"; or "clear", which takes back everything injected on the device, or on all if it is -1.
// 0 if that was understood.
CUDASIM_API int cudasim_inject(const char *what, int device, long long after);
// Bytes asked for on a device and not yet freed; of all devices and pinned memory together for -1. A free that waits in
// a stream has not happened.
CUDASIM_API long long cudasim_live_bytes(int device);
// From now on every piece of work put on a stream is a line in the file at `path`: its device, stream and position, the
// stream and position that it waits for (0 0 for none), and what it is. NULL ends it. 0 if the file could be made.
CUDASIM_API int cudasim_trace(const char *path);
}

namespace cudasim {

// The words of the last fault of any device: what a kernel did, where, and which thread; empty when there was none.
CUDASIM_API std::string last_fault();

// Forgets all devices, memory, streams, errors and injected faults, and reads the environment again. Nothing made
// before may be used after.
CUDASIM_API void reconfigure();

// True when this call is the one that cudasim_inject said should fail.
CUDASIM_API bool injected(const char *what, int device);

// The device of a stream (of the current device for the null stream), or -1 if there is no such stream.
CUDASIM_API int stream_device(cudaStream_t stream);

// Puts work on a stream as a kernel is put there. It runs with the memory of the stream's device, of its peers and of
// `devices` in reach. An exception it throws is a fault of the device.
CUDASIM_API cudaError_t enqueue(cudaStream_t stream, const char *what, std::function<void()> work,
                                const std::vector<int> &devices = {});

// What an address is.
struct Place {
    enum class Kind { host, pinned, device, freed, unallocated };
    Kind kind = Kind::host;
    int device = -1;
    const unsigned char *base = nullptr;  // of the allocation it lies in (or lay in, when freed)
    size_t bytes = 0;
    bool pool = false;   // from cudaMallocAsync: peer access does not extend to it
    bool ready = true;   // false while the stream has not come to the allocation yet
    // bytes from the address to the end of its allocation
    size_t room(const void *address) const {
        return static_cast<size_t>(base + bytes - static_cast<const unsigned char *>(address));
    }
};
CUDASIM_API Place place_of(const void *address);
CUDASIM_API std::string describe(const void *address);

}  // namespace cudasim
