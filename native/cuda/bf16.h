// Elements of matrices in memory: float, or bfloat16 with the range of a float and 8 bits.
#pragma once

#include <cstdint>

#include "device.h"

namespace fcm {

struct Bf16 {
    uint16_t bits;
};

__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(Bf16 value) { return __uint_as_float(static_cast<unsigned>(value.bits) << 16); }

// Rounded to the nearest, ties to even; what is below the normal range becomes zero, as on a CPU.
template <class Element>
__device__ __forceinline__ Element rounded_to(float value);
template <>
__device__ __forceinline__ float rounded_to<float>(float value) {
    return value;
}
template <>
__device__ __forceinline__ Bf16 rounded_to<Bf16>(float value) {
    const unsigned bits = __float_as_uint(value);
    if ((bits & 0x7f800000u) == 0) return {static_cast<uint16_t>(bits >> 16 & 0x8000u)};
    // Half a unit would turn the largest NaN into zero.
    if (not_finite(value)) return {static_cast<uint16_t>(bits >> 16 | ((bits & 0x7fffffu) != 0 ? 0x40u : 0u))};
    return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

}  // namespace fcm
