// The order in which the threads of a block, and the blocks, run. CUDA guarantees none, so a test tries several orders.
#pragma once

#include <cstdint>
#include <numeric>

#include "settings.h"

namespace cudasim {

// SplitMix64.
inline uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// A set of threads of one block with fast access to the lowest, the highest and the next element.
class ThreadSet {
   public:
    bool empty() const { return words_ == 0; }
    void clear() {
        for (uint64_t &bits : bits_) bits = 0;
        words_ = 0;
    }
    void fill(int count) {
        clear();
        for (int word = 0; word * 64 < count; ++word) {
            const int left = count - word * 64;
            bits_[word] = left >= 64 ? ~uint64_t{0} : (uint64_t{1} << left) - 1;
            words_ |= 1u << word;
        }
    }
    void add(int thread) {
        bits_[thread >> 6] |= uint64_t{1} << (thread & 63);
        words_ |= 1u << (thread >> 6);
    }
    void remove(int thread) {
        uint64_t &bits = bits_[thread >> 6];
        bits &= ~(uint64_t{1} << (thread & 63));
        if (bits == 0) words_ &= ~(1u << (thread >> 6));
    }
    bool has(int thread) const { return (bits_[thread >> 6] >> (thread & 63) & 1) != 0; }
    uint32_t warp(int number) const { return static_cast<uint32_t>(bits_[number >> 1] >> (32 * (number & 1))); }

    // These require a set that is not empty.
    int lowest() const {
        const int word = __builtin_ctz(words_);
        return word * 64 + __builtin_ctzll(bits_[word]);
    }
    int highest() const {
        const int word = 31 - __builtin_clz(words_);
        return word * 64 + 63 - __builtin_clzll(bits_[word]);
    }
    // The first thread at or after `thread`, or else the lowest.
    int next(int thread) const {
        const int word = thread >> 6;
        const uint64_t here = bits_[word] & (~uint64_t{0} << (thread & 63));
        if (here != 0) return word * 64 + __builtin_ctzll(here);
        const uint32_t later = words_ & ~((2u << word) - 1);
        if (later == 0) return lowest();
        const int found = __builtin_ctz(later);
        return found * 64 + __builtin_ctzll(bits_[found]);
    }

   private:
    uint64_t bits_[kMostThreads / 64] = {};
    uint32_t words_ = 0;
};

class Order {
   public:
    Order(OrderKind kind, uint64_t seed) : kind_(kind), seed_(seed) {}

    // A random order depends on the block and not on the OS thread that runs it, so that a failure is reproducible.
    void start_block(uint64_t block) { state_ = mix(seed_ ^ mix(block)); }

    int pick(const ThreadSet &ready, int threads) {
        switch (kind_) {
            case OrderKind::forward: return ready.lowest();
            case OrderKind::reverse: return ready.highest();
            default: break;
        }
        state_ = mix(state_);
        return ready.next(static_cast<int>((state_ >> 32) * static_cast<uint64_t>(threads) >> 32));
    }

    // The i-th block to run of `count`; every order is a permutation.
    uint64_t block(uint64_t i, uint64_t count) const {
        switch (kind_) {
            case OrderKind::forward: return i;
            case OrderKind::reverse: return count - 1 - i;
            default: break;
        }
        uint64_t step = mix(seed_) % count;
        while (std::gcd(step, count) != 1) ++step;
        return static_cast<uint64_t>((static_cast<unsigned __int128>(i) * step + mix(seed_ + 1)) % count);
    }

   private:
    OrderKind kind_;
    uint64_t seed_;
    uint64_t state_ = 0;
};

}  // namespace cudasim
