// The runtime interface: launches.
#include <memory>
#include <vector>

#include "host_thread.h"
#include "text.h"

namespace cudasim {

using detail::KernelCall;

namespace {

// A launch that waits in a stream, with a copy of everything that it needs.
class QueuedLaunch {
   public:
    QueuedLaunch(const KernelCall &call, int device)
        : name_(call.name),
          grid_(call.grid),
          block_(call.block),
          shared_bytes_(call.shared_bytes),
          device_(device),
          // 16-byte units, because a vector parameter has that alignment
          bytes_((call.arguments.total + sizeof(Unit)) / sizeof(Unit)),
          offsets_(call.arguments.offsets, call.arguments.offsets + call.arguments.count),
          sizes_(call.arguments.sizes, call.arguments.sizes + call.arguments.count) {
        if (call.arguments.total > 0) std::memcpy(bytes_.data(), call.arguments.bytes, call.arguments.total);
        for (int i = 0; i < call.arguments.count; ++i) {
            if (call.arguments.is_pointer[i]) pointers_.push_back(i);
        }
    }

    std::string what() const {
        return text("kernel %s, grid (%u,%u,%u), block (%u,%u,%u)", name_, grid_.x, grid_.y, grid_.z, block_.x, block_.y,
                    block_.z);
    }

    void run(Machine &machine) const {
        check_pointers(machine.memories());
        machine.engine().launch(name_, grid_, block_, shared_bytes_, bytes_.data(), offsets_.data(), sizes_.data(),
                                static_cast<int>(sizes_.size()), MemoryMap(machine.memories(), device_));
        check_canaries(machine.memories());
    }

   private:
    struct alignas(16) Unit {
        unsigned char bytes[16];
    };

    const void *pointer(int argument) const {
        const void *value = nullptr;
        std::memcpy(&value, reinterpret_cast<const unsigned char *>(bytes_.data()) + offsets_[static_cast<size_t>(argument)],
                    sizeof value);
        return value;
    }

    // A host pointer, a pointer to another device or to freed memory would only be found if the kernel happened to fault.
    void check_pointers(const DeviceMemories &memories) const {
        for (const int argument : pointers_) {
            const void *address = pointer(argument);
            if (address == nullptr || memories.allows(device_, address, 0)) continue;
            throw KernelFault(text("argument %d is nothing device %d may touch: %s", argument, device_,
                                   memories.describe(address).c_str()));
        }
    }

    // The whole device is checked when the host synchronizes; here only the kernel's arguments are, so that it can be named.
    void check_canaries(const DeviceMemories &memories) const {
        for (const int argument : pointers_) {
            const void *address = pointer(argument);
            const int owner = memories.owner(address);
            if (owner < 0) continue;
            const std::string words = memories.device(owner).damage(address);
            if (!words.empty()) throw KernelFault(words);
        }
    }

    const char *name_;
    dim3 grid_;
    dim3 block_;
    size_t shared_bytes_;
    int device_;
    std::vector<Unit> bytes_;
    std::vector<size_t> offsets_;
    std::vector<size_t> sizes_;
    std::vector<int> pointers_;
};

void check_dimensions(const KernelCall &call) {
    const dim3 &g = call.grid;
    const dim3 &b = call.block;
    const bool grid_fits = g.x >= 1 && g.x <= 2147483647u && g.y >= 1 && g.y <= 65535 && g.z >= 1 && g.z <= 65535;
    const bool block_fits = b.x >= 1 && b.x <= 1024 && b.y >= 1 && b.y <= 1024 && b.z >= 1 && b.z <= 64 &&
                            b.x * b.y * b.z <= kMostThreads;
    if (!grid_fits || !block_fits) {
        throw ApiError(cudaErrorInvalidConfiguration, text("kernel %s, grid (%u,%u,%u), block (%u,%u,%u)", call.name, g.x,
                                                           g.y, g.z, b.x, b.y, b.z));
    }
}

void check_shared(const Machine &machine, const KernelCall &call, int device) {
    const size_t allowed = machine.allowed_shared(device, call.function);
    if (call.shared_bytes <= allowed) return;
    throw ApiError(cudaErrorInvalidValue,
                   text("kernel %s: %zu bytes of dynamic shared memory; it has %zu on device %d, and cudaFuncSetAttribute "
                        "can ask for %zu",
                        call.name, call.shared_bytes, allowed, device, machine.settings().most_shared()));
}

}  // namespace

void detail::launch(const KernelCall &kernel) {
    call_in_context([&](Machine &machine, HostThread &thread) {
        const auto stream = machine.stream(kernel.stream, thread.device);
        if (stream->device() != thread.device) {
            throw ApiError(cudaErrorInvalidResourceHandle, text("kernel %s: a stream of device %d, but device %d is current",
                                                                kernel.name, stream->device(), thread.device));
        }
        machine.check_healthy(thread.device);
        check_dimensions(kernel);
        check_shared(machine, kernel, thread.device);
        if (machine.injector().hit("launch", thread.device)) {
            throw ApiError(cudaErrorLaunchOutOfResources, text("kernel %s: injected fault", kernel.name));
        }
        machine.kernels().add(kernel.name, {kernel.function, kernel.entry});
        const auto queued = std::make_shared<const QueuedLaunch>(kernel, thread.device);
        // The machine outlives its streams.
        machine.submit(stream, {queued->what(), [queued, &machine] { queued->run(machine); }});
    });
}

}  // namespace cudasim
