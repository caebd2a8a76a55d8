// Entry points for devices, contexts, memory and events. Their arguments are checked here, once for all devices.
#include <cinttypes>

#include "entry.h"

namespace fcm {
namespace {

constexpr const char *kNoPlace = "the place for the answer is null";

// Checks the target of a fill or a copy; copy() checks the source as well.
bool target(Arguments &arguments, const void *to, int64_t bytes) {
    arguments.require(bytes >= 0, "bytes = %" PRId64 " is negative", bytes).batch("target", to, 1, bytes, bytes, 1, true);
    return bytes > 0;
}

bool copy(Arguments &arguments, const void *to, const void *from, int64_t bytes) {
    arguments.require(bytes >= 0, "bytes = %" PRId64 " is negative", bytes).batch("source", from, 1, bytes, bytes, 1, false);
    const bool anything = target(arguments, to, bytes);
    arguments.disjoint();
    return anything;
}

bool allocation(Arguments &arguments, int64_t bytes, void *const *address) {
    return arguments.require(address != nullptr, "the place for the address is null")
        .require(bytes >= 0, "bytes = %" PRId64 " is negative", bytes)
        .ok();
}

// The device itself checks whether an address was allocated, because it keeps the list of allocations.
bool nothing_more(Arguments &arguments) { return arguments.ok(); }

}  // namespace
}  // namespace fcm

using fcm::Arguments;
using fcm::enter;
using fcm::enter_here;
namespace entry = fcm::entry;

int32_t fcm_abi_version(void) { return FCM_ABI_VERSION; }

fcm_status fcm_device_count(int32_t *count, fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return arguments.require(count != nullptr, fcm::kNoPlace).ok(); };
    return enter_here<entry::device_count>(error, check, count);
}

fcm_status fcm_device_describe(int32_t position, fcm_device_info *info, fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return arguments.require(info != nullptr, fcm::kNoPlace).ok(); };
    return enter_here<entry::device_describe>(error, check, position, info);
}

fcm_status fcm_context_create(int32_t kind, int32_t ordinal, int32_t threads, int32_t isa, fcm_context **context,
                              fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        constexpr int32_t kMostThreads = 4096;
        return arguments.require(context != nullptr, "the place for the context is null")
            .require(kind == FCM_CPU || kind == FCM_CUDA || kind == FCM_CUDASIM, "there is no device kind %d", kind)
            .require(ordinal >= 0, "ordinal = %d is negative", ordinal)
            .require(threads >= 1 && threads <= kMostThreads, "threads = %d is outside [1, %d]", threads, kMostThreads)
            .require(isa >= FCM_ISA_AUTO && isa <= FCM_ISA_AVX512_BF16, "there is no instruction set %d", isa)
            .ok();
    };
    return enter_here<entry::context_create>(error, check, kind, ordinal, threads, isa, context);
}

fcm_status fcm_context_isa(const fcm_context *context, int32_t *isa, fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return arguments.require(isa != nullptr, fcm::kNoPlace).ok(); };
    return enter<entry::context_isa>(context, error, check, isa);
}

fcm_status fcm_synchronize(fcm_context *context, fcm_error *error) {
    return enter<entry::synchronize>(context, error, fcm::nothing_more);
}

fcm_status fcm_context_mark(fcm_context *context, int64_t mark, fcm_error *error) {
    return enter<entry::context_mark>(context, error, fcm::nothing_more, mark);
}

fcm_status fcm_query(fcm_context *context, int32_t *done, fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return arguments.require(done != nullptr, fcm::kNoPlace).ok(); };
    return enter<entry::query>(context, error, check, done);
}

fcm_status fcm_context_stream(const fcm_context *context, void **stream, fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return arguments.require(stream != nullptr, fcm::kNoPlace).ok(); };
    return enter<entry::context_stream>(context, error, check, stream);
}

