#include "device_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "canary.h"
#include "sanitizer.h"
#include "text.h"

namespace cudasim {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kGuard = 256;       // minimum before and after; also the alignment guaranteed by CUDA
constexpr size_t kRangeFactor = 8;   // ratio of address range to memory
constexpr size_t kMostFreed = 4096;  // frees kept for reports

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

void change_protection(unsigned char *address, size_t bytes, int protection) {
    if (mprotect(address, bytes, protection) != 0) {
        throw std::system_error(errno, std::generic_category(), "protection of simulated device memory");
    }
}

}  // namespace

DeviceMemory::DeviceMemory(int device, Options options) : device_(device), options_(options) {
    range_bytes_ = round_up(options.capacity * kRangeFactor + (size_t{64} << 20), kPage);
    void *range = mmap(nullptr, range_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "addresses for a simulated device");
    range_ = static_cast<unsigned char *>(range);
}

DeviceMemory::~DeviceMemory() {
    // The next owner of these addresses must not find poisoned canaries. The whole range is not unpoisoned at once, because
    // that would write shadow memory for every address.
    release_all();
    munmap(range_, range_bytes_);
}

void *DeviceMemory::allocate(size_t bytes, bool pool, bool ready) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > options_.capacity || used_ + round_up(bytes, kGuard) > options_.capacity) return nullptr;
    Allocation allocation{0, round_up(kGuard + bytes + kGuard, kPage), bytes, pool, ready};
    if (!find_gap(allocation.region_bytes, &allocation.region)) return nullptr;
    cursor_ = allocation.region + allocation.region_bytes;
    forget_freed(allocation.region, allocation.region_bytes);

    const size_t position = allocation.region + kGuard;
    prepare(position, allocation);
    live_.emplace(position, allocation);
    used_ += round_up(bytes, kGuard);
    asked_ += bytes;
    runs_valid_ = false;
    return at(position);
}

void DeviceMemory::prepare(size_t position, const Allocation &allocation) {
    unsigned char *region = at(allocation.region);
    unsigned char *end = region + allocation.region_bytes;
    change_protection(region, allocation.region_bytes, PROT_READ | PROT_WRITE);
    ASAN_UNPOISON_MEMORY_REGION(region, allocation.region_bytes);
    canary::fill(region, at(position));
    std::memset(at(position), canary::kFresh, allocation.bytes);
    canary::fill(at(position) + allocation.bytes, end);
    if (options_.poison) {
        ASAN_POISON_MEMORY_REGION(region, kGuard);
        ASAN_POISON_MEMORY_REGION(at(position) + allocation.bytes, end - (at(position) + allocation.bytes));
    }
    protect_region(allocation);
}

void DeviceMemory::protect_region(const Allocation &allocation) const {
    const bool open = !options_.protect || reach_.opens(allocation.pool);
    if (!open) change_protection(at(allocation.region), allocation.region_bytes, PROT_NONE);
}

bool DeviceMemory::find_gap(size_t bytes, size_t *region) const {
    return gap_from(cursor_, range_bytes_, bytes, region) || gap_from(0, cursor_, bytes, region);
}

bool DeviceMemory::gap_from(size_t start, size_t end, size_t bytes, size_t *region) const {
    auto next = live_.lower_bound(start);
    if (next != live_.begin()) {
        const Allocation &before = std::prev(next)->second;
        if (before.region + before.region_bytes > start) start = before.region + before.region_bytes;
    }
    for (; next != live_.end() && next->second.region < end; ++next) {
        if (next->second.region >= start + bytes) break;
        start = next->second.region + next->second.region_bytes;
    }
    *region = start;
    return start + bytes <= end;
}

void DeviceMemory::forget_freed(size_t region, size_t bytes) {
    freed_.erase(freed_.lower_bound(region), freed_.lower_bound(region + bytes));
}

void DeviceMemory::remember_freed(size_t position, const Allocation &allocation) {
    freed_[position] = {allocation.bytes, allocation.pool};
    if (freed_.size() > kMostFreed) freed_.erase(freed_.begin());
}

void DeviceMemory::set_ready(void *address) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = live_.find(offset(address));
    if (found != live_.end()) found->second.ready = true;
}

bool DeviceMemory::claim_for_free(void *address, bool pool_only) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = live_.find(offset(address));
    if (found == live_.end() || found->second.freeing || (pool_only && !found->second.pool)) return false;
    found->second.freeing = true;
    return true;
}

std::string DeviceMemory::release(void *address) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = live_.find(offset(address));
    return found == live_.end() ? std::string() : release_locked(found);
}

std::string DeviceMemory::release_locked(Live::iterator found) {
    const auto [position, allocation] = *found;
    unsigned char *region = at(allocation.region);
    change_protection(region, allocation.region_bytes, PROT_READ | PROT_WRITE);
    std::string words = damage_of(position, allocation);
    change_protection(region, allocation.region_bytes, PROT_NONE);
    // The pages are returned to the operating system; the addresses stay inaccessible.
    madvise(region, allocation.region_bytes, MADV_DONTNEED);
    ASAN_UNPOISON_MEMORY_REGION(region, allocation.region_bytes);
    remember_freed(position, allocation);
    live_.erase(found);
    used_ -= round_up(allocation.bytes, kGuard);
    asked_ -= allocation.bytes;
    runs_valid_ = false;
    return words;
}

