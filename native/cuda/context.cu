// Contexts, buffers, copies and events of a GPU.
#include <cstring>
#include <memory>

#include "arguments.h"
#include "context.h"

namespace fcm {

fcm_status fail_device(fcm_error *error, const char *function, int device, const Failure &failure) noexcept {
    const fcm_status status = failure.code == cudaErrorMemoryAllocation ? FCM_OUT_OF_MEMORY : FCM_DEVICE_ERROR;
    return fail(error, status, {}, "%s: %s:%d, %s: %s (%s)", function, kKindName, device, failure.what.c_str(),
                cudaGetErrorString(failure.code), cudaGetErrorName(failure.code));
}

namespace {

int attribute(cudaDeviceAttr which, int device) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
    return value;
}

// The checks that every copy and fill shares; `from` is null for a fill.
fcm_status copy_arguments(const char *function, const void *context, const void *to, const void *from, bool with_source,
                          int64_t bytes, fcm_error *error) {
    Arguments arguments(function, error);
    arguments.context(context).require(bytes >= 0, "bytes = %" PRId64 " is negative", bytes);
    if (with_source) arguments.batch("source", from, 1, bytes, bytes, 1, false);
    arguments.batch("target", to, 1, bytes, bytes, 1, true).disjoint();
    return arguments.status();
}

fcm_status copy(const char *function, fcm_context *context, void *to, const void *from, int64_t bytes, cudaMemcpyKind kind,
                bool wait, fcm_error *error) {
    return guarded(function, error, [&] {
        const fcm_status refused = copy_arguments(function, context, to, from, true, bytes, error);
        if (refused != FCM_OK || bytes == 0) return refused;
        return on_device(function, context, error, [&] {
            check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, context->stream), "cudaMemcpyAsync", bytes);
            if (wait) check(cudaStreamSynchronize(context->stream), "cudaStreamSynchronize");
            return fcm_status{FCM_OK};
        });
    });
}

// What `later` is given from now on runs after what `earlier` has been given so far.
void order(fcm_context *earlier, fcm_context *later) {
    {
        OnDevice here(earlier->device);
        check(cudaEventRecord(earlier->mark, earlier->stream), "cudaEventRecord");
    }
    OnDevice here(later->device);
    check(cudaStreamWaitEvent(later->stream, earlier->mark, 0), "cudaStreamWaitEvent");
}

}  // namespace
}  // namespace fcm

using fcm::Arguments;
using fcm::check;
using fcm::fail;
using fcm::guarded;
using fcm::on_device;

fcm_context::fcm_context(int ordinal) : device(ordinal) {
    try {
        fcm::OnDevice here(device);
        cudaDeviceProp properties{};
        check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
        memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
        multiprocessors = fcm::attribute(cudaDevAttrMultiProcessorCount, device);
        shared_bytes = fcm::attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
        check(cudaEventCreateWithFlags(&mark, cudaEventDisableTiming), "cudaEventCreateWithFlags");
        check(cudaMalloc(reinterpret_cast<void **>(&findings), sizeof(fcm::Findings)), "cudaMalloc", sizeof(fcm::Findings));
        check(cudaMalloc(&scratch, fcm::kScratchBytes), "cudaMalloc", fcm::kScratchBytes);
        check(cudaHostAlloc(reinterpret_cast<void **>(&found), sizeof(fcm::Findings), cudaHostAllocDefault), "cudaHostAlloc",
              sizeof(fcm::Findings));
        check(cudaHostAlloc(&staging, fcm::kStagingBytes, cudaHostAllocDefault), "cudaHostAlloc", fcm::kStagingBytes);
    } catch (...) {
        release();
        throw;
    }
}

fcm_context::~fcm_context() { release(); }

// What fails here cannot be told to anybody; what can still be freed is.
void fcm_context::release() noexcept {
    int before = device;
    (void)cudaGetDevice(&before);
    (void)cudaSetDevice(device);
    if (stream != nullptr) (void)cudaStreamSynchronize(stream);
    for (const auto &buffer : buffers) (void)cudaFreeAsync(buffer.first, stream);
    for (const auto &buffer : host_buffers) (void)cudaFreeHost(buffer.first);
    if (stream != nullptr) (void)cudaStreamSynchronize(stream);
    if (staging != nullptr) (void)cudaFreeHost(staging);
    if (found != nullptr) (void)cudaFreeHost(found);
    if (scratch != nullptr) (void)cudaFree(scratch);
    if (findings != nullptr) (void)cudaFree(findings);
    if (mark != nullptr) (void)cudaEventDestroy(mark);
    if (stream != nullptr) (void)cudaStreamDestroy(stream);
    (void)cudaGetLastError();
    if (before != device) (void)cudaSetDevice(before);
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
        if (kind != fcm::kKind) {
            return fail(error, FCM_UNSUPPORTED, {}, "%s: this library has devices of kind %d (%s) only, not %d", function,
                        fcm::kKind, fcm::kKindName, kind);
        }
        int count = 0;  // left unwritten where there is no driver
        const cudaError_t code = cudaGetDeviceCount(&count);
        if (code != cudaSuccess) {
            (void)cudaGetLastError();
            return fail(error, FCM_UNSUPPORTED, {}, "%s: no GPU: %s", function, cudaGetErrorString(code));
        }
        if (ordinal >= count) {
            return fail(error, FCM_UNSUPPORTED, {}, "%s: there is no %s:%d, there are %d devices", function, fcm::kKindName,
                        ordinal, count);
        }
        try {
            *context = std::make_unique<fcm_context>(ordinal).release();
        } catch (const fcm::Failure &failure) {
            return fcm::fail_device(error, function, ordinal, failure);
        }
        return fcm_status{FCM_OK};
    });
}

