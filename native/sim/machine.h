// The simulated machine. It owns all parts and submits work from calls to streams. The functions of the runtime interface
// are thin wrappers around it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cudasim/launch.h"
#include "cudasim/runtime.h"
#include "device_faults.h"
#include "device_memories.h"
#include "engine.h"
#include "injector.h"
#include "kernel_table.h"
#include "scheduler.h"
#include "settings.h"
#include "stream_table.h"
#include "trace.h"

namespace cudasim {

// Thrown to refuse a call.
class ApiError : public std::runtime_error {
   public:
    ApiError(cudaError_t code, const std::string &words) : std::runtime_error(words), code_(code) {}
    cudaError_t code() const { return code_; }

   private:
    cudaError_t code_;
};

class Machine {
   public:
    explicit Machine(const Settings &settings);
    ~Machine();
    Machine(const Machine &) = delete;
    Machine &operator=(const Machine &) = delete;

    // The single instance, created by the first call.
    static std::shared_ptr<Machine> get();
    static void remake();

    const Settings &settings() const { return settings_; }
    DeviceMemories &memories() { return memories_; }
    DeviceFaults &faults() { return faults_; }
    StreamTable &streams() { return streams_; }
    Injector &injector() { return injector_; }
    Scheduler &scheduler() { return scheduler_; }
    KernelTable &kernels() { return kernels_; }
    Trace &trace() { return trace_; }

    int devices() const { return settings_.devices; }
    void check_device(int device) const;
    // Creates the primary context of a device, unless it exists. Throws if the device does not allow it.
    void need_context(int device);
    bool has_context(int device) const;
    // Throws the fault of a device that has failed.
    void check_healthy(int device) const;

    // Both throw for an invalid handle.
    std::shared_ptr<Stream> stream(Stream *handle, int current) const;
    std::shared_ptr<Event> event(Event *handle) const;

    // Submits a task to a stream, after the work that CUDA orders before it; runs it immediately if streams are eager.
    Mark submit(const std::shared_ptr<Stream> &stream, Task task);
    void finish_stream(const std::shared_ptr<Stream> &stream);
    void finish_device(int device);

    // The limit of dynamic shared memory set for a kernel on a device.
    void allow_shared(int device, const void *function, size_t bytes);
    size_t allowed_shared(int device, const void *function) const;

    Engine &engine();  // throws std::exception

    void reset_device(int device);

   private:
    void order_with_null_stream(const std::shared_ptr<Stream> &stream);
    uint64_t put(const std::shared_ptr<Stream> &stream, Task task);

    Settings settings_;
    DeviceMemories memories_;
    DeviceFaults faults_;
    StreamTable streams_;
    Injector injector_;
    KernelTable kernels_;
    Trace trace_;
    Scheduler scheduler_;

    mutable std::mutex mutex_;
    std::map<std::pair<int, const void *>, size_t> shared_allowed_;
    std::vector<bool> contexts_;  // devices with a primary context
    std::unique_ptr<Engine> engine_;
};

}  // namespace cudasim
