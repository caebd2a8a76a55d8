// Canaries lie around every allocation. Reading one gives NaN, so that it spoils a result; each word differs, so that
// writing one shows even where the value written is a canary from next door.
#pragma once

#include <cstddef>

namespace cudasim::canary {

constexpr int kFresh = 0xff;  // a byte of memory nobody has written: NaN as float and as double, -1 as an integer

void fill(unsigned char *from, unsigned char *to);

// The first byte in [from, to) that is not what fill() put there, or nullptr.
const unsigned char *damaged(const unsigned char *from, const unsigned char *to);

}  // namespace cudasim::canary
