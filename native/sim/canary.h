// Canaries surround every allocation. A canary reads as NaN, so that reading one spoils a result. Each word differs, so that
// a write is detected even if the value written is a neighbouring canary.
#pragma once

#include <cstddef>

namespace cudasim::canary {

constexpr int kFresh = 0xff;  // a byte of unwritten memory: NaN as float and as double, -1 as an integer

void fill(unsigned char *from, unsigned char *to);

// Returns the first byte in [from, to) that differs from what fill() wrote, or nullptr.
const unsigned char *damaged(const unsigned char *from, const unsigned char *to);

}  // namespace cudasim::canary
