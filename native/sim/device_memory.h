// The memory of one device: a reserved range of addresses of which only live allocations can ever be accessed, and only
// while the device is working. An address is not reused until the whole range has been used, so that use after free is
// detected instead of working by accident.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cudasim/control.h"

namespace cudasim {

// How much of a device's memory is accessible: peers are given access to memory from cudaMalloc and from memory pools
// separately.
struct Reach {
    bool plain;
    bool pools;

    bool opens(bool pool) const { return pool ? pools : plain; }
};

class DeviceMemory {
   public:
    struct Options {
        size_t capacity;
        bool protect;
        bool poison;
    };

    DeviceMemory(int device, Options options);
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory &) = delete;
    DeviceMemory &operator=(const DeviceMemory &) = delete;

    // Filled with NaN between canaries; nullptr if the device is full. `ready` is false until the stream reaches the
    // allocation.
    void *allocate(size_t bytes, bool pool, bool ready);
    void set_ready(void *address);
    // After this, nobody else can free the address. Returns false if it is not an allocation or is already being freed.
    bool claim_for_free(void *address, bool pool_only);
    // Frees the address and returns a message about damaged canaries, which is empty if there are none.
    std::string release(void *address);
    void release_all();

    bool contains(const void *address) const;
    Place find(const void *address) const;
    std::string describe(const void *address) const;

    // These read canaries, so the memory must be accessible.
    std::string damage() const;
    std::string damage(const void *address) const;

    void set_reach(Reach reach);

    size_t capacity() const { return options_.capacity; }
    size_t used() const;
    size_t live() const;

   private:
    struct Allocation {
        size_t region;        // offset of the first page
        size_t region_bytes;  // whole pages, including canaries
        size_t bytes;         // as requested
        bool pool;
        bool ready;
        bool freeing = false;
    };
    struct Freed {
        size_t bytes;
        bool pool;
    };
    using Live = std::map<size_t, Allocation>;  // by the offset of the first byte of the user's part

    size_t offset(const void *address) const;
    unsigned char *at(size_t position) const { return range_ + position; }
    Live::const_iterator holding(size_t position) const;
    bool find_gap(size_t bytes, size_t *region) const;
    bool gap_from(size_t start, size_t end, size_t bytes, size_t *region) const;
    void forget_freed(size_t region, size_t bytes);
    void remember_freed(size_t position, const Allocation &allocation);
    void prepare(size_t position, const Allocation &allocation);
    void protect_region(const Allocation &allocation) const;
    std::string damage_of(size_t position, const Allocation &allocation) const;
    std::string release_locked(Live::iterator found);
    void refresh_runs();

    int device_;
    Options options_;
    unsigned char *range_ = nullptr;
    size_t range_bytes_ = 0;

    mutable std::mutex mutex_;
    Live live_;
    std::map<size_t, Freed> freed_;
    size_t cursor_ = 0;
    size_t used_ = 0;
    size_t asked_ = 0;
    Reach reach_{false, false};
    // Adjacent regions are merged, so that access rights change with few system calls.
    struct Run {
        size_t start;
        size_t bytes;
        bool pool;
    };
    std::vector<Run> runs_;
    bool runs_valid_ = false;
};

}  // namespace cudasim
