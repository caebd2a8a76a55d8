// Contexts, buffers, copies and events of a GPU. All work of a context goes to its own stream.
#include <cstring>
#include <memory>

#include "context.h"
#include "entry.h"

namespace fcm {

fcm_status fail_device(fcm_error *error, const char *function, int device, const Failure &failure) noexcept {
    const fcm_status status = failure.code == cudaErrorMemoryAllocation ? FCM_OUT_OF_MEMORY : FCM_DEVICE_ERROR;
    return fail(error, status, {}, "%s: %s:%d, %s: %s (%s)", function, kKindName, device, failure.what.c_str(),
                cudaGetErrorString(failure.code), cudaGetErrorName(failure.code));
}

bool has_context(int device) noexcept {
    // The runtime cannot tell. The driver can, and is found through the runtime, so that this library can be loaded without it.
    using State = int (*)(int device, unsigned *flags, int *active);
    static const State state = [] {
        void *function = nullptr;
        cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
        constexpr const char *kName = "cuDevicePrimaryCtxGetState";
#if defined(FCM_CUDASIM) || CUDART_VERSION >= 12050
        const cudaError_t code = cudaGetDriverEntryPointByVersion(kName, &function, 7000, cudaEnableDefault, &found);
#else
        const cudaError_t code = cudaGetDriverEntryPoint(kName, &function, cudaEnableDefault, &found);
#endif
        if (code != cudaSuccess) (void)cudaGetLastError();
        return code == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<State>(function) : nullptr;
    }();
    unsigned flags = 0;
    int active = 0;
    return state != nullptr && state(device, &flags, &active) == 0 && active != 0;
}

Check ask(fcm_context *context, Question question) {
    const unsigned long long ticket = ++context->tickets;
    question.mark = context->operation_mark;
    context->questions[ticket % kQuestions] = std::move(question);
    return {context->status, ticket};
}

namespace {

// Puts what was found into words.
fcm_status report(const fcm_context *context, const Status &found, fcm_error *error) {
    if (context->tickets - found.ticket >= kQuestions) {
        return fail(error, FCM_NOT_FINITE, {}, "%s:%d: one of more than %zu operations has found NaN or Inf", kKindName,
                    context->device, kQuestions);
    }
    const Question &question = context->questions[found.ticket % kQuestions];
    const auto offset = static_cast<int64_t>(found.address - question.base);
    Place place;
    place.address = reinterpret_cast<const void *>(static_cast<uintptr_t>(found.address));
    place.client = question.stride == 0 ? 0 : offset / question.stride;
    place.index = (offset - place.client * question.stride) / question.element;
    if (question.blocks != nullptr) {
        const auto &blocks = *question.blocks;
        for (size_t i = 0; i < blocks.size(); ++i) {
            if (place.index < blocks[i].offset || place.index >= blocks[i].offset + blocks[i].size) continue;
            place.block = static_cast<int64_t>(i);
            place.index -= blocks[i].offset;
            break;
        }
    }
    if (question.sought == Sought::kNotFinite) return fail_not_finite(question.function, question.operand, place, error);
    place.index = -1;
    if (question.sought == Sought::kOutOfRange) return fail_out_of_range(question.function, place, error);
    if (question.sought == Sought::kNorm) return fail_norm(question.function, place, error);
    if (question.sought == Sought::kConverged) return fail_converged(question.function, place, error);
    return fail_computed(question.function, place, error);
}

}  // namespace

fcm_status settle(fcm_context *context, fcm_error *error) {
    const bool asked = context->tickets != context->answered;
    if (asked) {
        check(cudaMemcpyAsync(context->seen, context->status, sizeof(Status), cudaMemcpyDeviceToHost, context->stream),
              "cudaMemcpyAsync");
    }
    check(cudaStreamSynchronize(context->stream), "cudaStreamSynchronize");
    if (!asked) return FCM_OK;
    context->answered = context->tickets;
    const Status found = *context->seen;
    if (found.ticket == kNothing) return FCM_OK;
    check(cudaMemsetAsync(context->status, 0xff, sizeof(Status), context->stream), "cudaMemsetAsync");
    const fcm_status status = report(context, found, error);
    if (error != nullptr) error->mark = context->questions[found.ticket % kQuestions].mark;
    return status;
}

uint64_t digest_of(const void *table, int64_t bytes, uint64_t digest) {
    const auto *at = static_cast<const unsigned char *>(table);
    for (int64_t i = 0; i < bytes; ++i) digest = (digest ^ at[i]) * 0x100000001b3ull;  // FNV-1a
    return digest;
}

void prepare(fcm_context *context, void *workspace, void *to, const std::vector<char> &table, Prepared prepared) {
    check(cudaMemcpyAsync(to, table.data(), table.size(), cudaMemcpyHostToDevice, context->stream), "cudaMemcpyAsync",
          static_cast<int64_t>(table.size()));
    check(cudaStreamSynchronize(context->stream), "cudaStreamSynchronize");
    const std::lock_guard<std::mutex> lock(context->buffers_mutex);
    context->prepared[workspace] = std::move(prepared);
}

Prepared prepared_workspace(const fcm_context *context, const void *workspace, uint64_t digest) {
    const std::lock_guard<std::mutex> lock(context->buffers_mutex);
    const auto found = context->prepared.find(workspace);
    return found == context->prepared.end() || found->second.digest != digest ? Prepared{} : found->second;
}

namespace {

int attribute(cudaDeviceAttr which, int device) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
    return value;
}

fcm_status copy(const char *function, fcm_context *context, void *to, const void *from, int64_t bytes, cudaMemcpyKind kind,
                bool wait, fcm_error *error) {
    return on_device(function, context, error, [&] {
        check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, context->stream), "cudaMemcpyAsync", bytes);
        return wait ? settle(context, error) : fcm_status{FCM_OK};
    });
}

