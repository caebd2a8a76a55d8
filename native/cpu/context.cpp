#include "context.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

#include "arguments.h"
#include "backend.h"
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

// Zeroed and aligned; null when there is none.
void *take(int64_t bytes, fcm_context::Allocation &allocation) {
    allocation = {bytes, 0};
    if (bytes >= kMapFrom) {
        allocation.mapped = round_up(bytes, kHugePage);
        return map_zeroed(allocation.mapped);
    }
    const int64_t room = round_up(bytes > 0 ? bytes : 1, kAlignment);
    void *memory = std::aligned_alloc(kAlignment, static_cast<size_t>(room));
    if (memory != nullptr) std::memset(memory, 0, static_cast<size_t>(room));
    return memory;
}

// Takes memory and enters it into `given`, whose lock is held; null when there is none.
void *give(int64_t bytes, std::unordered_map<void *, fcm_context::Allocation> &given) {
    fcm_context::Allocation allocation{};
    void *memory = take(bytes, allocation);
    if (memory == nullptr) return nullptr;
    try {
        given.emplace(memory, allocation);
    } catch (...) {
        release(memory, allocation);
        throw;
    }
    return memory;
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

fcm_status create_remote(const char *function, int32_t kind, int32_t ordinal, int32_t threads, int32_t isa,
                         fcm_context **context, fcm_error *error) {
    const Backend *backend = backend_of(kind);
    if (backend == nullptr) {
        return fail(error, FCM_UNSUPPORTED, {}, "%s: no library with %s devices is loaded", function,
                    kind == FCM_CUDA ? "CUDA" : "simulated CUDA");
    }
    fcm_context *theirs = nullptr;
    const fcm_status status = backend->context_create(kind, ordinal, threads, isa, &theirs, error);
    if (status != FCM_OK) return status;
    try {
        *context = std::make_unique<fcm_context>(*backend, theirs).release();
    } catch (...) {
        backend->context_destroy(theirs);
        throw;
    }
    return FCM_OK;
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
    if (backend != nullptr) backend->context_destroy(remote);
    for (const auto &[address, allocation] : buffers) fcm::release(address, allocation);
    for (const auto &[address, allocation] : host) fcm::release(address, allocation);
}

fcm_status fcm_context_create(int32_t kind, int32_t ordinal, int32_t threads, int32_t isa, fcm_context **context,
                              fcm_error *error) {
    constexpr const char *function = "fcm_context_create";
    return guarded(function, error, [&] {
        constexpr int32_t kMostThreads = 4096;
        Arguments arguments(function, error);
        arguments.require(context != nullptr, "the place for the context is null")
            .require(kind == FCM_CPU || kind == FCM_CUDA || kind == FCM_CUDASIM, "there is no device kind %d", kind)
            .require(ordinal >= 0, "ordinal = %d is negative", ordinal)
            .require(threads >= 1 && threads <= kMostThreads, "threads = %d is outside [1, %d]", threads, kMostThreads)
            .require(isa >= FCM_ISA_AUTO && isa <= FCM_ISA_AVX512, "there is no instruction set %d", isa);
        if (!arguments.ok()) return arguments.status();
        if (kind != FCM_CPU) return fcm::create_remote(function, kind, ordinal, threads, isa, context, error);
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
    if (fcm::is_remote(context)) return context->backend->context_isa(context->remote, isa, error);
    Arguments arguments("fcm_context_isa", error);
    arguments.context(context).require(isa != nullptr, "the place for the answer is null");
    if (arguments.ok()) *isa = context->isa;
    return arguments.status();
}

fcm_status fcm_buffer_allocate(fcm_context *context, int64_t bytes, void **address, fcm_error *error) {
    if (fcm::is_remote(context)) return context->backend->buffer_allocate(context->remote, bytes, address, error);
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
        void *memory = fcm::give(bytes, context->buffers);
        if (memory == nullptr) {
            return fail(error, FCM_OUT_OF_MEMORY, {}, "%s: the system has no %" PRId64 " bytes left", function, bytes);
        }
        context->live_bytes += bytes;
        *address = memory;
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_buffer_free(fcm_context *context, void *address, fcm_error *error) {
    if (fcm::is_remote(context)) return context->backend->buffer_free(context->remote, address, error);
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
    if (fcm::is_remote(context)) return context->backend->live_bytes(context->remote, bytes, error);
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

fcm_status fcm_host_allocate(fcm_context *context, int64_t bytes, void **address, fcm_error *error) {
    if (fcm::is_remote(context)) return context->backend->host_allocate(context->remote, bytes, address, error);
    constexpr const char *function = "fcm_host_allocate";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context)
            .require(address != nullptr, "the place for the address is null")
            .require(bytes >= 0, "bytes = %" PRId64 " is negative", bytes);
        if (!arguments.ok()) return arguments.status();
        std::lock_guard<std::mutex> lock(context->buffers_mutex);
        const int64_t limit = fcm::physical_bytes();
        void *memory = bytes > limit ? nullptr : fcm::give(bytes, context->host);
        if (memory == nullptr) {
            return fail(error, FCM_OUT_OF_MEMORY, {}, "%s: the system has no %" PRId64 " bytes left", function, bytes);
        }
        *address = memory;
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_host_free(fcm_context *context, void *address, fcm_error *error) {
    if (fcm::is_remote(context)) return context->backend->host_free(context->remote, address, error);
    constexpr const char *function = "fcm_host_free";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context);
        if (!arguments.ok()) return arguments.status();
        std::lock_guard<std::mutex> lock(context->buffers_mutex);
        const auto found = context->host.find(address);
        arguments.require(found != context->host.end(), "%p is no host memory of this context", address);
        if (!arguments.ok()) return arguments.status();
        fcm::release(address, found->second);
        context->host.erase(found);
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_zero(fcm_context *context, void *address, int64_t bytes, fcm_error *error) {
    if (fcm::is_remote(context)) return context->backend->zero(context->remote, address, bytes, error);
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
    if (fcm::is_remote(context)) return context->backend->copy_in(context->remote, device_to, host_from, bytes, error);
    return fcm::copy("fcm_copy_in", context, device_to, host_from, bytes, error);
}

fcm_status fcm_copy_out(fcm_context *context, void *host_to, const void *device_from, int64_t bytes, fcm_error *error) {
    if (fcm::is_remote(context)) return context->backend->copy_out(context->remote, host_to, device_from, bytes, error);
    return fcm::copy("fcm_copy_out", context, host_to, device_from, bytes, error);
}

fcm_status fcm_copy_in_async(fcm_context *context, void *device_to, const void *host_from, int64_t bytes,
                             fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->copy_in_async(context->remote, device_to, host_from, bytes, error);
    }
    return fcm::copy("fcm_copy_in_async", context, device_to, host_from, bytes, error);
}

fcm_status fcm_copy_out_async(fcm_context *context, void *host_to, const void *device_from, int64_t bytes,
                              fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->copy_out_async(context->remote, host_to, device_from, bytes, error);
    }
    return fcm::copy("fcm_copy_out_async", context, host_to, device_from, bytes, error);
}

fcm_status fcm_copy(fcm_context *to_context, void *to, fcm_context *from_context, const void *from, int64_t bytes,
                    fcm_error *error) {
    Arguments arguments("fcm_copy", error);
    arguments.context(to_context).context(from_context);
    if (!arguments.ok()) return arguments.status();
    const fcm::Backend *there = to_context->backend;
    const fcm::Backend *here = from_context->backend;
    if (there == nullptr && here == nullptr) return fcm::copy("fcm_copy", to_context, to, from, bytes, error);
    if (there == here) return there->copy(to_context->remote, to, from_context->remote, from, bytes, error);
    // To a backend our memory is the host's; it returns when the copy is done, and by then we have nothing pending either.
    if (here == nullptr) return there->copy_in(to_context->remote, to, from, bytes, error);
    if (there == nullptr) return here->copy_out(from_context->remote, to, from, bytes, error);
    return fail(error, FCM_UNSUPPORTED, {}, "fcm_copy: the devices of %s and of %s do not know each other's memory",
                here->path.c_str(), there->path.c_str());
}
