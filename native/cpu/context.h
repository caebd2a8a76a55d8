// A context of the CPU: threads, the chosen kernels, and the memory it has given out. Or one that stands for a
// backend's, and is empty but for that; see backend.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "fedcomuon.h"
#include "kernels.h"
#include "pool.h"

namespace fcm {
struct Backend;
}

struct fcm_context {
    fcm_context(int threads, int32_t isa_in_use, const fcm::Kernels &table) : pool(threads), isa(isa_in_use), kernels(table) {}
    fcm_context(const fcm::Backend &owner, fcm_context *theirs)
        : pool(1), isa(FCM_ISA_AUTO), kernels(fcm::kernels_baseline()), backend(&owner), remote(theirs) {}
    ~fcm_context();
    fcm_context(const fcm_context &) = delete;
    fcm_context &operator=(const fcm_context &) = delete;

    fcm::Pool pool;
    const int32_t isa;
    const fcm::Kernels &kernels;
    const fcm::Backend *const backend = nullptr;  // null: the CPU's own
    fcm_context *const remote = nullptr;

    struct Allocation {
        int64_t asked;
        int64_t mapped;  // bytes of a mapping of its own, 0 when it came from the heap
    };
    mutable std::mutex buffers_mutex;
    std::unordered_map<void *, Allocation> buffers;
    std::unordered_map<void *, Allocation> host;  // as above; on the CPU one memory serves as both
    int64_t live_bytes = 0;  // guarded by buffers_mutex
};

namespace fcm {

int32_t best_isa();
const char *isa_name(int32_t isa);

}  // namespace fcm
