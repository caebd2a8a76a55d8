// The order in which threads run.
#pragma once

#include <cstdint>

namespace fcm::ptx {

// Each fixed order hides bugs that another one shows; the random order also switches threads between any two memory
// accesses.
struct Order {
    enum class Kind { forward, reverse, random };
    Kind kind = Kind::forward;
    uint64_t seed = 0;
};

class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next() {
        // splitmix64
        uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    uint64_t below(uint64_t bound) { return next() % bound; }

private:
    uint64_t state_;
};

}  // namespace fcm::ptx
