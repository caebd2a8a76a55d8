// All memory of the simulated machine, and which device may access which part of it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "device_memory.h"
#include "pinned_memory.h"
#include "settings.h"

namespace cudasim {

class DeviceMemories {
   public:
    explicit DeviceMemories(const Settings &settings);

    int count() const { return static_cast<int>(devices_.size()); }
    DeviceMemory &device(int number) const { return *devices_[static_cast<size_t>(number)]; }
    PinnedMemory &pinned() { return pinned_; }
    const PinnedMemory &pinned() const { return pinned_; }

    // Returns the device whose range contains the address, or -1. Takes no lock.
    int owner(const void *address) const;
    Place find(const void *address) const;
    std::string describe(const void *address) const;

    bool peer(int device, int of) const { return peers_[index(device, of)].load(std::memory_order_relaxed); }
    // The same for memory from pools.
    bool pool_peer(int device, int of) const { return pool_peers_[index(device, of)].load(std::memory_order_relaxed); }
    void set_pool_peer(int device, int of, bool access) { pool_peers_[index(device, of)].store(access); }
    void set_peer(int device, int of, bool access) { peers_[index(device, of)].store(access); }

    // Whether a kernel of `device` may access the bytes; with 0 bytes, whether the address lies in such memory at all.
    bool allows(int device, const void *address, size_t bytes) const;

   private:
    size_t index(int device, int of) const { return static_cast<size_t>(device * count() + of); }

    std::vector<std::unique_ptr<DeviceMemory>> devices_;
    PinnedMemory pinned_;
    std::vector<std::atomic<bool>> peers_;
    std::vector<std::atomic<bool>> pool_peers_;
};

// While it is open, the memory that work on some devices needs is accessible; otherwise no device memory is.
class MemoryGate {
   public:
    explicit MemoryGate(const DeviceMemories &memories) : memories_(memories) {}
    ~MemoryGate() { close(); }
    MemoryGate(const MemoryGate &) = delete;
    MemoryGate &operator=(const MemoryGate &) = delete;

    // All memory of `device` and of `others`, and the memory of peers that `device` may access.
    void open(int device, const std::vector<int> &others);
    void close();

   private:
    const DeviceMemories &memories_;
};

}  // namespace cudasim
