// A CPU context: threads, the chosen kernels, and the buffers it has given out.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "kernels.h"
#include "pool.h"

struct fcm_context {
    fcm_context(int threads, int32_t isa_in_use, const fcm::Kernels &table) : pool(threads), isa(isa_in_use), kernels(table) {}
    ~fcm_context();
    fcm_context(const fcm_context &) = delete;
    fcm_context &operator=(const fcm_context &) = delete;

    fcm::Pool pool;
    const int32_t isa;
    const fcm::Kernels &kernels;

    struct Allocation {
        int64_t asked;
        int64_t mapped;  // bytes of a mapping of its own, 0 when it came from the heap
    };
    mutable std::mutex buffers_mutex;
    std::unordered_map<void *, Allocation> buffers;
    int64_t live_bytes = 0;  // guarded by buffers_mutex
};

namespace fcm {

int32_t best_isa();
const char *isa_name(int32_t isa);

}  // namespace fcm
