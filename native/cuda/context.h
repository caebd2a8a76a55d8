// A context on a GPU: a device, a stream, and the buffers that it has allocated. Host side only.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "failure.h"
#include "portable.h"

namespace fcm {

// Findings of an operation on the device that the host has to read: positions, or kNothing if nothing was found.
constexpr unsigned long long kNothing = ~0ull;
struct Findings {
    unsigned long long bad;           // the first position that is not finite
    unsigned long long out_of_range;  // Newton-Schulz: the first matrix that left the range of float
    unsigned long long next;          // Newton-Schulz: the next matrix in the queue
};

// Scratch memory on the device for an operation; the operations of one stream use it one after the other.
constexpr int64_t kScratchBytes = int64_t{1} << 20;
// Pinned staging memory for tables that are copied to the device.
constexpr int64_t kStagingBytes = int64_t{1} << 16;
// Pinned memory for copies from GPUs whose memory this one cannot access: while one slot is being filled by the other GPU,
// this one empties the other. Two slots of 4 MiB keep both busy, and are small compared with what is copied.
constexpr int kSlots = 2;
constexpr int64_t kSlotBytes = int64_t{4} << 20;

// How copies come from another GPU.
struct Route {
    bool direct = false;
    cudaEvent_t filled[kSlots] = {};  // on the other GPU; unused if direct
};

// A CUDA call failed; `what` names the call.
struct Failure {
    cudaError_t code;
    std::string what;
};

inline void check(cudaError_t code, const char *what) {
    if (code == cudaSuccess) return;
    (void)cudaGetLastError();  // otherwise the next launch would report this error again
    throw Failure{code, what};
}
inline void check(cudaError_t code, const char *what, int64_t bytes) {
    if (code != cudaSuccess) check(code, (std::string(what) + " of " + std::to_string(bytes) + " bytes").c_str());
}

// Called after every launch; the sizes are only used in the message.
inline void launched(const char *kernel, int64_t clients, int64_t n) {
    const cudaError_t code = cudaGetLastError();
    if (code == cudaSuccess) return;
    throw Failure{code, std::string(kernel) + " of " + std::to_string(clients) + " x " + std::to_string(n)};
}

// Whether this process has a primary context on a device; asking creates none.
bool has_context(int device) noexcept;

// Makes a device current on this thread and restores the previous one, because other libraries use the same thread. A
// device without a context is not restored: cudaSetDevice would create one, which takes half a gigabyte of a GPU that this
// process may not even be allowed to use, and nobody on this thread can be using it. On a context's own thread its device is
// current already.
class OnDevice {
   public:
    explicit OnDevice(int device) {
        check(cudaGetDevice(&before_), "cudaGetDevice");
        if (before_ == device) return;
        check(cudaSetDevice(device), "cudaSetDevice");
        restores_ = has_context(before_);
    }
    ~OnDevice() {
        // Without the second call, the next launch would be blamed for the failure of the first.
        if (restores_ && cudaSetDevice(before_) != cudaSuccess) (void)cudaGetLastError();
    }
    OnDevice(const OnDevice &) = delete;
    OnDevice &operator=(const OnDevice &) = delete;

    // From now on the device is current on this thread.
    void stay() { restores_ = false; }

   private:
    int before_ = 0;
    bool restores_ = false;
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
    int shared_bytes = 0;  // maximum dynamic shared memory of a block
    cudaStream_t stream = nullptr;
    cudaEvent_t mark = nullptr;          // for copies that another stream has to wait for
    fcm::Findings *findings = nullptr;   // on the device
    fcm::Findings *found = nullptr;      // pinned copy of the findings
    void *scratch = nullptr;             // kScratchBytes on the device
    void *staging = nullptr;             // kStagingBytes, pinned

    mutable std::mutex buffers_mutex;
    std::unordered_map<void *, int64_t> buffers;
    std::unordered_map<void *, int64_t> host_buffers;
    int64_t live_bytes = 0;  // guarded by buffers_mutex, as are the two maps

    // For copies from other GPUs, made by the first that needs them.
    std::mutex routes_mutex;
    std::unordered_map<int, fcm::Route> routes;      // by the other GPU
    unsigned char *slots[fcm::kSlots] = {};          // kSlotBytes each, pinned for all GPUs
    cudaEvent_t emptied[fcm::kSlots] = {};           // on this GPU

   private:
    void release() noexcept;
};

struct fcm_event {
    fcm_context *context;
    int device;  // the context may be destroyed before the event
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

// Runs an operation on its context's device. The body returns a status, or nothing if it reports errors only by exception.
template <class Body>
fcm_status on_device(const char *function, const fcm_context *context, fcm_error *error, Body &&body) {
    try {
        OnDevice here(context->device);
        // Another library on this thread may have ignored an error, which launched() would take for ours. That of a device
        // that has failed cannot be removed, and is reported by the first call of the body.
        (void)cudaGetLastError();
        if constexpr (std::is_void_v<decltype(body())>) {
            body();
            return FCM_OK;
        } else {
            return body();
        }
    } catch (const Failure &failure) {
        return fail_device(error, function, context->device, failure);
    }
}

// Resets the findings, in stream order.
inline void forget(const fcm_context *context) {
    check(cudaMemsetAsync(context->findings, 0xff, sizeof(Findings), context->stream), "cudaMemsetAsync");
}

// Waits for the stream and returns the findings.
inline Findings read_findings(const fcm_context *context) {
    check(cudaMemcpyAsync(context->found, context->findings, sizeof(Findings), cudaMemcpyDeviceToHost, context->stream),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(context->stream), "cudaStreamSynchronize");
    return *context->found;
}

// The grid of a kernel with a grid-stride loop. It never depends on the device: results must not depend on it anyway, and
// tests run the same configuration as users.
inline unsigned blocks_for(int64_t tasks) {
    constexpr int64_t kMostBlocks = 1 << 16;
    return static_cast<unsigned>(tasks < kMostBlocks ? tasks : kMostBlocks);
}

// finite.cu: the first NaN or Inf in client order; waits for the stream.
Place first_not_finite(const fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t stride);

}  // namespace fcm
