// How a launch is executed. The source engine calls the kernel that was compiled with the program; the PTX engine finds the
// kernel by name and interprets the PTX that nvcc generated.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include "cudasim/control.h"
#include "cudasim/types.h"

namespace cudasim {

class DeviceMemories;

// Device memory as a kernel of one device can access it.
class MemoryMap {
   public:
    MemoryMap(const DeviceMemories &memories, int device) : memories_(memories), device_(device) {}

    int device() const { return device_; }

    // Classifies an address. base and bytes describe the whole allocation, so a caller can cache it for the next access.
    Place find(const void *address) const;

    // Whether a kernel of this device may access all of [address, address + bytes), which must lie in one live allocation of
    // the device, of a peer with access enabled, or of pinned host memory.
    bool allows(const void *address, size_t bytes) const;

    // A description for a report.
    std::string describe(const void *address) const;

   private:
    const DeviceMemories &memories_;
    int device_;
};

// An error in a kernel, with a message. It becomes cudaErrorLaunchFailure.
class KernelFault : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
};

class Engine {
   public:
    Engine() = default;
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;
    virtual ~Engine() = default;

    // Returns when every block has run; throws KernelFault. Launches are serialized.
    virtual void launch(const char *kernel, Dim3 grid, Dim3 block, size_t shared_bytes, const void *args,
                        const size_t *arg_offsets, const size_t *arg_sizes, int arg_count, const MemoryMap &memory) = 0;
};

}  // namespace cudasim
