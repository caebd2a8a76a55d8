// Integer arithmetic as PTX defines it: results wrap, and shift amounts are clamped. Operands and results are register bits.
#pragma once

#include <algorithm>

#include "bits.h"
#include "fault.h"
#include "types.h"

namespace fcm::ptx::whole {

template <unsigned B>
struct Add {
    static uint64_t of(uint64_t a, uint64_t b) { return (a + b) & low_bits(B); }
};
template <unsigned B>
struct Sub {
    static uint64_t of(uint64_t a, uint64_t b) { return (a - b) & low_bits(B); }
};
template <unsigned B>
struct Neg {
    static uint64_t of(uint64_t a) { return (0 - a) & low_bits(B); }
};
template <unsigned B>
struct Not {
    static uint64_t of(uint64_t a) { return ~a & low_bits(B); }
};
template <unsigned B>
struct LogicalNot {
    static uint64_t of(uint64_t a) { return a == 0; }
};
struct And {
    static uint64_t of(uint64_t a, uint64_t b) { return a & b; }
};
struct Or {
    static uint64_t of(uint64_t a, uint64_t b) { return a | b; }
};
struct Xor {
    static uint64_t of(uint64_t a, uint64_t b) { return a ^ b; }
};

template <class T>
struct Abs {
    static uint64_t of(uint64_t a) {
        return value<T>(a) < 0 ? (0 - a) & low_bits(sizeof(T) * 8) : a;
    }
};
template <class T>
struct Min {
    static uint64_t of(uint64_t a, uint64_t b) { return raw<T>(std::min(value<T>(a), value<T>(b))); }
};
template <class T>
struct Max {
    static uint64_t of(uint64_t a, uint64_t b) { return raw<T>(std::max(value<T>(a), value<T>(b))); }
};

// add.sat.s32 and sub.sat.s32
inline uint64_t clamped(int64_t v) {
    return raw<int32_t>(static_cast<int32_t>(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX)));
}
struct AddClamped {
    static uint64_t of(uint64_t a, uint64_t b) {
        return clamped(static_cast<int64_t>(value<int32_t>(a)) + value<int32_t>(b));
    }
};
struct SubClamped {
    static uint64_t of(uint64_t a, uint64_t b) {
        return clamped(static_cast<int64_t>(value<int32_t>(a)) - value<int32_t>(b));
    }
};

template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
    std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <class T>
inline Wide<T> product(uint64_t a, uint64_t b) {
    return static_cast<Wide<T>>(value<T>(a)) * static_cast<Wide<T>>(value<T>(b));
}

template <unsigned B>
struct MulLow {
    static uint64_t of(uint64_t a, uint64_t b) { return (a * b) & low_bits(B); }
};
template <class T>
struct MulHigh {
    static uint64_t of(uint64_t a, uint64_t b) {
        return static_cast<uint64_t>(product<T>(a, b) >> (sizeof(T) * 8)) & low_bits(sizeof(T) * 8);
    }
};
template <class T>
struct MulWide {
    static uint64_t of(uint64_t a, uint64_t b) {
        return static_cast<uint64_t>(product<T>(a, b)) & low_bits(sizeof(T) * 16);
    }
};
template <unsigned B>
struct MadLow {
    static uint64_t of(uint64_t a, uint64_t b, uint64_t c) { return (a * b + c) & low_bits(B); }
};
template <class T>
struct MadHigh {
    static uint64_t of(uint64_t a, uint64_t b, uint64_t c) {
        return (MulHigh<T>::of(a, b) + c) & low_bits(sizeof(T) * 8);
    }
};
template <class T>
struct MadWide {
    static uint64_t of(uint64_t a, uint64_t b, uint64_t c) {
        return (MulWide<T>::of(a, b) + c) & low_bits(sizeof(T) * 16);
    }
};
template <class T>
struct AbsoluteDifference {
    static uint64_t of(uint64_t a, uint64_t b, uint64_t c) {
        const uint64_t difference = value<T>(a) < value<T>(b) ? b - a : a - b;
        return (c + difference) & low_bits(sizeof(T) * 8);
    }
};

// PTX leaves division by zero undefined; a kernel that divides by zero is wrong.
template <class T>
inline void divisible(uint64_t b) {
    if (value<T>(b) == 0) throw Mistake("divides a whole number by zero");
}
template <class T>
struct Div {
    static uint64_t of(uint64_t a, uint64_t b) {
        divisible<T>(b);
        // The only quotient that overflows wraps to itself; the host would trap.
        if constexpr (std::is_signed_v<T>) {
            if (value<T>(b) == -1) return (0 - a) & low_bits(sizeof(T) * 8);
        }
        return raw<T>(static_cast<T>(value<T>(a) / value<T>(b)));
    }
};
template <class T>
struct Rem {
    static uint64_t of(uint64_t a, uint64_t b) {
        divisible<T>(b);
        if constexpr (std::is_signed_v<T>) {
            if (value<T>(b) == -1) return 0;
        }
        return raw<T>(static_cast<T>(value<T>(a) % value<T>(b)));
    }
};