void fcm_context_destroy(fcm_context *context) { std::unique_ptr<fcm_context>{context}.reset(); }

fcm_status fcm_context_isa(const fcm_context *context, int32_t *isa, fcm_error *error) {
    Arguments arguments("fcm_context_isa", error);
    arguments.context(context).require(isa != nullptr, "the place for the answer is null");
    if (arguments.ok()) *isa = FCM_ISA_AUTO;
    return arguments.status();
}

fcm_status fcm_synchronize(fcm_context *context, fcm_error *error) {
    constexpr const char *function = "fcm_synchronize";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context);
        if (!arguments.ok()) return arguments.status();
        return on_device(function, context, error, [&] {
            check(cudaStreamSynchronize(context->stream), "cudaStreamSynchronize");
            return fcm_status{FCM_OK};
        });
    });
}

fcm_status fcm_context_stream(const fcm_context *context, void **stream, fcm_error *error) {
    constexpr const char *function = "fcm_context_stream";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).require(stream != nullptr, "the place for the answer is null");
        if (!arguments.ok()) return arguments.status();
        try {
            check(cudaSetDevice(context->device), "cudaSetDevice");
        } catch (const fcm::Failure &failure) {
            return fcm::fail_device(error, function, context->device, failure);
        }
        *stream = context->stream;
        return fcm_status{FCM_OK};
    });
}

// ---- Events ---------------------------------------------------------------------------------------------------

fcm_status fcm_event_create(fcm_context *context, fcm_event **event, fcm_error *error) {
    constexpr const char *function = "fcm_event_create";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).require(event != nullptr, "the place for the event is null");
        if (!arguments.ok()) return arguments.status();
        return on_device(function, context, error, [&] {
            auto made = std::make_unique<fcm_event>(fcm_event{context, nullptr});
            check(cudaEventCreateWithFlags(&made->event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
            *event = made.release();
            return fcm_status{FCM_OK};
        });
    });
}

void fcm_event_destroy(fcm_event *event) {
    const std::unique_ptr<fcm_event> owned{event};
    if (event == nullptr) return;
    // CUDA keeps what a stream still waits for until it has been waited for.
    (void)cudaEventDestroy(event->event);
    (void)cudaGetLastError();
}

fcm_status fcm_event_record(fcm_event *event, fcm_error *error) {
    constexpr const char *function = "fcm_event_record";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.require(event != nullptr, "the event is null");
        if (!arguments.ok()) return arguments.status();
        return on_device(function, event->context, error, [&] {
            check(cudaEventRecord(event->event, event->context->stream), "cudaEventRecord");
            return fcm_status{FCM_OK};
        });
    });
}

fcm_status fcm_event_wait(fcm_context *context, fcm_event *event, fcm_error *error) {
    constexpr const char *function = "fcm_event_wait";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).require(event != nullptr, "the event is null");
        if (!arguments.ok()) return arguments.status();
        return on_device(function, context, error, [&] {
            check(cudaStreamWaitEvent(context->stream, event->event, 0), "cudaStreamWaitEvent");
            return fcm_status{FCM_OK};
        });
    });
}

// ---- Memory ---------------------------------------------------------------------------------------------------

fcm_status fcm_buffer_allocate(fcm_context *context, int64_t bytes, void **address, fcm_error *error) {
    constexpr const char *function = "fcm_buffer_allocate";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context)
            .require(address != nullptr, "the place for the address is null")
            .require(bytes >= 0, "bytes = %" PRId64 " is negative", bytes);
        if (!arguments.ok()) return arguments.status();

        std::lock_guard<std::mutex> lock(context->buffers_mutex);
        // What can never fit is not asked for: drivers differ in what they call such a mistake.
        if (bytes > context->memory_bytes - context->live_bytes) {
            return fail(error, FCM_OUT_OF_MEMORY, {},
                        "%s: %s:%d, %" PRId64 " bytes asked, %" PRId64 " in use, the device has %" PRId64, function,
                        fcm::kKindName, context->device, bytes, context->live_bytes, context->memory_bytes);
        }
        return on_device(function, context, error, [&] {
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
            return fcm_status{FCM_OK};
        });
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
        return on_device(function, context, error, [&] {
            // It is the caller's no more, whatever CUDA says about it.
            context->live_bytes -= found->second;
            context->buffers.erase(found);
            check(cudaFreeAsync(address, context->stream), "cudaFreeAsync");
            return fcm_status{FCM_OK};
        });
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

