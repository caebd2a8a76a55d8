#include "canary.h"

#include <cstdint>

#include "sanitizer.h"

namespace cudasim::canary {

namespace {

uint32_t word(uintptr_t address) {
    return 0x7ff00001u | ((static_cast<uint32_t>(address >> 2) * 2654435761u) & 0xfffffu);
}

// An allocation may end at any byte, so the canary after it may start in the middle of a word.
unsigned char byte(uintptr_t address) {
    return static_cast<unsigned char>(word(address) >> (8 * (address & 3)));
}

uintptr_t number(const void *address) { return reinterpret_cast<uintptr_t>(address); }

}  // namespace

CUDASIM_UNCHECKED void fill(unsigned char *from, unsigned char *to) {
    for (; from < to && number(from) % 4 != 0; ++from) *from = byte(number(from));
    for (; to - from >= 4; from += 4) *reinterpret_cast<uint32_t *>(from) = word(number(from));
    for (; from < to; ++from) *from = byte(number(from));
}

CUDASIM_UNCHECKED const unsigned char *damaged(const unsigned char *from, const unsigned char *to) {
    while (from < to) {
        if (number(from) % 4 == 0 && to - from >= 4 && *reinterpret_cast<const uint32_t *>(from) == word(number(from))) {
            from += 4;
        } else if (*from != byte(number(from))) {
            return from;
        } else {
            ++from;
        }
    }
    return nullptr;
}

}  // namespace cudasim::canary