// Work submitted to `later` from now on runs after the work submitted to `earlier` so far.
void order(fcm_context *earlier, fcm_context *later) {
    {
        OnDevice here(earlier->device);
        check(cudaEventRecord(earlier->mark, earlier->stream), "cudaEventRecord");
    }
    OnDevice here(later->device);
    check(cudaStreamWaitEvent(later->stream, earlier->mark, 0), "cudaStreamWaitEvent");
}

// Whether the current GPU can be given access to the memory of another, and has it now: that of the buffers, which come
// from the pool of the other.
bool reaches(int device, int other) {
    int can = 0;
    check(cudaDeviceCanAccessPeer(&can, device, other), "cudaDeviceCanAccessPeer");
    if (can == 0) return false;
    const cudaError_t enabled = cudaDeviceEnablePeerAccess(other, 0);
    if (enabled != cudaSuccess) (void)cudaGetLastError();
    // There is a limit on the number of peers, beyond which copies are staged.
    if (enabled != cudaSuccess && enabled != cudaErrorPeerAccessAlreadyEnabled) return false;
    cudaMemPool_t pool = nullptr;
    check(cudaDeviceGetDefaultMemPool(&pool, other), "cudaDeviceGetDefaultMemPool");
    cudaMemAccessDesc access{};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = device;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    check(cudaMemPoolSetAccess(pool, &access, 1), "cudaMemPoolSetAccess");
    return true;
}

