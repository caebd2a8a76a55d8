// Registers hold 64 bits; a narrower value is zero-extended. These functions read and write a register as a C++ type.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace fcm::ptx {

template <class T>
inline T value(uint64_t bits) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(bits);
    } else if constexpr (sizeof(T) == 4) {
        const uint32_t low = static_cast<uint32_t>(bits);
        T result;
        std::memcpy(&result, &low, sizeof result);
        return result;
    } else {
        T result;
        std::memcpy(&result, &bits, sizeof result);
        return result;
    }
}

template <class T>
inline uint64_t raw(T v) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<std::make_unsigned_t<T>>(v);
    } else if constexpr (sizeof(T) == 4) {
        uint32_t result;
        std::memcpy(&result, &v, sizeof result);
        return result;
    } else {
        uint64_t result;
        std::memcpy(&result, &v, sizeof result);
        return result;
    }
}

}  // namespace fcm::ptx
