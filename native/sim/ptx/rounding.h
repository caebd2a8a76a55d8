// Floating-point arithmetic with rounding modes other than to nearest. Slow: the host's mode is switched and restored.
#pragma once

#include <cstdint>

namespace fcm::ptx {

enum class Rounding : uint8_t { nearest, zero, down, up };

namespace rounded {

template <class T>
T add(T a, T b, Rounding rounding);
template <class T>
T multiply(T a, T b, Rounding rounding);
template <class T>
T divide(T a, T b, Rounding rounding);
template <class T>
T root(T a, Rounding rounding);
template <class T>
T fused(T a, T b, T c, Rounding rounding);
// From double, int64_t or uint64_t to float, and from the integers to double.
template <class To, class From>
To convert(From a, Rounding rounding);

}  // namespace rounded
}  // namespace fcm::ptx
