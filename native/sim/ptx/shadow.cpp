#include "shadow.h"

#include <algorithm>

#include "fault.h"

namespace fcm::ptx {

bool Release::covers(const Stamp &access, bool strong) const {
    if (access.block() != stamp.block()) return false;
    if (access.time < barrier) return true;
    if (access.who == stamp.who) return access.time < stamp.time || (strong && access.time <= itself);
    return access.thread() / 32 == stamp.thread() / 32 && access.time < seen[access.thread() % 32];
}

void Knowledge::add(const Log *log, size_t length) {
    for (auto &[known, known_length] : logs_) {
        if (known == log) {
            known_length = std::max(known_length, length);
            return;
        }
    }
    logs_.emplace_back(log, length);
}

void Knowledge::join(const Knowledge &other) {
    for (const auto &[log, length] : other.logs_) add(log, length);
}

bool Knowledge::covers(const Stamp &access, bool strong) const {
    for (const auto &[log, length] : logs_) {
        const auto found = log->by_block.find(access.block());
        if (found == log->by_block.end()) continue;
        for (const size_t index : found->second) {
            if (index < length && log->releases[index].covers(access, strong)) return true;
        }
    }
    return false;
}

Shadow::Shadow(uint64_t bytes, bool shared, std::string name)
    : pages_((bytes >> kPageBits) + 1), shared_(shared), name_(std::move(name)) {}

bool Shadow::ordered_otherwise(const Stamp &before, const Accessor &by, bool strong) const {
    if (before.block() == by.block() && before.thread() / 32 == by.warp() &&
        before.time < by.seen[before.thread() % 32]) {
        return true;
    }
    return !by.known.empty() && by.known.covers(before, strong);
}

void Shadow::prepare(Page &page, unsigned size) {
    constexpr size_t bytes = 1u << kPageBits;
    if (size >= 4) {
        page.words = std::make_unique<Word[]>(bytes / 4);
        return;
    }
    auto fine = std::make_unique<Word[]>(bytes);
    if (page.words) {
        // The record of a word is copied to its bytes.
        for (size_t i = 0; i < bytes; ++i) fine[i] = page.words[i / 4];
    }
    page.words = std::move(fine);
    page.shift = 0;
}

void Shadow::race(const Accessor &by, const char *does, const Stamp &other, const char *did, unsigned other_line,
                  uint64_t offset, unsigned size) const {
    std::string words = "race: ";
    words += does;
    words += " " + std::to_string(size) + " bytes at " + name_ + "+" + std::to_string(offset) + " that thread " +
             std::to_string(other.thread()) + " of ";
    words += other.block() == by.block() ? "this block" : "block " + std::to_string(other.block());
    words += std::string(" ") + did;
    if (other_line != 0) words += " in line " + std::to_string(other_line);
    words += other.block() == by.block() ? ", with no barrier between the two"
        : ", and nothing orders blocks of a launch";
    throw Mistake(words);
}

const Shadow::Strong *Shadow::strong_at(const Word &word, uint64_t at) const {
    if (!(word.flags & kStrong)) return nullptr;
    // The flag may be from an earlier block that used this shared memory.
    const auto found = strong_.find(at & ~3ull);
    return found == strong_.end() ? nullptr : &found->second;
}

void Shadow::read_slowly(const Accessor &by, const Word &word, uint64_t at, uint64_t offset, unsigned size) const {
    if (!ordered(word.write, by)) race(by, "reads", word.write, "writes", word.line, offset, size);
    if (const Strong *strong = strong_at(word, at)) {
        for (const Stamp &other : {strong->first_write, strong->last_write}) {
            if (!ordered(other, by, true)) {
                race(by, "reads without an atomic", other, "writes atomically", 0, offset, size);
            }
        }
    }
}

void Shadow::write_slowly(const Accessor &by, const Word &word, uint64_t at, uint64_t offset, unsigned size) const {
    if (word.flags & kReadOnly) {
        throw Mistake("writes " + std::to_string(size) + " bytes at " + name_ + "+" + std::to_string(offset) +
            " that were read as read-only (ld.global.nc) in the same launch");
    }
    if (!ordered(word.write, by)) race(by, "writes", word.write, "writes", word.line, offset, size);
    for (const Stamp &other : {word.first_read, word.last_read}) {
        if (!ordered(other, by)) race(by, "writes", other, "reads", 0, offset, size);
    }
    if (const Strong *strong = strong_at(word, at)) {
        for (const Stamp &other : {strong->first_write, strong->last_write, strong->first_read, strong->last_read}) {
            if (!ordered(other, by, true)) {
                race(by, "writes without an atomic", other, "uses atomically", 0, offset, size);
            }
        }
    }
}

void Shadow::read_only(const Accessor &by, uint64_t offset, unsigned size) {
    const Span span = words(offset, size);
    for (unsigned i = 0; i < span.count; ++i) {
        Word &word = span.first[i];
        if (word.write.who != 0) {
            throw Mistake("reads " + std::to_string(size) + " bytes at " + name_ + "+" + std::to_string(offset) +
                " as read-only (ld.global.nc) that line " + std::to_string(word.line) + " wrote in the same launch");
        }
        word.flags |= kReadOnly;
        if (word.flags & kStrong) read_slowly(by, word, offset + i * span.unit, offset, size);
    }
}

void Shadow::strong(Accessor &by, uint64_t offset, unsigned size, bool reads, bool writes, bool acquire, bool release) {
    const Span span = words(offset, size);
    for (unsigned i = 0; i < span.count; ++i) {
        Word &word = span.first[i];
        const uint64_t at = offset + i * span.unit;
        if ((word.flags & kReadOnly) && writes) write_slowly(by, word, at, offset, size);
        if (!ordered(word.write, by)) {
            race(by, "uses atomically", word.write, "writes without one", word.line, offset, size);
        }
        if (writes) {
            for (const Stamp &other : {word.first_read, word.last_read}) {
                if (!ordered(other, by)) race(by, "writes atomically", other, "reads without one", 0, offset, size);
            }
        }
        word.flags |= kStrong;
        Strong &strong = strong_[at & ~3ull];
        if (reads) remember(strong.first_read, strong.last_read, by);
        if (writes) remember(strong.first_write, strong.last_write, by);
        // One log per variable: that of its first word.
        if (i == 0) hand_on(by, strong.log, reads, writes, acquire, release);
    }
}

void Shadow::hand_on(Accessor &by, Log &log, bool reads, bool writes, bool acquire, bool release) {
    if (reads) {
        Knowledge &into = acquire ? by.known : by.pending;
        if (!log.releases.empty()) into.add(&log, log.releases.size());
        into.join(log.behind);
    }
    if (!writes || !(by.fence || release)) return;
    Release one;
    if (release) {
        one.stamp = {by.who, by.time + 1};
        one.barrier = by.barrier;
        one.seen = by.seen;
    } else {
        one = *by.fence;
    }
    one.itself = by.time;
    log.by_block[by.block()].push_back(log.releases.size());
    log.releases.push_back(one);
    log.behind.join(by.known);
}

}  // namespace fcm::ptx
