#include "shared_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "canary.h"
#include "sanitizer.h"
#include "settings.h"

namespace cudasim {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kGuard = 256;
constexpr size_t kMostPieces = 64;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

SharedMemory::SharedMemory(size_t most) : most_(most) {
    const size_t arena = round_up(most + (kMostPieces + 2) * 2 * kGuard, kPage);
    mapped_ = arena + 2 * kPage;
    void *memory = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<unsigned char *>(memory);
    arena_ = memory_ + kPage;
    arena_end_ = arena_ + arena;
    if (mprotect(arena_, arena, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    // An abandoned thread never frees its allocations, so nothing is allocated on behalf of a thread.
    pieces_.reserve(kMostPieces);
}

SharedMemory::~SharedMemory() {
    ASAN_UNPOISON_MEMORY_REGION(memory_, mapped_);
    munmap(memory_, mapped_);
}

void SharedMemory::start_block(size_t dynamic_bytes, bool poison) {
    pieces_.clear();
    poison_ = poison;
    end_ = arena_;
    static_bytes_ = 0;
    dynamic_bytes_ = dynamic_bytes;
    dynamic_ = nullptr;
    // The canaries exist even if a kernel that was launched without dynamic shared memory writes to it.
    dynamic_ = place(nullptr, "dynamic shared memory", dynamic_bytes)->data;
}

SharedMemory::Piece *SharedMemory::place(const void *site, const char *name, size_t bytes) {
    if (pieces_.empty()) {
        ASAN_UNPOISON_MEMORY_REGION(arena_, kGuard);
        canary::fill(arena_, arena_ + kGuard);
        if (poison_) ASAN_POISON_MEMORY_REGION(arena_, kGuard);
        end_ = arena_ + kGuard;
    }
    unsigned char *data = end_;
    unsigned char *end = arena_ + round_up(static_cast<size_t>(data - arena_) + bytes + kGuard, kGuard);
    if (end > arena_end_ || pieces_.size() == kMostPieces) return nullptr;
    ASAN_UNPOISON_MEMORY_REGION(data, end - data);
    std::memset(data, canary::kFresh, bytes);
    canary::fill(data + bytes, end);
    if (poison_) ASAN_POISON_MEMORY_REGION(data + bytes, end - (data + bytes));
    pieces_.push_back({site, name, data, bytes});
    end_ = end;
    return &pieces_.back();
}

void *SharedMemory::array(const void *site, const char *name, size_t bytes, size_t alignment) {
    for (const Piece &piece : pieces_) {
        if (piece.site == site) return piece.data;
    }
    static_bytes_ += round_up(bytes, alignment);
    if (static_bytes_ > kPlainShared || static_bytes_ + dynamic_bytes_ > most_ || alignment > kGuard) return nullptr;
    Piece *piece = place(site, name, bytes);
    return piece == nullptr ? nullptr : piece->data;
}

const unsigned char *SharedMemory::guard_before(size_t piece) const {
    return piece == 0 ? arena_ : pieces_[piece - 1].data + pieces_[piece - 1].bytes;
}

const unsigned char *SharedMemory::find_damage(size_t *piece) const {
    for (size_t i = 0; i <= pieces_.size(); ++i) {
        const unsigned char *to = i < pieces_.size() ? pieces_[i].data : end_;
        const unsigned char *where = canary::damaged(guard_before(i), to);
        if (where == nullptr) continue;
        // A canary between two arrays is attributed to the nearer one.
        const bool before = i < pieces_.size() && (i == 0 || to - where <= where - guard_before(i));
        *piece = before ? i : i - 1;
        return where;
    }
    return nullptr;
}

bool SharedMemory::intact() const {
    size_t piece = 0;
    return find_damage(&piece) == nullptr;
}

Words SharedMemory::damage() const {
    size_t i = 0;
    const unsigned char *where = find_damage(&i);
    if (where == nullptr) return {};
    return words("something wrote to byte %td of %s, which has %zu bytes", where - pieces_[i].data, pieces_[i].name,
                 pieces_[i].bytes);
}

}  // namespace cudasim
