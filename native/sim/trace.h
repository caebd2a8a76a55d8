// Records the work submitted to streams and the waits of the host, for tests of concurrency.
//
// A wait is a call in which the host may wait for a device, by its documentation rather than by what this simulation does:
//   cudaStreamSynchronize, cudaDeviceSynchronize, and cudaEventSynchronize of an event that was recorded;
//   cudaMemcpy, unless it is from device to device; cudaMemcpyAsync from or to pageable memory, which the driver may stage
//   after waiting for the stream; cudaMemcpyAsync between devices without access to each other (see runtime.h);
//   cudaFree of memory from cudaMalloc. From cudaMallocAsync it does not wait.
// Of cudaFreeHost the documentation says nothing; it is a wait here, because this simulation completes the pending copies.
// The same holds for an allocation that succeeds only after pending frees. cudaHostAlloc, cudaStreamDestroy and the
// simulated vendor libraries are no waits. Sources: CUDA Runtime API 13.0 (cuda_runtime_api.h), "API synchronization
// behavior", cudaFree, cudaStreamDestroy and cudaEventSynchronize.
#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "stream.h"

namespace cudasim {

class Trace {
   public:
    // Starts a file, or closes the current one if `path` is null. Returns false if the file cannot be written.
    bool open(const char *path);
    // One line: device, stream, position, the stream and position that it waits for (0 0 for none), and a description.
    void add(const Stream &stream, uint64_t position, const Mark *after, const std::string &what);
    // The line of a wait of the host: device, 0 0 in place of stream and position, the stream and position that the host
    // waits for (0 0 for everything on the device), and "wait " with the name of the function.
    void add_wait(int device, const Mark *until, const std::string &function);

   private:
    void write(int device, const Stream *stream, uint64_t position, const Mark *after, const std::string &what);

    struct Close {
        void operator()(std::FILE *file) const { (void)std::fclose(file); }
    };
    std::mutex mutex_;
    std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace cudasim
