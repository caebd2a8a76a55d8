#include "machine.h"

#include "engines.h"
#include "text.h"
#include "trap.h"

namespace cudasim {

namespace {

struct Holder {
    std::mutex mutex;
    std::shared_ptr<Machine> machine;
};

// Never destroyed: other threads may make calls until the end of the process.
Holder &holder() {
    static Holder *const one = std::make_unique<Holder>().release();
    return *one;
}

}  // namespace

std::shared_ptr<Machine> Machine::get() {
    Holder &held = holder();
    std::lock_guard<std::mutex> lock(held.mutex);
    if (held.machine == nullptr) {
        held.machine = std::make_shared<Machine>(Settings::from_environment());
        trap::watch(&held.machine->memories_);
    }
    return held.machine;
}

void Machine::remake() {
    Holder &held = holder();
    std::lock_guard<std::mutex> lock(held.mutex);
    trap::watch(nullptr);
    held.machine.reset();
}

Machine::Machine(const Settings &settings)
    : settings_(settings),
      memories_(settings),
      faults_(settings.devices),
      streams_(settings.devices),
      scheduler_(memories_, faults_),
      contexts_(static_cast<size_t>(settings.devices)) {}

Machine::~Machine() = default;

void Machine::check_device(int device) const {
    if (device < 0 || device >= devices()) {
        throw ApiError(devices() == 0 ? cudaErrorNoDevice : cudaErrorInvalidDevice,
                       text("device %d of %d", device, devices()));
    }
}

void Machine::need_context(int device) {
    check_device(device);
    std::lock_guard<std::mutex> lock(mutex_);
    if (contexts_[static_cast<size_t>(device)]) return;
    if (settings_.exclusive.count(device) != 0) {
        throw ApiError(cudaErrorDevicesUnavailable, text("no context on device %d, which another process has", device));
    }
    if (settings_.sick.count(device) != 0) {
        throw ApiError(cudaErrorECCUncorrectable, text("no context on device %d", device));
    }
    contexts_[static_cast<size_t>(device)] = true;
}

bool Machine::has_context(int device) const {
    check_device(device);
    std::lock_guard<std::mutex> lock(mutex_);
    return contexts_[static_cast<size_t>(device)];
}

void Machine::check_healthy(int device) const {
    check_device(device);
    if (faults_.failed(device)) throw ApiError(cudaErrorLaunchFailure, faults_.words(device));
}

std::shared_ptr<Stream> Machine::stream(Stream *handle, int current) const {
    check_device(current);
    auto found = streams_.find(handle, current);
    if (found == nullptr) {
        throw ApiError(cudaErrorInvalidResourceHandle, text("%p is no stream", static_cast<void *>(handle)));
    }
    return found;
}

std::shared_ptr<Event> Machine::event(Event *handle) const {
    auto found = streams_.find_event(handle);
    if (found == nullptr) {
        throw ApiError(cudaErrorInvalidResourceHandle, text("%p is no event", static_cast<void *>(handle)));
    }
    return found;
}

// The null stream and the blocking streams of a device synchronize with each other.
void Machine::order_with_null_stream(const std::shared_ptr<Stream> &stream) {
    if (!stream->blocking()) return;
    const auto &null = streams_.null_stream(stream->device());
    const auto wait_for = [&](const std::shared_ptr<Stream> &other) {
        auto mark = std::make_shared<Mark>(Mark{other, other->tail()});
        if (!mark->reached()) put(stream, {"wait", {}, {}, false, std::move(mark)});
    };
    if (stream != null) {
        wait_for(null);
        return;
    }
    for (const auto &other : streams_.of_device(stream->device())) {
        if (other != null && other->blocking()) wait_for(other);
    }
}

uint64_t Machine::put(const std::shared_ptr<Stream> &stream, Task task) {
    const std::string what = task.what;
    const auto after = task.after;
    const uint64_t position = stream->push(std::move(task));
    trace_.add(*stream, position, after.get(), what);
    return position;
}

Mark Machine::submit(const std::shared_ptr<Stream> &stream, Task task) {
    order_with_null_stream(stream);
    const Mark mark{stream, put(stream, std::move(task))};
    if (!settings_.lazy) scheduler_.try_finish(mark);
    return mark;
}

void Machine::finish_stream(const std::shared_ptr<Stream> &stream) {
    order_with_null_stream(stream);
    scheduler_.finish({stream, stream->tail()});
}

void Machine::finish_device(int device) {
    for (const auto &stream : streams_.of_device(device)) scheduler_.finish({stream, stream->tail()});
}

void Machine::allow_shared(int device, const void *function, size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    shared_allowed_[{device, function}] = bytes;
}

size_t Machine::allowed_shared(int device, const void *function) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = shared_allowed_.find({device, function});
    return found == shared_allowed_.end() ? kPlainShared : std::max(found->second, kPlainShared);
}

Engine &Machine::engine() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (engine_ == nullptr) engine_ = make_engine(settings_, kernels_);
    return *engine_;
}

void Machine::reset_device(int device) {
    scheduler_.between_tasks([&] {
        streams_.forget(device);
        memories_.device(device).release_all();
        faults_.clear(device);
        for (int i = 0; i < devices(); ++i) {
            memories_.set_peer(device, i, false);
            memories_.set_pool_peer(i, device, false);
        }
    });
    std::lock_guard<std::mutex> lock(mutex_);
    contexts_[static_cast<size_t>(device)] = false;
}

}  // namespace cudasim