fcm_status fcm_host_allocate(fcm_context *context, int64_t bytes, void **address, fcm_error *error) {
    constexpr const char *function = "fcm_host_allocate";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context)
            .require(address != nullptr, "the place for the address is null")
            .require(bytes >= 0, "bytes = %" PRId64 " is negative", bytes);
        if (!arguments.ok()) return arguments.status();
        return on_device(function, context, error, [&] {
            const auto room = static_cast<size_t>(bytes > 0 ? bytes : 1);
            void *memory = nullptr;
            // Portable: a copy between two GPUs through the host must find it pinned on both.
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
            return fcm_status{FCM_OK};
        });
    });
}

fcm_status fcm_host_free(fcm_context *context, void *address, fcm_error *error) {
    constexpr const char *function = "fcm_host_free";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context);
        if (!arguments.ok()) return arguments.status();
        std::lock_guard<std::mutex> lock(context->buffers_mutex);
        const auto found = context->host_buffers.find(address);
        arguments.require(found != context->host_buffers.end(), "%p is no host memory of this context", address);
        if (!arguments.ok()) return arguments.status();
        return on_device(function, context, error, [&] {
            // A copy that was not waited for may still be reading it.
            const cudaError_t drained = cudaStreamSynchronize(context->stream);
            context->host_buffers.erase(found);
            check(cudaFreeHost(address), "cudaFreeHost");
            check(drained, "cudaStreamSynchronize");
            return fcm_status{FCM_OK};
        });
    });
}

fcm_status fcm_zero(fcm_context *context, void *address, int64_t bytes, fcm_error *error) {
    constexpr const char *function = "fcm_zero";
    return guarded(function, error, [&] {
        const fcm_status refused = fcm::copy_arguments(function, context, address, nullptr, false, bytes, error);
        if (refused != FCM_OK || bytes == 0) return refused;
        return on_device(function, context, error, [&] {
            check(cudaMemsetAsync(address, 0, static_cast<size_t>(bytes), context->stream), "cudaMemsetAsync", bytes);
            return fcm_status{FCM_OK};
        });
    });
}

fcm_status fcm_copy_in(fcm_context *context, void *device_to, const void *host_from, int64_t bytes, fcm_error *error) {
    return fcm::copy("fcm_copy_in", context, device_to, host_from, bytes, cudaMemcpyHostToDevice, true, error);
}

fcm_status fcm_copy_out(fcm_context *context, void *host_to, const void *device_from, int64_t bytes, fcm_error *error) {
    return fcm::copy("fcm_copy_out", context, host_to, device_from, bytes, cudaMemcpyDeviceToHost, true, error);
}

fcm_status fcm_copy_in_async(fcm_context *context, void *device_to, const void *host_from, int64_t bytes, fcm_error *error) {
    return fcm::copy("fcm_copy_in_async", context, device_to, host_from, bytes, cudaMemcpyHostToDevice, false, error);
}

fcm_status fcm_copy_out_async(fcm_context *context, void *host_to, const void *device_from, int64_t bytes,
                              fcm_error *error) {
    return fcm::copy("fcm_copy_out_async", context, host_to, device_from, bytes, cudaMemcpyDeviceToHost, false, error);
}

fcm_status fcm_copy(fcm_context *to_context, void *to, fcm_context *from_context, const void *from, int64_t bytes,
                    fcm_error *error) {
    constexpr const char *function = "fcm_copy";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(from_context);
        if (!arguments.ok()) return arguments.status();
        const fcm_status refused = fcm::copy_arguments(function, to_context, to, from, true, bytes, error);
        if (refused != FCM_OK || bytes == 0) return refused;
        return on_device(function, to_context, error, [&] {
            const auto size = static_cast<size_t>(bytes);
            if (to_context != from_context) fcm::order(from_context, to_context);
            if (to_context->device == from_context->device) {
                check(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, to_context->stream), "cudaMemcpyAsync", bytes);
            } else {
                // Directly from GPU to GPU where they can reach each other, through the host where not: CUDA knows.
                check(cudaMemcpyPeerAsync(to, to_context->device, from, from_context->device, size, to_context->stream),
                      "cudaMemcpyPeerAsync", bytes);
            }
            if (to_context != from_context) fcm::order(to_context, from_context);
            return fcm_status{FCM_OK};
        });
    });
}
