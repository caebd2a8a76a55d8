// Synchronization and events. The CPU has no pending work when a call returns, so these functions only forward calls to
// backends and keep the order between devices of different libraries.
#include <memory>

#include "backend.h"

struct fcm_event {
    fcm_context *context;
    fcm_event *remote;  // the backend's own event; null on the CPU
};

void fcm_event_destroy(fcm_event *event) {
    const std::unique_ptr<fcm_event> mine{event};
    if (mine && mine->remote != nullptr) mine->context->backend->event_destroy(mine->remote);
}

namespace fcm {

fcm_status device::synchronize(fcm_context *, fcm_error *) { return FCM_OK; }

// Operations of a CPU report what they find themselves.
fcm_status device::context_mark(fcm_context *, int64_t, fcm_error *) { return FCM_OK; }

fcm_status device::query(fcm_context *, int32_t *done, fcm_error *) {
    *done = 1;
    return FCM_OK;
}

fcm_status device::context_stream(const fcm_context *, void **stream, fcm_error *) {
    *stream = nullptr;
    return FCM_OK;
}

fcm_status device::event_create(fcm_context *context, fcm_event **event, fcm_error *error) {
    auto made = std::make_unique<fcm_event>(fcm_event{context, nullptr});
    if (context->backend != nullptr) {
        const fcm_status status = context->backend->event_create(context->remote, &made->remote, error);
        if (status != FCM_OK) return status;
    }
    *event = made.release();
    return FCM_OK;
}

fcm_status device::event_record(fcm_event *event, fcm_error *error) {
    if (event->remote == nullptr) return FCM_OK;
    return event->context->backend->event_record(event->remote, error);
}

fcm_status device::event_wait(fcm_context *context, fcm_event *event, fcm_error *error) {
    if (event->remote == nullptr) return FCM_OK;  // the CPU has already passed every event
    const Backend *marked = event->context->backend;
    if (context->backend == marked) return marked->event_wait(context->remote, event->remote, error);
    // Another library cannot wait for this event, so the host waits for all work of the recording context.
    return marked->synchronize(event->context->remote, error);
}

}  // namespace fcm
