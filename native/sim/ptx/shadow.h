// The race detector. Beside each word of memory it keeps who last wrote it, and two who read it; an access is a race
// if another thread's conflicting one is on record and nothing orders the two: no barrier of the block, no
// bar.warp.sync of both lanes, no fence and atomic handed from one to the other. Shuffles and votes order nothing:
// CUDA gives them no memory ordering.
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

// Time is counted in a block: every barrier, warp barrier and fence begins a new moment.
struct Stamp {
    uint32_t who = 0;  // block * 1024 + thread + 1; 0: nobody
    uint32_t time = 0;

    uint32_t block() const { return (who - 1) >> 10; }
    uint32_t thread() const { return (who - 1) & 1023; }
};
constexpr uint64_t kMostBlocks = (1u << 22) - 1;

// What a thread had behind it when it released an atomic variable.
struct Release {
    Stamp stamp;  // its own accesses before that time
    uint32_t barrier = 0;  // those of its whole block before that barrier
    std::array<uint32_t, 32> seen{};  // those of its warp's lanes before those times
    uint32_t itself = 0;              // and of its own atomic accesses those up to this one

    bool covers(const Stamp &access, bool strong) const;
};

struct Log;

// Logs of releases, each up to a length, that a thread has acquired.
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

// Everything released to one atomic variable, in order.
struct Log {
    std::vector<Release> releases;
    std::unordered_map<uint32_t, std::vector<size_t>> by_block;
    Knowledge behind;  // what those who released knew
};

// A thread, as the detector knows it.
struct Accessor {
    uint32_t who = 0, time = 0;
    uint32_t barrier = 0;             // time of the last barrier of the block
    std::array<uint32_t, 32> seen{};  // time of the last warp barrier with each lane
    Knowledge known;
    Knowledge pending;  // read from atomics, ordered by the next fence only
    std::unique_ptr<Release> fence;

    uint32_t block() const { return (who - 1) >> 10; }
    uint32_t warp() const { return ((who - 1) & 1023) >> 5; }
    Stamp stamp() const { return {who, time}; }
};

enum class Strength : uint8_t { weak, read_only, strong };

class Shadow {
public:
    // `shared`: memory of one block at a time, where other blocks' records are of no interest.
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

    // ld.global.nc: nobody may write there in the whole launch, not even this thread.
    void read_only(const Accessor &by, uint64_t offset, unsigned size);

    // An access that is atomic: conflicts with those that are not. Hands on what is ordered by fences.
    void strong(Accessor &by, uint64_t offset, unsigned size, bool reads, bool writes, bool acquire, bool release);

    // For a block that begins: what its threads hand each other starts from nothing.
    void begin_block() {
        // Somebody may still know what was released there.
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

    // Words are 4 bytes until something smaller is touched; then that page is kept by bytes.
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

    // `strong`: the earlier access was atomic, and may be the very one that released.
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

    // Two readers stand for all: the first, and another, of another warp or block if there is one.
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
    // `at` is where the record's bytes begin, `offset` where the access does.
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
