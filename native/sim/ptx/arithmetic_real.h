// Floating-point arithmetic as PTX defines it: IEEE with the rounding mode of the instruction. A computed float NaN is the
// canonical NaN of a GPU, 0x7fffffff; the payload of a double NaN is preserved.
#pragma once

#include <cmath>
#include <limits>

#include "bits.h"
#include "rounding.h"

namespace fcm::ptx::real {

constexpr uint64_t kFloatNan = 0x7fffffff;
constexpr uint64_t kDoubleNan = 0x7fffffffffffffff;

template <class T>
inline uint64_t canonical_nan() {
    return sizeof(T) == 4 ? kFloatNan : kDoubleNan;
}

// .ftz: a subnormal is flushed to zero with the same sign.
template <bool Flush, class T>
inline T flushed(T v) {
    if constexpr (Flush) {
        if (std::fabs(v) < std::numeric_limits<T>::min()) return std::copysign(T(0), v);
    }
    return v;
}

// .sat: clamps to [0, 1]; NaN becomes 0.
template <class T>
inline T saturated(T v) {
    if (!(v > T(0))) return T(0);
    return v > T(1) ? T(1) : v;
}

struct Style {
    Rounding rounding = Rounding::nearest;
    bool flush = false;
    bool saturate = false;
};

template <class T, bool Flush>
inline uint64_t result(T v) {
    v = flushed<Flush>(v);
    if constexpr (sizeof(T) == 4) {
        if (v != v) return kFloatNan;
    }
    return raw(v);
}

// Round to nearest, the mode that kernels normally use.
template <class T, bool Flush>
struct Add {
    static uint64_t of(uint64_t a, uint64_t b) {
        return result<T, Flush>(flushed<Flush>(value<T>(a)) + flushed<Flush>(value<T>(b)));
    }
};
template <class T, bool Flush>
struct Sub {
    static uint64_t of(uint64_t a, uint64_t b) {
        return result<T, Flush>(flushed<Flush>(value<T>(a)) - flushed<Flush>(value<T>(b)));
    }
};
template <class T, bool Flush>
struct Mul {
    static uint64_t of(uint64_t a, uint64_t b) {
        return result<T, Flush>(flushed<Flush>(value<T>(a)) * flushed<Flush>(value<T>(b)));
    }
};
template <class T, bool Flush>
struct Div {
    static uint64_t of(uint64_t a, uint64_t b) {
        return result<T, Flush>(flushed<Flush>(value<T>(a)) / flushed<Flush>(value<T>(b)));
    }
};
template <class T, bool Flush>
struct Fma {
    static uint64_t of(uint64_t a, uint64_t b, uint64_t c) {
        return result<T, Flush>(
            std::fma(flushed<Flush>(value<T>(a)), flushed<Flush>(value<T>(b)), flushed<Flush>(value<T>(c))));
    }
};
template <class T, bool Flush>
struct Sqrt {
    static uint64_t of(uint64_t a) { return result<T, Flush>(std::sqrt(flushed<Flush>(value<T>(a)))); }
};
template <class T, bool Flush>
struct Reciprocal {
    static uint64_t of(uint64_t a) { return result<T, Flush>(T(1) / flushed<Flush>(value<T>(a))); }
};

// All other rounding modes, and .sat.
template <class T>
inline T read(uint64_t bits, Style style) {
    return style.flush ? flushed<true>(value<T>(bits)) : value<T>(bits);
}
template <class T>
inline uint64_t write(T v, Style style) {
    if (style.saturate) v = saturated(v);
    return style.flush ? result<T, true>(v) : result<T, false>(v);
}

// These only affect the sign bit, also of a NaN. The minimum and the maximum below must also order -0 before +0.
template <class T, bool Flush>
struct Abs {
    static uint64_t of(uint64_t a) { return raw(std::fabs(flushed<Flush>(value<T>(a)))); }
};
template <class T, bool Flush>
struct Neg {
    static uint64_t of(uint64_t a) { return raw(-flushed<Flush>(value<T>(a))); }
};
template <class T>
struct CopySign {
    // The sign is taken from the first operand, unlike in C's copysign.
    static uint64_t of(uint64_t a, uint64_t b) { return raw(std::copysign(value<T>(b), value<T>(a))); }
};

template <class T, bool Flush, bool Least, bool KeepNan>
struct Extreme {
    static uint64_t of(uint64_t a, uint64_t b) {
        const T x = flushed<Flush>(value<T>(a)), y = flushed<Flush>(value<T>(b));
        const bool x_nan = x != x, y_nan = y != y;
        if (x_nan || y_nan) {
            if (KeepNan || (x_nan && y_nan)) return canonical_nan<T>();
            return raw(x_nan ? y : x);
        }
        if (x == y) return raw(std::signbit(x) == Least ? x : y);
        return raw((x < y) == Least ? x : y);
    }
};

}  // namespace fcm::ptx::real
