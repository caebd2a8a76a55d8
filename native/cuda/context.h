// A context on a GPU: a device, a stream, and the buffers that it has allocated. Host side only.
#pragma once

#include <array>
#include <cinttypes>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "failure.h"
#include "portable.h"
#include "status.h"

namespace fcm {

// A block of a client, for messages: where it is from the client's base.
struct Span {
    int64_t offset;
    int64_t size;
};
using Spans = std::vector<Span>;

// What an operation looks for; see the functions fail_* of the same names.
enum class Sought { kNotFinite, kOutOfRange, kNorm, kConverged, kComputed };

// An operation that looks for NaN or Inf, for the message if it finds any.
struct Question {
    const char *function = nullptr;
    const char *operand = nullptr;
    Sought sought = Sought::kNotFinite;
    uintptr_t base = 0;
    int64_t stride = 0;   // in bytes; 0 if there is one client, or one vector for all
    int64_t element = 0;  // in bytes
    int64_t mark = 0;
    std::shared_ptr<const Spans> blocks;

    template <class Element>
    static Question about(const char *function, const char *operand, Sought sought, int64_t clients, const Element *base,
                          int64_t stride, std::shared_ptr<const Spans> blocks = nullptr) {
        constexpr int64_t kBytes = sizeof(Element);
        return {function,
                operand,
                sought,
                reinterpret_cast<uintptr_t>(base),
                clients == 1 ? 0 : stride * kBytes,
                kBytes,
                0,
                std::move(blocks)};
    }
};

// The last operations that looked for something. A step has about twenty, and waits once or twice.
constexpr size_t kQuestions = 1024;

struct LargeSchulzPlan;

// A workspace that was prepared for an operation on blocks.
struct Prepared {
    uint64_t digest = 0;  // of blocks and coefficients
    std::shared_ptr<const Spans> blocks = nullptr;
    std::shared_ptr<const LargeSchulzPlan> schulz = nullptr;  // of Newton-Schulz only
    int64_t clients = 0;                                      // of Newton-Schulz only: the most that a call may have
};

// Scratch memory on the device for an operation; the operations of one stream use it one after the other.
constexpr int64_t kScratchBytes = int64_t{1} << 20;
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
    int capability = 0;  // 75 for 7.5
    int shared_bytes = 0;  // maximum dynamic shared memory of a block
    cudaStream_t stream = nullptr;
    cudaEvent_t mark = nullptr;          // for copies that another stream has to wait for
    void *scratch = nullptr;             // kScratchBytes on the device

    fcm::Status *status = nullptr;  // on the device: the first for operations, the second for questions of the host
    fcm::Status *seen = nullptr;    // pinned copies of both
    int64_t operation_mark = 0;       // of the operations given from now on
    unsigned long long tickets = 0;   // of operations that look for something, so far
    unsigned long long answered = 0;  // how many of them have been read
    std::array<fcm::Question, fcm::kQuestions> questions;
    std::unordered_map<const void *, fcm::Prepared> prepared;  // by workspace

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

// Notes an operation that looks for NaN or Inf. Its kernels get the result.
Check ask(fcm_context *context, Question question);

// Waits for the stream. If an operation has found NaN or Inf since the last call, reports it and resets the status.
fcm_status settle(fcm_context *context, fcm_error *error);

// The digest of a table, continued from `digest`.
uint64_t digest_of(const void *table, int64_t bytes, uint64_t digest = 0xcbf29ce484222325ull);

// Copies a table to a workspace and notes that it is prepared; waits.
void prepare(fcm_context *context, void *workspace, void *to, const std::vector<char> &table, Prepared prepared);

// What a workspace was prepared with; without blocks if it was not prepared with this digest.
Prepared prepared_workspace(const fcm_context *context, const void *workspace, uint64_t digest);

inline fcm_status fail_unprepared(const char *function, fcm_error *error) {
    return fail(error, FCM_INVALID_ARGUMENT, {}, "%s: the workspace has not been prepared for these blocks", function);
}

// The grid of a kernel with a grid-stride loop. It never depends on the device: results must not depend on it anyway, and
// tests run the same configuration as users.
inline unsigned blocks_for(int64_t tasks) {
    constexpr int64_t kMostBlocks = 1 << 16;
    return static_cast<unsigned>(tasks < kMostBlocks ? tasks : kMostBlocks);
}

// finite.cu: looks for NaN or Inf in x, without waiting; reports places of `of` instead if it is not null.
void look_for_not_finite(const fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t stride,
                         const float *of, int64_t of_stride, Check check);

}  // namespace fcm
