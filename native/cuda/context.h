// A context on a GPU: a device, a stream, and the buffers it has given out. Host side only.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "failure.h"
#include "portable.h"

namespace fcm {

// What an operation finds on the device and the host has to know: numbers, none when nothing was found.
constexpr unsigned long long kNothing = ~0ull;
struct Findings {
    unsigned long long bad;           // the first thing that is not finite
    unsigned long long out_of_range;  // Newton-Schulz: the first matrix that left the range of float
    unsigned long long next;          // Newton-Schulz: the next matrix to be taken
};

// Room on the device for what an operation carries along; operations of one stream use it one after the other.
constexpr int64_t kScratchBytes = int64_t{1} << 20;
// Pinned room for tables on their way to the device.
constexpr int64_t kStagingBytes = int64_t{1} << 16;

// CUDA said no. `what` was being done.
struct Failure {
    cudaError_t code;
    std::string what;
};

inline void check(cudaError_t code, const char *what) {
    if (code == cudaSuccess) return;
    (void)cudaGetLastError();  // an error that has been reported must not be found again by the next launch
    throw Failure{code, what};
}
inline void check(cudaError_t code, const char *what, int64_t bytes) {
    if (code != cudaSuccess) check(code, (std::string(what) + " of " + std::to_string(bytes) + " bytes").c_str());
}

// After every launch; the sizes are for the words.
inline void launched(const char *kernel, int64_t clients, int64_t n) {
    const cudaError_t code = cudaGetLastError();
    if (code == cudaSuccess) return;
    throw Failure{code, std::string(kernel) + " of " + std::to_string(clients) + " x " + std::to_string(n)};
}

// Makes a device the thread's current one and puts back what was: other libraries live on the same thread.
class OnDevice {
   public:
    explicit OnDevice(int device) : device_(device) {
        check(cudaGetDevice(&before_), "cudaGetDevice");
        if (before_ != device_) check(cudaSetDevice(device_), "cudaSetDevice");
    }
    ~OnDevice() {
        if (before_ != device_) (void)cudaSetDevice(before_);
    }
    OnDevice(const OnDevice &) = delete;
    OnDevice &operator=(const OnDevice &) = delete;

   private:
    int device_;
    int before_ = 0;
};

}  // namespace fcm

struct fcm_context {
    explicit fcm_context(int ordinal);
    ~fcm_context();
    fcm_context(const fcm_context &) = delete;
    fcm_context &operator=(const fcm_context &) = delete;

    const int device;
    int64_t memory_bytes = 0;
    int multiprocessors = 0;
    int shared_bytes = 0;  // dynamic shared memory that a block can be given at most
    cudaStream_t stream = nullptr;
    cudaEvent_t mark = nullptr;          // for copies that another stream has to wait for
    fcm::Findings *findings = nullptr;   // on the device
    fcm::Findings *found = nullptr;      // pinned: where they are read to
    void *scratch = nullptr;             // kScratchBytes on the device
    void *staging = nullptr;             // kStagingBytes, pinned

    mutable std::mutex buffers_mutex;
    std::unordered_map<void *, int64_t> buffers;
    std::unordered_map<void *, int64_t> host_buffers;
    int64_t live_bytes = 0;  // guarded by buffers_mutex, as are the two maps

   private:
    void release() noexcept;
};

struct fcm_event {
    fcm_context *context;
    cudaEvent_t event;
};

namespace fcm {

#ifdef FCM_CUDASIM
constexpr int32_t kKind = 2;
constexpr const char *kKindName = "cudasim";
#else
constexpr int32_t kKind = 1;
constexpr const char *kKindName = "cuda";
#endif
static_assert(kKind == FCM_CUDA || kKind == FCM_CUDASIM, "a device of the header");

fcm_status fail_device(fcm_error *error, const char *function, int device, const Failure &failure) noexcept;

// Everything an operation does on its context's device, after its arguments have been checked.
template <class Body>
fcm_status on_device(const char *function, const fcm_context *context, fcm_error *error, Body &&body) {
    try {
        OnDevice here(context->device);
        return body();
    } catch (const Failure &failure) {
        return fail_device(error, function, context->device, failure);
    }
}

// Nothing has been found yet, in stream order.
inline void forget(const fcm_context *context) {
    check(cudaMemsetAsync(context->findings, 0xff, sizeof(Findings), context->stream), "cudaMemsetAsync");
}

// Waits for the stream and says what was found.
inline Findings read_findings(const fcm_context *context) {
    check(cudaMemcpyAsync(context->found, context->findings, sizeof(Findings), cudaMemcpyDeviceToHost, context->stream),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(context->stream), "cudaStreamSynchronize");
    return *context->found;
}

// The grid of a kernel that strides over its tasks. Never a function of the device: nothing may depend on it anyway, and
// this way a test runs what a user runs.
inline unsigned blocks_for(int64_t tasks) {
    constexpr int64_t kMostBlocks = 1 << 16;
    return static_cast<unsigned>(tasks < kMostBlocks ? tasks : kMostBlocks);
}

// finite.cu: the first NaN or Inf in client order; waits for the stream.
Place first_not_finite(const fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t stride);

inline fcm_status fail_not_finite(const char *function, const char *name, Place place, fcm_error *error) {
    return fail(error, FCM_NOT_FINITE, place, "%s: %s of client %" PRId64 " is not finite at element %" PRId64, function,
                name, place.client, place.index);
}

}  // namespace fcm
