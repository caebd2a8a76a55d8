// Contexts of the CPU and their memory, and contexts that stand for a context of a backend.
#include "context.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

#include "backend.h"

namespace fcm {

namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;

// Large buffers get their own mapping on huge pages, which reduces the cost of address translation for streams over
// gigabytes; the pages are already zeroed. A sanitizer only checks the heap, so there every buffer comes from the heap.
#if defined(__SANITIZE_ADDRESS__)
constexpr int64_t kMapFrom = INT64_MAX;
#else
constexpr int64_t kMapFrom = kHugePage;
#endif

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

int64_t physical_bytes() { return int64_t{sysconf(_SC_PHYS_PAGES)} * int64_t{sysconf(_SC_PAGESIZE)}; }

void *map_zeroed(int64_t bytes) {
    // mmap does not align to huge pages, so one huge page more than needed is mapped, and both ends are unmapped again.
    const int64_t span = bytes + kHugePage;
    void *raw = mmap(nullptr, static_cast<size_t>(span), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return nullptr;
    auto *start = static_cast<char *>(raw);
    const auto head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(start) & static_cast<uintptr_t>(kHugePage - 1));
    if (head > 0) munmap(start, static_cast<size_t>(head));
    if (kHugePage - head > 0) munmap(start + head + bytes, static_cast<size_t>(kHugePage - head));
    madvise(start + head, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // advice only: a failure costs speed
    return start + head;
}

void release(void *address, const fcm_context::Allocation &allocation) {
    if (allocation.mapped > 0) {
        munmap(address, static_cast<size_t>(allocation.mapped));
    } else {
        std::free(address);
    }
}

// Returns zeroed, aligned memory, or null if there is none.
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

// Allocates memory and registers it in `given`, whose lock is held; returns null if there is none.
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

// Copies and fills run in pieces of this size, one per task.
constexpr int64_t kCopyPiece = int64_t{1} << 20;

template <class Piece>
void in_pieces(fcm_context *context, int64_t bytes, Piece &&piece) {
    const int64_t count = (bytes + kCopyPiece - 1) / kCopyPiece;
    context->pool.run(count, bytes / 4, [&](int64_t i, int) {
        const int64_t at = i * kCopyPiece;
        piece(at, static_cast<size_t>(bytes - at < kCopyPiece ? bytes - at : kCopyPiece));
    });
}

fcm_status copy(fcm_context *context, void *to, const void *from, int64_t bytes) {
    in_pieces(context, bytes, [&](int64_t at, size_t length) {
        std::memcpy(static_cast<char *>(to) + at, static_cast<const char *>(from) + at, length);
    });
    return FCM_OK;
}

fcm_status create_remote(int32_t kind, int32_t ordinal, int32_t threads, int32_t isa, fcm_context **context,
                         fcm_error *error) {
    const Backend *backend = backend_of(kind);
    if (backend == nullptr) {
        return fail(error, FCM_UNSUPPORTED, {}, "fcm_context_create: no library with %s devices is loaded",
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
    if (isa == FCM_ISA_AVX512_BF16) return kernels_avx512_bf16();
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
        return __builtin_cpu_supports("avx512bf16") ? FCM_ISA_AVX512_BF16 : FCM_ISA_AVX512;
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
        case FCM_ISA_AVX512_BF16:
            return "avx512-bf16";
        default:
            return "unknown";
    }
}

Remote remote_of(const fcm_context *context) noexcept {
    return context == nullptr || context->backend == nullptr ? Remote{} : Remote{context->backend, context->remote};
}

}  // namespace fcm

fcm_context::~fcm_context() {
    if (backend != nullptr) backend->context_destroy(remote);
    for (const auto &[address, allocation] : buffers) fcm::release(address, allocation);
    for (const auto &[address, allocation] : host) fcm::release(address, allocation);
}

void fcm_context_destroy(fcm_context *context) { std::unique_ptr<fcm_context>{context}.reset(); }

namespace fcm {

fcm_status device::context_create(int32_t kind, int32_t ordinal, int32_t threads, int32_t isa, fcm_context **context,
                                  fcm_error *error) {
    if (kind != FCM_CPU) return create_remote(kind, ordinal, threads, isa, context, error);
    const int32_t best = best_isa();
    const int32_t chosen = isa == FCM_ISA_AUTO ? best : isa;
    if (chosen > best) {
        return fail(error, FCM_UNSUPPORTED, {}, "fcm_context_create: this CPU has %s, not %s", isa_name(best),
                    isa_name(chosen));
    }
    try {
        *context = std::make_unique<fcm_context>(threads, chosen, kernels_for(chosen)).release();
    } catch (const std::system_error &e) {
        return fail(error, FCM_DEVICE_ERROR, {}, "fcm_context_create: cannot start %d threads: %s", threads, e.what());
    }
    return FCM_OK;
}

fcm_status device::context_isa(const fcm_context *context, int32_t *isa, fcm_error *) {
    *isa = context->isa;
    return FCM_OK;
}

fcm_status device::buffer_allocate(fcm_context *context, int64_t bytes, void **address, fcm_error *error) {
    std::lock_guard<std::mutex> lock(context->buffers_mutex);
    // The operating system would overcommit and kill the process on first touch, so the request is refused here.
    const int64_t limit = physical_bytes();
    if (bytes > limit - context->live_bytes) {
        return fail(error, FCM_OUT_OF_MEMORY, {},
                    "fcm_buffer_allocate: %" PRId64 " bytes asked, %" PRId64 " in use, the machine has %" PRId64, bytes,
                    context->live_bytes, limit);
    }
    void *memory = give(bytes, context->buffers);
    if (memory == nullptr) {
        return fail(error, FCM_OUT_OF_MEMORY, {}, "fcm_buffer_allocate: the system has no %" PRId64 " bytes left", bytes);
    }
    context->live_bytes += bytes;
    *address = memory;
    return FCM_OK;
}

fcm_status device::buffer_free(fcm_context *context, void *address, fcm_error *error) {
    std::lock_guard<std::mutex> lock(context->buffers_mutex);
    const auto found = context->buffers.find(address);
    if (found == context->buffers.end()) {
        return fail(error, FCM_INVALID_ARGUMENT, {}, "fcm_buffer_free: %p is no buffer of this context", address);
    }
    context->live_bytes -= found->second.asked;
    release(address, found->second);
    context->buffers.erase(found);
    return FCM_OK;
}

fcm_status device::live_bytes(const fcm_context *context, int64_t *bytes, fcm_error *) {
    std::lock_guard<std::mutex> lock(context->buffers_mutex);
    *bytes = context->live_bytes;
    return FCM_OK;
}

fcm_status device::host_allocate(fcm_context *context, int64_t bytes, void **address, fcm_error *error) {
    std::lock_guard<std::mutex> lock(context->buffers_mutex);
    void *memory = bytes > physical_bytes() ? nullptr : give(bytes, context->host);
    if (memory == nullptr) {
        return fail(error, FCM_OUT_OF_MEMORY, {}, "fcm_host_allocate: the system has no %" PRId64 " bytes left", bytes);
    }
    *address = memory;
    return FCM_OK;
}

fcm_status device::host_free(fcm_context *context, void *address, fcm_error *error) {
    std::lock_guard<std::mutex> lock(context->buffers_mutex);
    const auto found = context->host.find(address);
    if (found == context->host.end()) {
        return fail(error, FCM_INVALID_ARGUMENT, {}, "fcm_host_free: %p is no host memory of this context", address);
    }
    release(address, found->second);
    context->host.erase(found);
    return FCM_OK;
}

fcm_status device::zero(fcm_context *context, void *address, int64_t bytes, fcm_error *) {
    in_pieces(context, bytes,
              [&](int64_t at, size_t length) { std::memset(static_cast<char *>(address) + at, 0, length); });
    return FCM_OK;
}

// Host and device memory are the same, and no work is pending when a call returns.
fcm_status device::copy_in(fcm_context *context, void *to, const void *from, int64_t bytes, fcm_error *) {
    return fcm::copy(context, to, from, bytes);
}
fcm_status device::copy_out(fcm_context *context, void *to, const void *from, int64_t bytes, fcm_error *) {
    return fcm::copy(context, to, from, bytes);
}
fcm_status device::copy_in_async(fcm_context *context, void *to, const void *from, int64_t bytes, fcm_error *) {
    return fcm::copy(context, to, from, bytes);
}
fcm_status device::copy_out_async(fcm_context *context, void *to, const void *from, int64_t bytes, fcm_error *) {
    return fcm::copy(context, to, from, bytes);
}

// All contexts of the CPU share one memory; of two libraries, neither knows the memory of the other.
fcm_status device::context_reaches(fcm_context *context, fcm_context *other, int32_t *reaches, fcm_error *error) {
    const Backend *backend = context->backend;
    if (backend != nullptr && backend == other->backend) {
        return backend->context_reaches(context->remote, other->remote, reaches, error);
    }
    *reaches = backend == nullptr && other->backend == nullptr ? 1 : 0;
    return FCM_OK;
}

fcm_status device::copy(fcm_context *to_context, void *to, fcm_context *from_context, const void *from, int64_t bytes,
                        fcm_error *error) {
    const Backend *there = to_context->backend;
    const Backend *here = from_context->backend;
    if (there == nullptr && here == nullptr) return fcm::copy(to_context, to, from, bytes);
    if (there == here) return there->copy(to_context->remote, to, from_context->remote, from, bytes, error);
    // For a backend, CPU memory is host memory. It returns when the copy is complete, and the CPU has no work pending
    // either.
    if (here == nullptr) return there->copy_in(to_context->remote, to, from, bytes, error);
    if (there == nullptr) return here->copy_out(from_context->remote, to, from, bytes, error);
    return fail(error, FCM_UNSUPPORTED, {}, "fcm_copy: the devices of %s and of %s do not know each other's memory",
                here->path.c_str(), there->path.c_str());
}

}  // namespace fcm
