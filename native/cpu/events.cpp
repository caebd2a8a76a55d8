// Waiting for work. The CPU has none left when a call returns, so all that remains is to hand on, and to keep the order
// between devices that do not know each other.
#include <memory>

#include "arguments.h"
#include "backend.h"

struct fcm_event {
    fcm_context *context;
    fcm_event *remote;  // the backend's own; null on the CPU
};

using fcm::Arguments;
using fcm::guarded;

fcm_status fcm_synchronize(fcm_context *context, fcm_error *error) {
    if (fcm::is_remote(context)) return context->backend->synchronize(context->remote, error);
    return Arguments("fcm_synchronize", error).context(context).status();
}

fcm_status fcm_context_stream(const fcm_context *context, void **stream, fcm_error *error) {
    if (fcm::is_remote(context)) return context->backend->context_stream(context->remote, stream, error);
    Arguments arguments("fcm_context_stream", error);
    arguments.context(context).require(stream != nullptr, "the place for the answer is null");
    if (arguments.ok()) *stream = nullptr;
    return arguments.status();
}

fcm_status fcm_event_create(fcm_context *context, fcm_event **event, fcm_error *error) {
    constexpr const char *function = "fcm_event_create";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).require(event != nullptr, "the place for the event is null");
        if (!arguments.ok()) return arguments.status();
        auto made = std::make_unique<fcm_event>(fcm_event{context, nullptr});
        if (fcm::is_remote(context)) {
            const fcm_status status = context->backend->event_create(context->remote, &made->remote, error);
            if (status != FCM_OK) return status;
        }
        *event = made.release();
        return fcm_status{FCM_OK};
    });
}

void fcm_event_destroy(fcm_event *event) {
    const std::unique_ptr<fcm_event> mine{event};
    if (mine && mine->remote != nullptr) mine->context->backend->event_destroy(mine->remote);
}

fcm_status fcm_event_record(fcm_event *event, fcm_error *error) {
    Arguments arguments("fcm_event_record", error);
    arguments.require(event != nullptr, "the event is null");
    if (!arguments.ok() || event->remote == nullptr) return arguments.status();
    return event->context->backend->event_record(event->remote, error);
}

fcm_status fcm_event_wait(fcm_context *context, fcm_event *event, fcm_error *error) {
    Arguments arguments("fcm_event_wait", error);
    arguments.context(context).require(event != nullptr, "the event is null");
    if (!arguments.ok() || event->remote == nullptr) return arguments.status();  // the CPU is past every mark already
    const fcm::Backend *marked = event->context->backend;
    if (context->backend == marked) return marked->event_wait(context->remote, event->remote, error);
    // Another library cannot wait for this one's mark: the host does, for all the work there is.
    return marked->synchronize(event->context->remote, error);
}
