#include "arithmetic_convert.h"

#include <cstring>

namespace fcm::ptx::conversion {

uint64_t real_to_whole(double v, ToWhole rounding, Type from, Type to) {
    if (v != v) return from.bits == 64 || to.bits == 64 ? 1ull << (to.bits - 1u) : 0;
    v = rounded_to_whole(v, rounding);
    if (to.kind == Kind::integer) {
        // The bounds are powers of two, which double can represent; one less than the upper bound it may not.
        const double bound = std::ldexp(1.0, to.bits - 1);
        if (v < -bound) return (1ull << (to.bits - 1)) & low_bits(to.bits);
        if (v >= bound) return low_bits(to.bits - 1u);
        return static_cast<uint64_t>(static_cast<int64_t>(v)) & low_bits(to.bits);
    }
    if (v <= 0) return 0;
    if (v >= std::ldexp(1.0, to.bits)) return low_bits(to.bits);
    return static_cast<uint64_t>(v);
}

namespace {

// Rounds to a format with `fraction` bits of fraction and the smallest normal exponent `least`. Returns the value in units
// of the last place, so that a carry into the exponent is handled without a special case.
double to_steps(double magnitude, int fraction, int least, Rounding rounding, bool negative, int &exponent) {
    std::frexp(magnitude, &exponent);
    exponent = std::max(exponent - 1, least);
    const double steps = std::ldexp(magnitude, fraction - exponent);
    const bool away = (rounding == Rounding::up && !negative) || (rounding == Rounding::down && negative);
    if (rounding == Rounding::nearest) return std::nearbyint(steps);
    return away ? std::ceil(steps) : std::floor(steps);
}

}  // namespace

uint64_t to_half(double v, Rounding rounding) {
    if (v != v) return 0x7fff;
    const bool negative = std::signbit(v);
    const uint64_t sign = negative ? 0x8000 : 0;
    const double magnitude = std::fabs(v);
    if (magnitude == 0) return sign;
    if (std::isinf(v)) return sign | 0x7c00;
    int exponent = 0;
    const double steps = to_steps(magnitude, 10, -14, rounding, negative, exponent);
    // A normal number has its leading one in `steps`, which adds one to the biased exponent; a subnormal number has none.
    const int64_t bits = static_cast<int64_t>(exponent + 14) * 1024 + static_cast<int64_t>(steps);
    if (bits < 0x7c00) return sign | static_cast<uint64_t>(bits);
    const bool to_infinity = rounding == Rounding::nearest || (rounding == Rounding::up && !negative) ||
                             (rounding == Rounding::down && negative);
    return sign | (to_infinity ? 0x7c00u : 0x7bffu);
}

double from_half(uint64_t bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double fraction = static_cast<double>(bits & 1023);
    double magnitude = 0;
    if (exponent == 31) {
        magnitude = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    } else if (exponent == 0) {
        magnitude = std::ldexp(fraction, -24);
    } else {
        magnitude = std::ldexp(fraction + 1024, exponent - 25);
    }
    return (bits & 0x8000) ? -magnitude : magnitude;
}

uint64_t to_brain(float v, Rounding rounding) {
    if (v != v) return 0x7fff;
    const uint32_t bits = static_cast<uint32_t>(raw(v));
    uint32_t kept = bits >> 16;
    const uint32_t lost = bits & 0xffff;
    const bool infinite = (bits & 0x7fffffff) == 0x7f800000;
    if (!infinite) {
        const bool negative = bits >> 31;
        if (rounding == Rounding::nearest) kept += lost > 0x8000 || (lost == 0x8000 && (kept & 1));
        else if (rounding == Rounding::up) kept += lost != 0 && !negative;
        else if (rounding == Rounding::down) kept += lost != 0 && negative;
    }
    return kept;
}

uint64_t to_tensor(float v) {
    if (v != v) return real::kFloatNan;
    const uint32_t bits = static_cast<uint32_t>(raw(v));
    if ((bits & 0x7fffffff) == 0x7f800000) return bits;
    // .rna: ties are rounded away from zero, in sign and magnitude.
    return (bits + 0x1000) & ~0x1fffull & low_bits(32);
}

uint64_t whole_to_whole(uint64_t v, Type from, Type to, bool saturate) {
    v = extended(v, from);
    if (saturate) {
        const bool negative = from.kind == Kind::integer && static_cast<int64_t>(v) < 0;
        if (to.kind == Kind::integer) {
            const int64_t most = static_cast<int64_t>(low_bits(to.bits - 1u));
            if (negative) {
                if (static_cast<int64_t>(v) < -most - 1) v = static_cast<uint64_t>(-most - 1);
            } else if (v > static_cast<uint64_t>(most)) {
                v = static_cast<uint64_t>(most);
            }
        } else if (negative) {
            v = 0;
        } else if (v > low_bits(to.bits)) {
            v = low_bits(to.bits);
        }
    }
    return v & low_bits(to.bits);
}

}  // namespace fcm::ptx::conversion
