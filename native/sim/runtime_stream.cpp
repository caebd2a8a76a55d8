// The runtime interface: streams and events.
#include <chrono>

#include "cudasim/control.h"
#include "host_thread.h"
#include "text.h"

namespace cudasim {

namespace {

void check_pointer(const void *where) {
    if (where == nullptr) throw ApiError(cudaErrorInvalidValue, "a null pointer for the result");
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        check_pointer(stream);
        machine.check_healthy(thread.device);
        if (flags > cudaStreamNonBlocking) throw ApiError(cudaErrorInvalidValue, text("stream flags %u", flags));
        *stream = machine.streams().create(thread.device, flags != cudaStreamNonBlocking);
    });
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        if (handle == nullptr) throw ApiError(cudaErrorInvalidResourceHandle, "the null stream cannot be destroyed");
        const auto stream = machine.stream(handle, thread.device);
        // CUDA completes the work at some later time, which may be now.
        machine.finish_stream(stream);
        machine.streams().remove(handle);
        machine.check_healthy(stream->device());
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        const auto stream = machine.stream(handle, thread.device);
        const Mark tail{stream, stream->tail()};
        machine.trace().add_wait(stream->device(), &tail, "cudaStreamSynchronize");
        machine.finish_stream(stream);
        machine.check_healthy(stream->device());
    });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        const auto stream = machine.stream(handle, thread.device);
        const bool done = machine.scheduler().advance({stream, stream->tail()});
        machine.check_healthy(stream->device());
        if (!done) throw ApiError(cudaErrorNotReady, "");
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned flags) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        if (flags != 0) throw ApiError(cudaErrorInvalidValue, text("flags %u", flags));
        const auto stream = machine.stream(handle, thread.device);
        const auto mark = machine.event(event_handle)->mark();
        machine.check_healthy(stream->device());
        if (mark != nullptr) machine.submit(stream, {"cudaStreamWaitEvent", {}, {}, false, mark});
    });
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        check_pointer(event);
        machine.check_healthy(thread.device);
        if (flags > (cudaEventBlockingSync | cudaEventDisableTiming)) {
            throw ApiError(cudaErrorInvalidValue, text("event flags %u", flags));
        }
        *event = machine.streams().create_event(thread.device, (flags & cudaEventDisableTiming) == 0);
    });
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
    return call_in_context([&](Machine &machine, HostThread &thread) {
        const auto event = machine.event(handle);
        const auto stream = machine.stream(stream_handle, thread.device);
        if (event->device() != stream->device()) {
            throw ApiError(cudaErrorInvalidResourceHandle, text("an event of device %d on a stream of device %d",
                                                                event->device(), stream->device()));
        }
        machine.check_healthy(stream->device());
        auto mark = std::make_shared<Mark>();
        mark->stream = stream;
        // A weak reference, because otherwise a stream that is removed with pending work would own itself.
        const std::weak_ptr<Mark> weak = mark;
        const auto stamp = [weak] {
            if (const auto alive = weak.lock()) alive->time = std::chrono::steady_clock::now();
        };
        mark->position = machine.submit(stream, {"cudaEventRecord", stamp}).position;
        event->set_mark(mark);
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    return call_in_context([&](Machine &machine, HostThread &) {
        const auto event = machine.event(handle);
        const auto mark = event->mark();
        if (mark != nullptr) {
            machine.trace().add_wait(event->device(), mark.get(), "cudaEventSynchronize");
            machine.scheduler().finish(*mark);
        }
        machine.check_healthy(event->device());
    });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    return call_in_context([&](Machine &machine, HostThread &) {
        const auto event = machine.event(handle);
        const auto mark = event->mark();
        const bool done = mark == nullptr || machine.scheduler().advance(*mark);
        machine.check_healthy(event->device());
        if (!done) throw ApiError(cudaErrorNotReady, "");
    });
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle) {
    return call_in_context([&](Machine &machine, HostThread &) {
        check_pointer(milliseconds);
        const auto start = machine.event(start_handle);
        const auto end = machine.event(end_handle);
        const auto from = start->mark();
        const auto to = end->mark();
        if (!start->timed() || !end->timed() || from == nullptr || to == nullptr) {
            throw ApiError(cudaErrorInvalidResourceHandle, "an event without timing, or never recorded");
        }
        if (!from->reached() || !to->reached()) throw ApiError(cudaErrorNotReady, "");
        *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
    });
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    return call_in_context([&](Machine &machine, HostThread &) {
        const auto event = machine.event(handle);
        machine.streams().remove_event(handle);
        machine.check_healthy(event->device());
    });
}

// ---- cudasim/control.h ----

int stream_device(cudaStream_t handle) {
    int device = -1;
    call([&](Machine &machine, HostThread &thread) { device = machine.stream(handle, thread.device)->device(); });
    return device;
}

cudaError_t enqueue(cudaStream_t handle, const char *what, std::function<void()> work, const std::vector<int> &devices) {
    return call([&](Machine &machine, HostThread &thread) {
        const auto stream = machine.stream(handle, thread.device);
        machine.check_healthy(stream->device());
        for (const int device : devices) machine.check_device(device);
        machine.submit(stream, {what, std::move(work), devices});
    });
}

cudaError_t enqueue_waiting(cudaStream_t handle, const char *what, std::function<bool(bool there)> over,
                            const std::vector<cudaEvent_t> &peers, std::function<void()> work,
                            const std::vector<int> &devices) {
    return call([&](Machine &machine, HostThread &thread) {
        const auto stream = machine.stream(handle, thread.device);
        machine.check_healthy(stream->device());
        for (const int device : devices) machine.check_device(device);
        Task task{what, std::move(work), devices};
        task.over = std::move(over);
        for (const cudaEvent_t peer : peers) {
            if (auto mark = machine.event(peer)->mark()) task.peers.push_back(std::move(mark));
        }
        machine.submit(stream, std::move(task));
    });
}

bool has_failed(int device) {
    bool failed = false;
    call([&](Machine &machine, HostThread &) {
        machine.check_device(device);
        failed = machine.faults().failed(device);
    });
    return failed;
}

}  // namespace cudasim
