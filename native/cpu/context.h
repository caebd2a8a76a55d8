// A context of the CPU: a thread pool, the kernels for the chosen instruction set, and the memory that it has allocated. A
// context that stands for a backend's context holds nothing but a reference to it; see backend.h.
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
    const fcm::Backend *const backend = nullptr;  // null for the CPU itself
    fcm_context *const remote = nullptr;

    struct Allocation {
        int64_t asked;
        int64_t mapped;  // size of the separate mapping in bytes; 0 for memory from the heap
    };
    mutable std::mutex buffers_mutex;
    std::unordered_map<void *, Allocation> buffers;
    std::unordered_map<void *, Allocation> host;  // the same for host memory, which on the CPU is no different
    int64_t live_bytes = 0;  // guarded by buffers_mutex
};

namespace fcm {

int32_t best_isa();
const char *isa_name(int32_t isa);

}  // namespace fcm