void make_event(cudaEvent_t *event) {
    if (*event == nullptr) check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

// How copies come to the context, whose GPU is current; the caller has routes_mutex.
const Route &route_from(fcm_context *context, int other) {
    const auto known = context->routes.find(other);
    if (known != context->routes.end()) return known->second;
    if (reaches(context->device, other)) return context->routes.emplace(other, Route{true, {}}).first->second;
    for (int slot = 0; slot < kSlots; ++slot) {
        make_event(&context->emptied[slot]);
        if (context->slots[slot] != nullptr) continue;
        void *memory = nullptr;
        check(cudaHostAlloc(&memory, kSlotBytes, cudaHostAllocPortable), "cudaHostAlloc", kSlotBytes);
        context->slots[slot] = static_cast<unsigned char *>(memory);
    }
    Route route;
    const OnDevice there(other);
    try {
        for (cudaEvent_t &event : route.filled) make_event(&event);
        return context->routes.emplace(other, route).first->second;
    } catch (...) {
        for (const cudaEvent_t event : route.filled) {
            if (event != nullptr) (void)cudaEventDestroy(event);
        }
        throw;
    }
}

// Fills the slots on the stream of the source and empties them on that of the target. CUDA would stage the copy too, but may
// block the caller until it is done. Both streams have the copy in order, so they need not wait for each other otherwise.
void copy_through_slots(fcm_context *to_context, unsigned char *to, fcm_context *from_context, const unsigned char *from,
                        int64_t bytes, const Route &route) {
    int slot = 0;
    for (int64_t at = 0; at < bytes; at += kSlotBytes, slot = (slot + 1) % kSlots) {
        const int64_t rest = bytes - at;
        const int64_t piece = rest < kSlotBytes ? rest : kSlotBytes;
        const auto size = static_cast<size_t>(piece);
        try {
            const OnDevice there(from_context->device);
            // Recorded by the previous copy through this slot; an event that was never recorded holds up nobody.
            check(cudaStreamWaitEvent(from_context->stream, to_context->emptied[slot], 0), "cudaStreamWaitEvent");
            check(cudaMemcpyAsync(to_context->slots[slot], from + at, size, cudaMemcpyDeviceToHost, from_context->stream),
                  "cudaMemcpyAsync", piece);
            check(cudaEventRecord(route.filled[slot], from_context->stream), "cudaEventRecord");
        } catch (Failure &failure) {
            // The caller's message names the target.
            failure.what += std::string(" on ") + kKindName + ":" + std::to_string(from_context->device);
            throw;
        }
        check(cudaStreamWaitEvent(to_context->stream, route.filled[slot], 0), "cudaStreamWaitEvent");
        check(cudaMemcpyAsync(to + at, to_context->slots[slot], size, cudaMemcpyHostToDevice, to_context->stream),
              "cudaMemcpyAsync", piece);
        check(cudaEventRecord(to_context->emptied[slot], to_context->stream), "cudaEventRecord");
    }
}

}  // namespace

// This library has its own devices and forwards to no backend.
Remote remote_of(const fcm_context *) noexcept { return {}; }

}  // namespace fcm

using fcm::check;

fcm_context::fcm_context(int ordinal) : device(ordinal) {
    try {
        fcm::OnDevice here(device);
        here.stay();
        cudaDeviceProp properties{};
        check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
        capability = 10 * properties.major + properties.minor;
        memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
        multiprocessors = fcm::attribute(cudaDevAttrMultiProcessorCount, device);
        shared_bytes = fcm::attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
        check(cudaEventCreateWithFlags(&mark, cudaEventDisableTiming), "cudaEventCreateWithFlags");
        check(cudaMalloc(&scratch, fcm::kScratchBytes), "cudaMalloc", fcm::kScratchBytes);
        check(cudaMalloc(reinterpret_cast<void **>(&status), 2 * sizeof(fcm::Status)), "cudaMalloc", 2 * sizeof(fcm::Status));
        check(cudaMemsetAsync(status, 0xff, 2 * sizeof(fcm::Status), stream), "cudaMemsetAsync");
        check(cudaHostAlloc(reinterpret_cast<void **>(&seen), 2 * sizeof(fcm::Status), cudaHostAllocDefault), "cudaHostAlloc",
              2 * sizeof(fcm::Status));
    } catch (...) {
        release();
        throw;
    }
}

fcm_context::~fcm_context() { release(); }

