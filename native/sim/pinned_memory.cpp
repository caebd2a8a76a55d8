#include "pinned_memory.h"

#include <cstring>
#include <new>

#include "canary.h"
#include "text.h"

namespace cudasim {

namespace {

constexpr std::align_val_t kAlignment{4096};
constexpr size_t kGuard = 4096;  // one page, so that the user's part is page-aligned as in CUDA

}  // namespace

void PinnedMemory::Release::operator()(unsigned char *memory) const { ::operator delete(memory, kAlignment); }

void *PinnedMemory::allocate(size_t bytes) {
    std::unique_ptr<unsigned char, Release> memory(
        static_cast<unsigned char *>(::operator new(kGuard + bytes + kGuard, kAlignment)));
    unsigned char *data = memory.get() + kGuard;
    canary::fill(memory.get(), data);
    std::memset(data, canary::kFresh, bytes);
    canary::fill(data + bytes, data + bytes + kGuard);
    std::lock_guard<std::mutex> lock(mutex_);
    live_.emplace(data, Allocation{std::move(memory), bytes});
    asked_ += bytes;
    return data;
}

bool PinnedMemory::release(void *address, std::string *damage) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = live_.find(static_cast<unsigned char *>(address));
    if (found == live_.end()) return false;
    const unsigned char *data = found->first;
    const size_t bytes = found->second.bytes;
    const unsigned char *where = canary::damaged(data - kGuard, data);
    if (where == nullptr) where = canary::damaged(data + bytes, data + bytes + kGuard);
    if (where != nullptr) {
        *damage = text("something wrote to byte %td of a pinned allocation of %zu bytes (%p), outside of it",
                       where - data, bytes, address);
    }
    asked_ -= bytes;
    live_.erase(found);
    return true;
}

Place PinnedMemory::find(const void *address) const {
    std::lock_guard<std::mutex> lock(mutex_);
    Place place;
    const auto *byte = static_cast<const unsigned char *>(address);
    const auto after = live_.upper_bound(byte);
    if (after == live_.begin()) return place;
    const auto &[base, allocation] = *std::prev(after);
    if (byte <= base + allocation.bytes) {
        place.kind = Place::Kind::pinned;
        place.base = base;
        place.bytes = allocation.bytes;
    }
    return place;
}

size_t PinnedMemory::live() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return asked_;
}

}  // namespace cudasim
