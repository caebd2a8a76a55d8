#include "context.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

#include "arguments.h"
#include "failure.h"

namespace fcm {

namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;

// Large buffers get a mapping of their own on huge pages: a stream over gigabytes spends its time in memory, not in
// address translation, and the pages arrive zeroed. A sanitizer sees only the heap, so there everything is heap.
#if defined(__SANITIZE_ADDRESS__)
constexpr int64_t kMapFrom = INT64_MAX;
#else
constexpr int64_t kMapFrom = kHugePage;
#endif

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

int64_t physical_bytes() { return int64_t{sysconf(_SC_PHYS_PAGES)} * int64_t{sysconf(_SC_PAGESIZE)}; }

void *map_zeroed(int64_t bytes) {
    // One huge page more than needed, then both ends are given back: mmap does not align to huge pages by itself.
    const int64_t span = bytes + kHugePage;
    void *raw = mmap(nullptr, static_cast<size_t>(span), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return nullptr;
    auto *start = static_cast<char *>(raw);
    const auto head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(start) & static_cast<uintptr_t>(kHugePage - 1));
    if (head > 0) munmap(start, static_cast<size_t>(head));
    if (kHugePage - head > 0) munmap(start + head + bytes, static_cast<size_t>(kHugePage - head));
    madvise(start + head, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // advice: a refusal costs speed only
    return start + head;
}

void release(void *address, const fcm_context::Allocation &allocation) {
    if (allocation.mapped > 0) {
        munmap(address, static_cast<size_t>(allocation.mapped));
    } else {
        std::free(address);
    }
}

// Copies and fills run in pieces this large, one a task.
constexpr int64_t kCopyPiece = int64_t{1} << 20;

template <class Piece>
void in_pieces(fcm_context *context, int64_t bytes, Piece &&piece) {
    const int64_t count = (bytes + kCopyPiece - 1) / kCopyPiece;
    context->pool.run(count, bytes / 4, [&](int64_t i, int) {
        const int64_t at = i * kCopyPiece;
        piece(at, static_cast<size_t>(bytes - at < kCopyPiece ? bytes - at : kCopyPiece));
    });
}

fcm_status copy(const char *function, fcm_context *context, void *to, const void *from, int64_t bytes, fcm_error *error) {
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).require(bytes >= 0, "bytes = %" PRId64 " is negative", bytes);
        arguments.batch("source", from, 1, bytes, bytes, 1, false);
        arguments.batch("target", to, 1, bytes, bytes, 1, true);
        arguments.disjoint();
        if (!arguments.ok()) return arguments.status();
        in_pieces(context, bytes, [&](int64_t at, size_t length) {
            std::memcpy(static_cast<char *>(to) + at, static_cast<const char *>(from) + at, length);
        });
        return fcm_status{FCM_OK};
    });
}

const Kernels &kernels_for(int32_t isa) {
#ifdef FCM_X86_64
    if (isa == FCM_ISA_AVX512) return kernels_avx512();
    if (isa == FCM_ISA_AVX2) return kernels_avx2();
#endif
    (void)isa;
    return kernels_baseline();
}

}  // namespace

int32_t best_isa() {
#ifdef FCM_X86_64
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
        return FCM_ISA_AVX512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return FCM_ISA_AVX2;
#endif
    return FCM_ISA_BASELINE;
}

const char *isa_name(int32_t isa) {
    switch (isa) {
        case FCM_ISA_BASELINE:
            return "baseline";
        case FCM_ISA_AVX2:
            return "avx2";
        case FCM_ISA_AVX512:
            return "avx512";
        default:
            return "unknown";
    }
}

}  // namespace fcm

using fcm::Arguments;
using fcm::fail;
using fcm::guarded;

fcm_context::~fcm_context() {
    for (const auto &[address, allocation] : buffers) fcm::release(address, allocation);
}

fcm_status fcm_context_create(int32_t kind, int32_t ordinal, int32_t threads, int32_t isa, fcm_context **context,
                              fcm_error *error) {
    constexpr const char *function = "fcm_context_create";
    return guarded(function, error, [&] {
        constexpr int32_t kMostThreads = 4096;
        Arguments arguments(function, error);
        arguments.require(context != nullptr, "the place for the context is null")
            .require(kind == FCM_CPU || kind == FCM_CUDA, "there is no device kind %d", kind)
            .require(ordinal >= 0, "ordinal = %d is negative", ordinal)
            .require(threads >= 1 && threads <= kMostThreads, "threads = %d is outside [1, %d]", threads, kMostThreads)
            .require(isa >= FCM_ISA_AUTO && isa <= FCM_ISA_AVX512, "there is no instruction set %d", isa);
        if (!arguments.ok()) return arguments.status();
        if (kind == FCM_CUDA) return fail(error, FCM_UNSUPPORTED, {}, "%s: this build has no CUDA kernels", function);
        const int32_t best = fcm::best_isa();
        const int32_t chosen = isa == FCM_ISA_AUTO ? best : isa;
        if (chosen > best) {
            return fail(error, FCM_UNSUPPORTED, {}, "%s: this CPU has %s, not %s", function, fcm::isa_name(best),
                        fcm::isa_name(chosen));
        }
        try {
            *context = std::make_unique<fcm_context>(threads, chosen, fcm::kernels_for(chosen)).release();
        } catch (const std::system_error &e) {
            return fail(error, FCM_DEVICE_ERROR, {}, "%s: cannot start %d threads: %s", function, threads, e.what());
        }
        return fcm_status{FCM_OK};
    });
}