// Errors cannot be reported from here; everything that can still be freed is freed.
void fcm_context::release() noexcept {
    int before = device;
    (void)cudaGetDevice(&before);
    if (before != device) (void)cudaSetDevice(device);
    if (stream != nullptr) (void)cudaStreamSynchronize(stream);
    for (const auto &buffer : buffers) (void)cudaFreeAsync(buffer.first, stream);
    for (const auto &buffer : host_buffers) (void)cudaFreeHost(buffer.first);
    if (stream != nullptr) (void)cudaStreamSynchronize(stream);
    for (const auto &[other, route] : routes) {
        for (const cudaEvent_t event : route.filled) {
            if (event != nullptr) (void)cudaEventDestroy(event);
        }
    }
    for (const cudaEvent_t event : emptied) {
        if (event != nullptr) (void)cudaEventDestroy(event);
    }
    for (unsigned char *slot : slots) {
        if (slot != nullptr) (void)cudaFreeHost(slot);
    }
    if (seen != nullptr) (void)cudaFreeHost(seen);
    if (status != nullptr) (void)cudaFree(status);
    if (scratch != nullptr) (void)cudaFree(scratch);
    if (mark != nullptr) (void)cudaEventDestroy(mark);
    if (stream != nullptr) (void)cudaStreamDestroy(stream);
    if (before != device && fcm::has_context(before)) (void)cudaSetDevice(before);
    (void)cudaGetLastError();
}

void fcm_context_destroy(fcm_context *context) { std::unique_ptr<fcm_context>{context}.reset(); }

void fcm_event_destroy(fcm_event *event) {
    const std::unique_ptr<fcm_event> owned{event};
    if (event == nullptr) return;
    try {
        const fcm::OnDevice here(event->device);  // any thread may do this; without it, one would get a context on device 0
        // CUDA keeps the event until the streams that wait for it have passed it.
        check(cudaEventDestroy(event->event), "cudaEventDestroy");
    } catch (const fcm::Failure &) {
        // Errors cannot be reported from here.
    }
}

namespace fcm {

fcm_status device::context_create(int32_t kind, int32_t ordinal, int32_t, int32_t, fcm_context **context, fcm_error *error) {
    constexpr const char *function = "fcm_context_create";
    if (kind != kKind) {
        return fail(error, FCM_UNSUPPORTED, {}, "%s: this library has devices of kind %d (%s) only, not %d", function, kKind,
                    kKindName, kind);
    }
    int count = 0;  // not written by CUDA if there is no driver
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess) {
        (void)cudaGetLastError();
        return fail(error, FCM_UNSUPPORTED, {}, "%s: no GPU: %s", function, cudaGetErrorString(code));
    }
    if (ordinal >= count) {
        return fail(error, FCM_UNSUPPORTED, {}, "%s: there is no %s:%d, there are %d devices", function, kKindName, ordinal,
                    count);
    }
    try {
        *context = std::make_unique<fcm_context>(ordinal).release();
    } catch (const Failure &failure) {
        return fail_device(error, function, ordinal, failure);
    }
    return FCM_OK;
}

fcm_status device::context_isa(const fcm_context *, int32_t *isa, fcm_error *) {
    *isa = FCM_ISA_AUTO;
    return FCM_OK;
}

fcm_status device::synchronize(fcm_context *context, fcm_error *error) {
    return on_device("fcm_synchronize", context, error, [&] { return settle(context, error); });
}

fcm_status device::context_mark(fcm_context *context, int64_t mark, fcm_error *) {
    context->operation_mark = mark;
    return FCM_OK;
}

fcm_status device::query(fcm_context *context, int32_t *done, fcm_error *error) {
    return on_device("fcm_query", context, error, [&] {
        const cudaError_t code = cudaStreamQuery(context->stream);
        if (code == cudaErrorNotReady) {
            (void)cudaGetLastError();  // an answer, which the next launch must not report as an error
        } else {
            check(code, "cudaStreamQuery");
        }
        *done = code == cudaSuccess ? 1 : 0;
    });
}

