// The memory of one device: a reserved range of addresses of which only live allocations can ever be touched, and
// those only while the device works. An address is not given out again until the whole range is used up, so that
// what is used after its free is found rather than happens to work.
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

// How much of a device's memory can be touched: peers see what cudaMalloc gave, but not the memory of pools.
enum class Reach { none, peers, all };

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

    // Filled with NaN between canaries; nullptr when the device is full. ready: false until its stream comes to it.
    void *allocate(size_t bytes, bool pool, bool ready);
    void set_ready(void *address);
    // From here on nobody else may free it. False when it is not an allocation, or being freed already.
    bool claim_for_free(void *address, bool pool_only);
    // Frees, and returns what is wrong with the canaries in words; empty when nothing is.
    std::string release(void *address);
    void release_all();

    bool contains(const void *address) const;
    Place find(const void *address) const;
    std::string describe(const void *address) const;

    // These read canaries: the memory must be in reach.
    std::string damage() const;
    std::string damage(const void *address) const;

    void set_reach(Reach reach);

    size_t capacity() const { return options_.capacity; }
    size_t used() const;
    size_t live() const;

   private:
    struct Allocation {
        size_t region;        // offset of the first page
        size_t region_bytes;  // whole pages, canaries included
        size_t bytes;         // as asked for
        bool pool;
        bool ready;
        bool freeing = false;
    };
    struct Freed {
        size_t bytes;
        bool pool;
    };
    using Live = std::map<size_t, Allocation>;  // by the offset of the first byte the owner sees

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
    Reach reach_ = Reach::none;
    // Neighbouring regions in one piece, so that reach changes by few calls of the operating system.
    struct Run {
        size_t start;
        size_t bytes;
        bool pool;
    };
    std::vector<Run> runs_;
    bool runs_valid_ = false;
};

}  // namespace cudasim