void DeviceMemory::release_all() {
    std::lock_guard<std::mutex> lock(mutex_);
    while (!live_.empty()) release_locked(live_.begin());
}

size_t DeviceMemory::offset(const void *address) const {
    return static_cast<size_t>(static_cast<const unsigned char *>(address) - range_);
}

bool DeviceMemory::contains(const void *address) const {
    const auto *byte = static_cast<const unsigned char *>(address);
    return byte >= range_ && byte < range_ + range_bytes_;
}

DeviceMemory::Live::const_iterator DeviceMemory::holding(size_t position) const {
    auto after = live_.upper_bound(position + kGuard);  // a canary belongs to the allocation that it guards
    if (after == live_.begin()) return live_.end();
    const auto found = std::prev(after);
    const bool inside = position < found->second.region + found->second.region_bytes;
    return inside ? found : live_.end();
}

Place DeviceMemory::find(const void *address) const {
    std::lock_guard<std::mutex> lock(mutex_);
    Place place;
    place.device = device_;
    place.kind = Place::Kind::unallocated;
    const size_t position = offset(address);
    const auto found = holding(position);
    // One past the end still belongs to the allocation: an empty piece of an array starts there.
    if (found != live_.end() && position >= found->first && position <= found->first + found->second.bytes) {
        const Allocation &allocation = found->second;
        place.kind = Place::Kind::device;
        place.base = at(found->first);
        place.bytes = allocation.bytes;
        place.pool = allocation.pool;
        place.ready = allocation.ready;
        return place;
    }
    const auto after = freed_.upper_bound(position);
    if (after != freed_.begin()) {
        const auto &[base, freed] = *std::prev(after);
        if (position <= base + freed.bytes) {
            place.kind = Place::Kind::freed;
            place.base = at(base);
            place.bytes = freed.bytes;
            place.pool = freed.pool;
        }
    }
    return place;
}

std::string DeviceMemory::describe(const void *address) const {
    const Place place = find(address);
    const auto *byte = static_cast<const unsigned char *>(address);
    switch (place.kind) {
        case Place::Kind::device:
            return text("%p is byte %td of an allocation of %zu bytes on device %d%s", address, byte - place.base,
                        place.bytes, device_, place.ready ? "" : " that its stream has not made yet");
        case Place::Kind::freed:
            return text("%p was byte %td of an allocation of %zu bytes on device %d, since freed", address,
                        byte - place.base, place.bytes, device_);
        default: {
            std::lock_guard<std::mutex> lock(mutex_);
            const size_t position = offset(address);
            const auto near = holding(position);
            if (near == live_.end()) return text("%p is memory of device %d that was never allocated", address, device_);
            const auto distance = static_cast<std::ptrdiff_t>(position) - static_cast<std::ptrdiff_t>(near->first);
            return text("%p is %td bytes from the start of an allocation of %zu bytes on device %d, outside of it",
                        address, distance, near->second.bytes, device_);
        }
    }
}

std::string DeviceMemory::damage_of(size_t position, const Allocation &allocation) const {
    const unsigned char *data = at(position);
    const unsigned char *end = data + allocation.bytes;
    const unsigned char *where = canary::damaged(at(allocation.region), data);
    if (where == nullptr) where = canary::damaged(end, at(allocation.region) + allocation.region_bytes);
    if (where == nullptr) return {};
    return text("something wrote to byte %td of an allocation of %zu bytes on device %d (%p), outside of it",
                where - data, allocation.bytes, device_, static_cast<const void *>(data));
}

std::string DeviceMemory::damage() const {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto &[position, allocation] : live_) {
        const std::string words = damage_of(position, allocation);
        if (!words.empty()) return words;
    }
    return {};
}

std::string DeviceMemory::damage(const void *address) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = holding(offset(address));
    return found == live_.end() ? std::string() : damage_of(found->first, found->second);
}

void DeviceMemory::refresh_runs() {
    if (runs_valid_) return;
    runs_.clear();
    for (const auto &entry : live_) {
        const Allocation &allocation = entry.second;
        const bool joins = !runs_.empty() && runs_.back().pool == allocation.pool &&
                           runs_.back().start + runs_.back().bytes == allocation.region;
        if (joins) {
            runs_.back().bytes += allocation.region_bytes;
        } else {
            runs_.push_back({allocation.region, allocation.region_bytes, allocation.pool});
        }
    }
    runs_valid_ = true;
}

void DeviceMemory::set_reach(Reach reach) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (reach.plain == reach_.plain && reach.pools == reach_.pools) return;
    if (options_.protect) {
        refresh_runs();
        for (const Run &run : runs_) {
            if (reach.opens(run.pool) == reach_.opens(run.pool)) continue;
            change_protection(at(run.start), run.bytes, reach.opens(run.pool) ? PROT_READ | PROT_WRITE : PROT_NONE);
        }
    }
    reach_ = reach;
}

size_t DeviceMemory::used() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return used_;
}

size_t DeviceMemory::live() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return asked_;
}

}  // namespace cudasim