fcm_status device::context_reaches(fcm_context *context, fcm_context *other, int32_t *reached, fcm_error *error) {
    return on_device("fcm_context_reaches", context, error, [&] {
        *reached = context->device == other->device || reaches(context->device, other->device) ? 1 : 0;
    });
}

fcm_status device::context_stream(const fcm_context *context, void **stream, fcm_error *error) {
    try {
        check(cudaSetDevice(context->device), "cudaSetDevice");
    } catch (const Failure &failure) {
        return fail_device(error, "fcm_context_stream", context->device, failure);
    }
    *stream = context->stream;
    return FCM_OK;
}

// ---- Events ---------------------------------------------------------------------------------------------------

fcm_status device::event_create(fcm_context *context, fcm_event **event, fcm_error *error) {
    return on_device("fcm_event_create", context, error, [&] {
        auto made = std::make_unique<fcm_event>(fcm_event{context, context->device, nullptr});
        check(cudaEventCreateWithFlags(&made->event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
        *event = made.release();
    });
}

fcm_status device::event_record(fcm_event *event, fcm_error *error) {
    return on_device("fcm_event_record", event->context, error, [&] {
        check(cudaEventRecord(event->event, event->context->stream), "cudaEventRecord");
    });
}

fcm_status device::event_wait(fcm_context *context, fcm_event *event, fcm_error *error) {
    return on_device("fcm_event_wait", context, error, [&] {
        check(cudaStreamWaitEvent(context->stream, event->event, 0), "cudaStreamWaitEvent");
    });
}

// ---- Memory ---------------------------------------------------------------------------------------------------

fcm_status device::buffer_allocate(fcm_context *context, int64_t bytes, void **address, fcm_error *error) {
    std::lock_guard<std::mutex> lock(context->buffers_mutex);
    // Requests that can never fit are refused here, because drivers report them with different errors.
    if (bytes > context->memory_bytes - context->live_bytes) {
        return fail(error, FCM_OUT_OF_MEMORY, {},
                    "fcm_buffer_allocate: %s:%d, %" PRId64 " bytes asked, %" PRId64 " in use, the device has %" PRId64,
                    kKindName, context->device, bytes, context->live_bytes, context->memory_bytes);
    }
    return on_device("fcm_buffer_allocate", context, error, [&] {
        const auto room = static_cast<size_t>(bytes > 0 ? bytes : 1);
        void *memory = nullptr;
        check(cudaMallocAsync(&memory, room, context->stream), "cudaMallocAsync", bytes);
        try {
            check(cudaMemsetAsync(memory, 0, room, context->stream), "cudaMemsetAsync", bytes);
            context->buffers.emplace(memory, bytes);
        } catch (...) {
            (void)cudaFreeAsync(memory, context->stream);
            (void)cudaGetLastError();
            throw;
        }
        context->live_bytes += bytes;
        *address = memory;
    });
}

fcm_status device::buffer_free(fcm_context *context, void *address, fcm_error *error) {
    std::lock_guard<std::mutex> lock(context->buffers_mutex);
    const auto found = context->buffers.find(address);
    if (found == context->buffers.end()) {
        return fail(error, FCM_INVALID_ARGUMENT, {}, "fcm_buffer_free: %p is no buffer of this context", address);
    }
    return on_device("fcm_buffer_free", context, error, [&] {
        // The buffer no longer belongs to the caller, even if CUDA reports an error.
        context->live_bytes -= found->second;
        context->buffers.erase(found);
        context->prepared.erase(address);
        check(cudaFreeAsync(address, context->stream), "cudaFreeAsync");
    });
}

fcm_status device::live_bytes(const fcm_context *context, int64_t *bytes, fcm_error *) {
    std::lock_guard<std::mutex> lock(context->buffers_mutex);
    *bytes = context->live_bytes;
    return FCM_OK;
}

fcm_status device::host_allocate(fcm_context *context, int64_t bytes, void **address, fcm_error *error) {
    return on_device("fcm_host_allocate", context, error, [&] {
        const auto room = static_cast<size_t>(bytes > 0 ? bytes : 1);
        void *memory = nullptr;
        // Portable, because a copy between two GPUs through the host requires memory that is pinned for both.
        check(cudaHostAlloc(&memory, room, cudaHostAllocPortable), "cudaHostAlloc", bytes);
        std::memset(memory, 0, room);
        std::lock_guard<std::mutex> lock(context->buffers_mutex);
        try {
            context->host_buffers.emplace(memory, bytes);
        } catch (...) {
            (void)cudaFreeHost(memory);
            throw;
        }
        *address = memory;
    });
}

fcm_status device::host_free(fcm_context *context, void *address, fcm_error *error) {
    std::lock_guard<std::mutex> lock(context->buffers_mutex);
    const auto found = context->host_buffers.find(address);
    if (found == context->host_buffers.end()) {
        return fail(error, FCM_INVALID_ARGUMENT, {}, "fcm_host_free: %p is no host memory of this context", address);
    }
    return on_device("fcm_host_free", context, error, [&] {
        // A pending asynchronous copy may still access the memory.
        const cudaError_t drained = cudaStreamSynchronize(context->stream);
        context->host_buffers.erase(found);
        check(cudaFreeHost(address), "cudaFreeHost");
        check(drained, "cudaStreamSynchronize");
    });
}

fcm_status device::zero(fcm_context *context, void *address, int64_t bytes, fcm_error *error) {
    return on_device("fcm_zero", context, error, [&] {
        check(cudaMemsetAsync(address, 0, static_cast<size_t>(bytes), context->stream), "cudaMemsetAsync", bytes);
    });
}

fcm_status device::copy_in(fcm_context *context, void *to, const void *from, int64_t bytes, fcm_error *error) {
    return fcm::copy("fcm_copy_in", context, to, from, bytes, cudaMemcpyHostToDevice, true, error);
}

fcm_status device::copy_out(fcm_context *context, void *to, const void *from, int64_t bytes, fcm_error *error) {
    return fcm::copy("fcm_copy_out", context, to, from, bytes, cudaMemcpyDeviceToHost, true, error);
}

fcm_status device::copy_in_async(fcm_context *context, void *to, const void *from, int64_t bytes, fcm_error *error) {
    return fcm::copy("fcm_copy_in_async", context, to, from, bytes, cudaMemcpyHostToDevice, false, error);
}

fcm_status device::copy_out_async(fcm_context *context, void *to, const void *from, int64_t bytes, fcm_error *error) {
    return fcm::copy("fcm_copy_out_async", context, to, from, bytes, cudaMemcpyDeviceToHost, false, error);
}

fcm_status device::copy(fcm_context *to_context, void *to, fcm_context *from_context, const void *from, int64_t bytes,
                        fcm_error *error) {
    return on_device("fcm_copy", to_context, error, [&] {
        const auto size = static_cast<size_t>(bytes);
        std::unique_lock<std::mutex> lock(to_context->routes_mutex, std::defer_lock);
        if (to_context->device != from_context->device) {
            lock.lock();
            const Route &route = route_from(to_context, from_context->device);
            if (!route.direct) {
                copy_through_slots(to_context, static_cast<unsigned char *>(to), from_context,
                                   static_cast<const unsigned char *>(from), bytes, route);
                return;
            }
        }
        if (to_context != from_context) order(from_context, to_context);
        if (to_context->device == from_context->device) {
            check(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, to_context->stream), "cudaMemcpyAsync", bytes);
        } else {
            check(cudaMemcpyPeerAsync(to, to_context->device, from, from_context->device, size, to_context->stream),
                  "cudaMemcpyPeerAsync", bytes);
        }
        if (to_context != from_context) order(to_context, from_context);
    });
}

}  // namespace fcm