// The shift amount has 32 bits for every type, and is clamped to the width instead of wrapping.
template <unsigned B>
struct ShiftLeft {
    static uint64_t of(uint64_t a, uint64_t b) {
        const uint32_t amount = value<uint32_t>(b);
        return amount >= B ? 0 : (a << amount) & low_bits(B);
    }
};
template <class T>
struct ShiftRight {
    static uint64_t of(uint64_t a, uint64_t b) {
        constexpr unsigned width = sizeof(T) * 8;
        const uint32_t amount = value<uint32_t>(b);
        if (amount >= width) return std::is_signed_v<T> && value<T>(a) < 0 ? low_bits(width) : 0;
        return raw<T>(static_cast<T>(value<T>(a) >> amount));
    }
};

// shf: 32 bits of the 64-bit value with b as high and a as low part.
template <bool Left, bool Wrap>
struct Funnel {
    static uint64_t of(uint64_t a, uint64_t b, uint64_t c) {
        const uint64_t both = b << 32 | a;
        const uint32_t amount = Wrap ? value<uint32_t>(c) & 31 : std::min<uint32_t>(value<uint32_t>(c), 32);
        return (Left ? both >> (32 - amount) : both >> amount) & low_bits(32);
    }
};

template <unsigned B>
struct CountOnes {
    static uint64_t of(uint64_t a) { return static_cast<uint64_t>(__builtin_popcountll(a)); }
};
template <unsigned B>
struct LeadingZeros {
    static uint64_t of(uint64_t a) { return a == 0 ? B : static_cast<uint64_t>(__builtin_clzll(a)) - (64 - B); }
};
template <unsigned B>
struct Reverse {
    static uint64_t of(uint64_t a) {
        uint64_t result = 0;
        for (unsigned i = 0; i < B; ++i) result |= (a >> i & 1) << (B - 1 - i);
        return result;
    }
};
// The highest bit that differs from the sign (or is set); ~0 if there is none.
template <class T, bool Shift>
struct FindBit {
    static uint64_t of(uint64_t a) {
        constexpr unsigned width = sizeof(T) * 8;
        if (std::is_signed_v<T> && value<T>(a) < 0) a = ~a & low_bits(width);
        if (a == 0) return low_bits(32);
        const uint64_t zeros = LeadingZeros<width>::of(a);
        return Shift ? zeros : width - 1 - zeros;
    }
};

// bfe: `length` bits starting at `start`; bits past the end are copies of the sign.
template <class T>
struct Extract {
    static uint64_t of(uint64_t a, uint64_t b, uint64_t c) {
        constexpr unsigned width = sizeof(T) * 8;
        const unsigned start = b & 0xff, length = c & 0xff;
        if (length == 0) return 0;
        const unsigned last = std::min(start + length - 1, width - 1);
        const bool sign = std::is_signed_v<T> && (a >> last & 1) != 0;
        const uint64_t field = start >= width ? 0 : a >> start & low_bits(length);
        const unsigned real = start >= width ? 0 : std::min(length, width - start);
        return (sign ? field | ~low_bits(real) : field) & low_bits(width);
    }
};
// bfi
template <unsigned B>
struct Insert {
    static uint64_t of(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
        const unsigned start = c & 0xff, length = d & 0xff;
        if (start >= B) return b;
        const uint64_t mask = low_bits(length) << start & low_bits(B);
        return (b & ~mask) | (a << start & mask);
    }
};

// lop3: bit k of the table is the result for inputs whose bits form the number k.
inline uint64_t logic(uint64_t a, uint64_t b, uint64_t c, unsigned table) {
    uint64_t result = 0;
    for (unsigned k = 0; k < 8; ++k) {
        if ((table >> k & 1) == 0) continue;
        result |= ((k & 4) ? a : ~a) & ((k & 2) ? b : ~b) & ((k & 1) ? c : ~c);
    }
    return result & low_bits(32);
}

enum class Permutation { plain, f4e, b4e, rc8, ecl, ecr, rc16 };
inline uint64_t permute(uint64_t a, uint64_t b, uint64_t c, Permutation mode) {
    const uint64_t bytes = b << 32 | (a & low_bits(32));
    const unsigned s = c & 3;
    uint64_t result = 0;
    for (unsigned i = 0; i < 4; ++i) {
        unsigned pick = 0;
        bool spread = false;
        switch (mode) {
            case Permutation::plain:
                pick = c >> (4 * i) & 7;
                spread = (c >> (4 * i) & 8) != 0;
                break;
            case Permutation::f4e: pick = s + i; break;
            case Permutation::b4e: pick = (s + 8 - i) & 7; break;
            case Permutation::rc8: pick = s; break;
            case Permutation::ecl: pick = std::max(i, s); break;
            case Permutation::ecr: pick = std::min(i, s); break;
            case Permutation::rc16: pick = (s & 1) * 2 + (i & 1); break;
        }
        uint64_t byte = bytes >> (8 * pick) & 0xff;
        if (spread) byte = (byte & 0x80) ? 0xff : 0;
        result |= byte << (8 * i);
    }
    return result;
}

}  // namespace fcm::ptx::whole
