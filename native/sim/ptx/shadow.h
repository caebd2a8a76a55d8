// The race detector. For each word of memory it records the last writer and two readers. An access is a race if a
// conflicting access of another thread is on record and nothing orders the two: no barrier of the block, no bar.warp.sync of
// both lanes, no fence and atomic from one to the other. Shuffles and votes order nothing, because CUDA gives them no memory
// ordering.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "types.h"

namespace fcm::ptx {

// Time is counted per block: every barrier, warp barrier and fence starts a new time.
struct Stamp {
    uint32_t who = 0;  // block * 1024 + thread + 1; 0 for none
    uint32_t time = 0;

    uint32_t block() const { return (who - 1) >> 10; }
    uint32_t thread() const { return (who - 1) & 1023; }
};
constexpr uint64_t kMostBlocks = (1u << 22) - 1;

// The accesses that happened before a thread's release of an atomic variable.
struct Release {
    Stamp stamp;  // its own accesses before that time
    uint32_t barrier = 0;  // those of its whole block before that barrier
    std::array<uint32_t, 32> seen{};  // those of the lanes of its warp before those times
    uint32_t itself = 0;              // and its own atomic accesses up to this one

    bool covers(const Stamp &access, bool strong) const;
};

struct Log;

// Prefixes of release logs that a thread has acquired.
class Knowledge {
public:
    bool empty() const { return logs_.empty(); }
    void clear() { logs_.clear(); }
    void add(const Log *log, size_t length);
    void join(const Knowledge &other);
    bool covers(const Stamp &access, bool strong) const;

private:
    std::vector<std::pair<const Log *, size_t>> logs_;
};

// All releases to one atomic variable, in order.
struct Log {
    std::vector<Release> releases;
    std::unordered_map<uint32_t, std::vector<size_t>> by_block;
    Knowledge behind;  // the knowledge of the releasing threads
};

// The detector's state of a thread.
struct Accessor {
    uint32_t who = 0, time = 0;
    uint32_t barrier = 0;             // time of the last barrier of the block
    std::array<uint32_t, 32> seen{};  // time of the last warp barrier with each lane
    Knowledge known;
    Knowledge pending;  // acquired by atomics, but only ordered by the next fence
    std::unique_ptr<Release> fence;

    uint32_t block() const { return (who - 1) >> 10; }
    uint32_t warp() const { return ((who - 1) & 1023) >> 5; }
    Stamp stamp() const { return {who, time}; }
};

enum class Strength : uint8_t { weak, read_only, strong };

class Shadow {
public:
    // `shared`: memory of one block at a time, where records of other blocks are ignored.
    Shadow(uint64_t bytes, bool shared, std::string name);

    // Throws Mistake on a race. `size` is 1, 2, 4, 8 or 16, and the offset a multiple of it.
    void read(const Accessor &by, uint64_t offset, unsigned size) {
        const Span span = words(offset, size);
        for (unsigned i = 0; i < span.count; ++i) {
            Word &word = span.first[i];
            if (!ordered(word.write, by) || word.flags != 0) {
                read_slowly(by, word, offset + i * span.unit, offset, size);
            }
            if (word.first_read.who == by.who) word.first_read.time = by.time;
            else remember(word.first_read, word.last_read, by);
        }
    }

    void write(const Accessor &by, uint64_t offset, unsigned size, unsigned line) {
        const Span span = words(offset, size);
        for (unsigned i = 0; i < span.count; ++i) {
            Word &word = span.first[i];
            if (!ordered(word.write, by) || !ordered(word.first_read, by) || !ordered(word.last_read, by) ||
                word.flags != 0) {
                write_slowly(by, word, offset + i * span.unit, offset, size);
            }
            word.write = by.stamp();
            word.line = line;
        }
    }

    // The last write of the byte, and its line.
    std::pair<Stamp, uint32_t> writer(uint64_t offset) const {
        const Page &page = pages_[offset >> kPageBits];
        if (!page.words) return {};
        const Word &word = page.words[(offset & ((1u << kPageBits) - 1)) >> page.shift];
        return {word.write, word.line};
    }

    // ld.global.nc: no thread, not even this one, may write there during the whole launch.
    void read_only(const Accessor &by, uint64_t offset, unsigned size);

    // An atomic access, which conflicts with accesses that are not atomic. Propagates the order established by fences.
    void strong(Accessor &by, uint64_t offset, unsigned size, bool reads, bool writes, bool acquire, bool release);

    // Called when a block begins: synchronization within the block starts from an empty state.
    void begin_block() {
        // A thread may still refer to the releases.
        if (!strong_.empty()) retired_.push_back(std::move(strong_));
        strong_.clear();
    }

private:
    struct Word {
        Stamp write, first_read, last_read;
        uint32_t flags;
        uint32_t line;  // of the write
    };
    static constexpr uint32_t kReadOnly = 1, kStrong = 2;

    // Words are 4 bytes until a smaller access occurs; then that page is recorded by bytes.
    static constexpr unsigned kPageBits = 12;
    struct Page {
        std::unique_ptr<Word[]> words;
        uint8_t shift = 2;
    };
    struct Span {
        Word *first;
        unsigned count, unit;
    };
    struct Strong {
        Stamp first_read, last_read, first_write, last_write;
        Log log;
    };

    Span words(uint64_t offset, unsigned size) {
        Page &page = pages_[offset >> kPageBits];
        if (!page.words || (size < 4 && page.shift != 0)) prepare(page, size);
        const uint64_t within = offset & ((1u << kPageBits) - 1);
        const unsigned count = size >> page.shift;
        return {&page.words[within >> page.shift], count == 0 ? 1 : count, 1u << page.shift};
    }

    // `strong`: the earlier access was atomic, and may be the release itself.
    bool ordered(const Stamp &before, const Accessor &by, bool strong = false) const {
        if (before.who == by.who || before.who == 0) return true;
        if (before.block() == by.block()) {
            if (before.time < by.barrier) return true;
        } else if (shared_) {
            return true;
        }
        return ordered_otherwise(before, by, strong);
    }
    bool ordered_otherwise(const Stamp &before, const Accessor &by, bool strong) const;

    // Two readers represent all: the first, and another one, preferably of another warp or block.
    void remember(Stamp &first, Stamp &last, const Accessor &by) const {
        if (first.who == by.who || ordered(first, by)) {
            first = by.stamp();
            return;
        }
        const bool keep = last.who != 0 && last.who != by.who && (first.who - 1) >> 5 != (last.who - 1) >> 5 &&
                          (first.who - 1) >> 5 == (by.who - 1) >> 5 && !ordered(last, by);
        if (!keep) last = by.stamp();
    }

    void prepare(Page &page, unsigned size);
    // `at` is the start of the record's bytes, `offset` the start of the access.
    void read_slowly(const Accessor &by, const Word &word, uint64_t at, uint64_t offset, unsigned size) const;
    void write_slowly(const Accessor &by, const Word &word, uint64_t at, uint64_t offset, unsigned size) const;
    static void hand_on(Accessor &by, Log &log, bool reads, bool writes, bool acquire, bool release);
    const Strong *strong_at(const Word &word, uint64_t at) const;
    [[noreturn]] void race(const Accessor &by, const char *does, const Stamp &other, const char *did,
                           unsigned other_line, uint64_t offset, unsigned size) const;

    std::vector<Page> pages_;
    std::unordered_map<uint64_t, Strong> strong_;  // by the offset of the 4-byte word
    std::vector<std::unordered_map<uint64_t, Strong>> retired_;
    bool shared_;
    std::string name_;
};

}  // namespace fcm::ptx
