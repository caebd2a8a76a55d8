// cvt between integers and floating point of all widths.
#pragma once

#include "arithmetic_real.h"
#include "types.h"

namespace fcm::ptx::conversion {

enum class ToWhole : uint8_t { nearest_even, zero, down, up };

template <class T>
inline T rounded_to_whole(T v, ToWhole rounding) {
    switch (rounding) {
        case ToWhole::zero: return std::trunc(v);
        case ToWhole::down: return std::floor(v);
        case ToWhole::up: return std::ceil(v);
        case ToWhole::nearest_even: break;
    }
    // The host rounds to nearest unless rounding.cpp has changed the mode.
    return std::nearbyint(v);
}

// From floating point to an integer of any width: clamps to the range. NaN becomes 0, or with 64 bits on either side the highest
// bit alone.
uint64_t real_to_whole(double v, ToWhole rounding, Type from, Type to);

// The other 16-bit formats and tf32, as bit patterns.
uint64_t to_half(double v, Rounding rounding);
double from_half(uint64_t bits);
uint64_t to_brain(float v, Rounding rounding);
uint64_t to_tensor(float v);

// Sign- or zero-extends the low `bits` of a register to 64 bits.
inline uint64_t extended(uint64_t v, Type type) {
    if (type.bits >= 64) return v;
    v &= low_bits(type.bits);
    if (type.kind == Kind::integer && (v >> (type.bits - 1) & 1)) v |= ~low_bits(type.bits);
    return v;
}

// From an integer to a narrower one or one of different signedness: truncated, or clamped with .sat.
uint64_t whole_to_whole(uint64_t v, Type from, Type to, bool saturate);

}  // namespace fcm::ptx::conversion
