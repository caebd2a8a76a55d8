// The device code of means whose bits do not depend on the order of their terms: fedcomuon.h has the three steps, ADR 16 why they
// are exact.
#pragma once

#include <cstdint>

#include "device.h"

namespace fcm {

// The weights of up to kFewWeights clients are passed as a launch parameter; more weights are stored at `listed`.
constexpr int64_t kFewWeights = 256;
struct Weights {
    const double *listed;  // null: the weights are in `few`, or all 1 if `uniform`
    int32_t uniform;
    double few[kFewWeights];

    __device__ __forceinline__ double of(int64_t k) const { return (listed != nullptr ? listed : few)[k]; }
};

constexpr int kNotFiniteExponent = 255;
constexpr unsigned kMagnitude = 0x7fffffffu;
constexpr unsigned kFraction = 0x007fffffu;
constexpr int kExponentShift = 23;

// 2^power, in the normal range of double.
__device__ __forceinline__ double power_of_two(int power) {
    return __longlong_as_double(static_cast<long long>(1023 + power) << 52);
}

// What is known of a term before its value: its weight, or that it is 1.
template <bool Uniform>
struct Term {
    double weight;

    static __device__ __forceinline__ Term of(const Weights &weights, int64_t k) { return {Uniform ? 1.0 : weights.of(k)}; }

    __device__ __forceinline__ bool is_read() const { return Uniform || weight != 0.0; }

    // The bits of the float that the term is rounded to, without its sign: they are ordered as magnitudes are, and their
    // upper ones are the exponent.
    __device__ __forceinline__ unsigned magnitude(float x) const {
        const float rounded = Uniform ? x : static_cast<float>(weight * static_cast<double>(x));
        return __float_as_uint(rounded) & kMagnitude;
    }
};

// The rounding of the terms of an element: what a unit of its sum is.
template <bool Uniform>
class Units;

template <>
class Units<false> {
   public:
    __device__ __forceinline__ Units(int32_t bits, int exponent) : scale_(power_of_two(bits + 126 - exponent)) {}

    __device__ __forceinline__ unsigned long long of(Term<false> term, float x) const {
        return static_cast<unsigned long long>(__double2ll_rn(term.weight * static_cast<double>(x) * scale_));
    }

   private:
    double scale_;
};

// The same with integers, because consumer GPUs have one unit for double per 64 for integers. With the exponent field f, or 1 if
// that is 0, x is +-m 2^(f - 150), m < 2^24, and so it has m 2^p units, p = f + bits - 24 - exponent <= 39: an integer, if p >= 0.
// Otherwise r = -p bits are lost. With 2 m = q 2^(r+1) + l, adding 2^r - 1, and 1 more if q is odd, carries into q exactly if
// l > 2^r, which is more than half a unit, or l = 2^r and q is odd. That is what rint does.
template <>
class Units<true> {
   public:
    __device__ __forceinline__ Units(int32_t bits, int exponent) : places_(bits - 24 - exponent) {}

    __device__ __forceinline__ unsigned long long of(Term<true>, float x) const {
        const unsigned word = __float_as_uint(x);
        const int field = static_cast<int>(word >> kExponentShift & 0xffu);
        const unsigned digits = (word & kFraction) + (static_cast<unsigned>(min(field, 1)) << kExponentShift);
        const int places = places_ + max(field, 1);
        // Nothing is left of 24 bits when 25 or more are lost.
        const int lost = min(max(-places, 0), 30);
        const unsigned rounded = (2 * digits + (1u << lost) - 1u + (digits >> lost & 1u)) >> (lost + 1);
        const int sign = static_cast<int>(word) >> 31;
        const int64_t whole = (static_cast<int>(rounded) ^ sign) - sign;
        // Beyond 39 the exponent is not that of all terms, and the sum means nothing.
        return static_cast<unsigned long long>(whole) << (max(places, 0) & 63);
    }

   private:
    int places_;
};

// Step 3.
__device__ __forceinline__ float finish_mean(unsigned long long sum, int exponent, int32_t bits, double total) {
    if (exponent == kNotFiniteExponent) return __uint_as_float(0x7fc00000u);
    const auto whole = static_cast<double>(static_cast<long long>(sum));
    return static_cast<float>(whole * power_of_two(exponent - 126 - bits) / total);
}

// The first rows of a mean are read once and kept in registers; any more are read again, from a cache if they are still there,
// and so are all rows that are read element by element.
constexpr int kHeldRows = 16;

// All steps. row(k) is where the elements of row k begin; one with weight 0 is not read.
template <bool Uniform, int W, class Row>
__device__ __forceinline__ void exact_mean(int64_t clients, int32_t bits, double total, const Weights &weights, const Row &row,
                                           int64_t j, float (&mean)[W]) {
    constexpr int kHeld = W == 4 ? kHeldRows : 0;
    float held[kHeldRows][W];
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
        if (k < clients && Term<Uniform>::of(weights, k).is_read()) {
            load<W>(row(k) + j, held[k]);
        } else {
#pragma unroll
            for (int i = 0; i < W; ++i) held[k][i] = 0.0f;
        }
    }

    unsigned largest[W] = {};
    const auto raise = [&largest](Term<Uniform> term, const float(&x)[W]) {
#pragma unroll
        for (int i = 0; i < W; ++i) largest[i] = max(largest[i], term.magnitude(x[i]));
    };
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
        if (k < clients) raise(Term<Uniform>::of(weights, k), held[k]);
    }
    for (int64_t k = kHeld; k < clients; ++k) {
        const auto term = Term<Uniform>::of(weights, k);
        if (!term.is_read()) continue;
        float x[W];
        load<W>(row(k) + j, x);
        raise(term, x);
    }

    int exponent[W];
    unsigned long long sum[W] = {};
#pragma unroll
    for (int i = 0; i < W; ++i) exponent[i] = static_cast<int>(largest[i] >> kExponentShift);
    const auto add = [&exponent, &sum, bits](Term<Uniform> term, const float(&x)[W]) {
#pragma unroll
        for (int i = 0; i < W; ++i) sum[i] += Units<Uniform>(bits, exponent[i]).of(term, x[i]);
    };
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
        if (k >= clients) continue;
#pragma unroll
        for (int i = 0; i < W; ++i) keep(held[k][i]);
        add(Term<Uniform>::of(weights, k), held[k]);
    }
    for (int64_t k = kHeld; k < clients; ++k) {
        const auto term = Term<Uniform>::of(weights, k);
        if (!term.is_read()) continue;
        float x[W];
        load<W>(row(k) + j, x);
        add(term, x);
    }
#pragma unroll
    for (int i = 0; i < W; ++i) mean[i] = finish_mean(sum[i], exponent[i], bits, total);
}

}  // namespace fcm