void fcm_context_destroy(fcm_context *context) { std::unique_ptr<fcm_context>{context}.reset(); }

fcm_status fcm_context_isa(const fcm_context *context, int32_t *isa, fcm_error *error) {
    Arguments arguments("fcm_context_isa", error);
    arguments.context(context).require(isa != nullptr, "the place for the answer is null");
    if (arguments.ok()) *isa = context->isa;
    return arguments.status();
}

fcm_status fcm_buffer_allocate(fcm_context *context, int64_t bytes, void **address, fcm_error *error) {
    constexpr const char *function = "fcm_buffer_allocate";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context)
            .require(address != nullptr, "the place for the address is null")
            .require(bytes >= 0, "bytes = %" PRId64 " is negative", bytes);
        if (!arguments.ok()) return arguments.status();

        std::lock_guard<std::mutex> lock(context->buffers_mutex);
        // The kernel would promise more than there is and kill the process on first touch: refuse here instead.
        const int64_t limit = fcm::physical_bytes();
        if (bytes > limit - context->live_bytes) {
            return fail(error, FCM_OUT_OF_MEMORY, {},
                        "%s: %" PRId64 " bytes asked, %" PRId64 " in use, the machine has %" PRId64, function, bytes,
                        context->live_bytes, limit);
        }
        fcm_context::Allocation allocation{bytes, 0};
        void *memory = nullptr;
        if (bytes >= fcm::kMapFrom) {
            allocation.mapped = fcm::round_up(bytes, fcm::kHugePage);
            memory = fcm::map_zeroed(allocation.mapped);
        } else {
            const int64_t room = fcm::round_up(bytes > 0 ? bytes : 1, fcm::kAlignment);
            memory = std::aligned_alloc(fcm::kAlignment, static_cast<size_t>(room));
            if (memory != nullptr) std::memset(memory, 0, static_cast<size_t>(room));
        }
        if (memory == nullptr) {
            return fail(error, FCM_OUT_OF_MEMORY, {}, "%s: the system has no %" PRId64 " bytes left", function, bytes);
        }
        try {
            context->buffers.emplace(memory, allocation);
        } catch (...) {
            fcm::release(memory, allocation);
            throw;
        }
        context->live_bytes += bytes;
        *address = memory;
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_buffer_free(fcm_context *context, void *address, fcm_error *error) {
    constexpr const char *function = "fcm_buffer_free";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context);
        if (!arguments.ok()) return arguments.status();
        std::lock_guard<std::mutex> lock(context->buffers_mutex);
        const auto found = context->buffers.find(address);
        arguments.require(found != context->buffers.end(), "%p is no buffer of this context", address);
        if (!arguments.ok()) return arguments.status();
        context->live_bytes -= found->second.asked;
        fcm::release(address, found->second);
        context->buffers.erase(found);
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_live_bytes(const fcm_context *context, int64_t *bytes, fcm_error *error) {
    constexpr const char *function = "fcm_live_bytes";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).require(bytes != nullptr, "the place for the answer is null");
        if (!arguments.ok()) return arguments.status();
        std::lock_guard<std::mutex> lock(context->buffers_mutex);
        *bytes = context->live_bytes;
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_zero(fcm_context *context, void *address, int64_t bytes, fcm_error *error) {
    constexpr const char *function = "fcm_zero";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).require(bytes >= 0, "bytes = %" PRId64 " is negative", bytes);
        arguments.batch("target", address, 1, bytes, bytes, 1, true);
        if (!arguments.ok()) return arguments.status();
        fcm::in_pieces(context, bytes,
                       [&](int64_t at, size_t length) { std::memset(static_cast<char *>(address) + at, 0, length); });
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_copy_in(fcm_context *context, void *device_to, const void *host_from, int64_t bytes, fcm_error *error) {
    return fcm::copy("fcm_copy_in", context, device_to, host_from, bytes, error);
}

fcm_status fcm_copy_out(fcm_context *context, void *host_to, const void *device_from, int64_t bytes, fcm_error *error) {
    return fcm::copy("fcm_copy_out", context, host_to, device_from, bytes, error);
}

fcm_status fcm_copy(fcm_context *to_context, void *to, fcm_context *from_context, const void *from, int64_t bytes,
                    fcm_error *error) {
    Arguments arguments("fcm_copy", error);
    arguments.context(from_context);
    return arguments.ok() ? fcm::copy("fcm_copy", to_context, to, from, bytes, error) : arguments.status();
}