fcm_status fcm_context_reaches(fcm_context *context, fcm_context *other, int32_t *reaches, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        return arguments.context(context).context(other).require(reaches != nullptr, fcm::kNoPlace).ok();
    };
    return enter_here<entry::context_reaches>(error, check, context, other, reaches);
}

// ---- Events ---------------------------------------------------------------------------------------------------

fcm_status fcm_event_create(fcm_context *context, fcm_event **event, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        return arguments.context(context).require(event != nullptr, "the place for the event is null").ok();
    };
    return enter_here<entry::event_create>(error, check, context, event);
}

fcm_status fcm_event_record(fcm_event *event, fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return arguments.require(event != nullptr, "the event is null").ok(); };
    return enter_here<entry::event_record>(error, check, event);
}

fcm_status fcm_event_wait(fcm_context *context, fcm_event *event, fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        return arguments.context(context).require(event != nullptr, "the event is null").ok();
    };
    return enter_here<entry::event_wait>(error, check, context, event);
}

// ---- Memory ---------------------------------------------------------------------------------------------------

fcm_status fcm_buffer_allocate(fcm_context *context, int64_t bytes, void **address, fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return fcm::allocation(arguments, bytes, address); };
    return enter<entry::buffer_allocate>(context, error, check, bytes, address);
}

fcm_status fcm_buffer_free(fcm_context *context, void *address, fcm_error *error) {
    return enter<entry::buffer_free>(context, error, fcm::nothing_more, address);
}

fcm_status fcm_live_bytes(const fcm_context *context, int64_t *bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return arguments.require(bytes != nullptr, fcm::kNoPlace).ok(); };
    return enter<entry::live_bytes>(context, error, check, bytes);
}

fcm_status fcm_host_allocate(fcm_context *context, int64_t bytes, void **address, fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return fcm::allocation(arguments, bytes, address); };
    return enter<entry::host_allocate>(context, error, check, bytes, address);
}

fcm_status fcm_host_free(fcm_context *context, void *address, fcm_error *error) {
    return enter<entry::host_free>(context, error, fcm::nothing_more, address);
}

fcm_status fcm_zero(fcm_context *context, void *address, int64_t bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return fcm::target(arguments, address, bytes); };
    return enter<entry::zero>(context, error, check, address, bytes);
}

fcm_status fcm_copy_in(fcm_context *context, void *device_to, const void *host_from, int64_t bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return fcm::copy(arguments, device_to, host_from, bytes); };
    return enter<entry::copy_in>(context, error, check, device_to, host_from, bytes);
}

fcm_status fcm_copy_out(fcm_context *context, void *host_to, const void *device_from, int64_t bytes, fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return fcm::copy(arguments, host_to, device_from, bytes); };
    return enter<entry::copy_out>(context, error, check, host_to, device_from, bytes);
}

fcm_status fcm_copy_in_async(fcm_context *context, void *device_to, const void *host_from, int64_t bytes,
                             fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return fcm::copy(arguments, device_to, host_from, bytes); };
    return enter<entry::copy_in_async>(context, error, check, device_to, host_from, bytes);
}

fcm_status fcm_copy_out_async(fcm_context *context, void *host_to, const void *device_from, int64_t bytes,
                              fcm_error *error) {
    const auto check = [&](Arguments &arguments) { return fcm::copy(arguments, host_to, device_from, bytes); };
    return enter<entry::copy_out_async>(context, error, check, host_to, device_from, bytes);
}

fcm_status fcm_copy(fcm_context *to_context, void *to, fcm_context *from_context, const void *from, int64_t bytes,
                    fcm_error *error) {
    const auto check = [&](Arguments &arguments) {
        arguments.context(to_context).context(from_context);
        // A call with a context of a backend is forwarded, and the backend checks the remaining arguments.
        const bool ours = fcm::remote_of(to_context).functions == nullptr && fcm::remote_of(from_context).functions == nullptr;
        return ours ? fcm::copy(arguments, to, from, bytes) : arguments.ok();
    };
    return enter_here<entry::copy>(error, check, to_context, to, from_context, from, bytes);
}
