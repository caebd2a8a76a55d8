// The kernels of one instruction set. This file is compiled once for each set (named by FCM_ISA). Everything except the
// table has internal linkage, so that the linker cannot pick code built for a newer CPU on an older one.
//
// This file uses no fused multiply-add (-ffp-contract=off): these loops are bound by memory anyway, and without it their
// results are bit-identical on every CPU. For the same reason, sums use sixteen double lanes regardless of the register
// width; the square of a float is exact in double.
#include "kernels.h"

#include <cmath>
#include <cstring>

#include "means.h"
#include "product.h"
#include "small_schulz.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define FCM_JOIN_(a, b) a##b
#define FCM_JOIN(a, b) FCM_JOIN_(a, b)

namespace fcm {
namespace {

constexpr int64_t kLanes = 16;

typedef float Floats __attribute__((vector_size(8 * sizeof(float))));
typedef double Doubles __attribute__((vector_size(8 * sizeof(double))));

template <class Value>
inline Value load(const float *p) {
    Value v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <class Value>
inline void store(float *p, Value v) {
    std::memcpy(p, &v, sizeof v);
}

// Sixteen running sums: element j of a piece is added to lane j mod 16. The compiler maps the two halves to the available
// registers.
class SumOfSquares {
   public:
    void add(Floats low, Floats high) {
        const Doubles l = __builtin_convertvector(low, Doubles);
        const Doubles h = __builtin_convertvector(high, Doubles);
        low_ += l * l;
        high_ += h * h;
    }

    // Adds the last `count` < 16 elements and returns the total.
    double finish(const float *rest, int64_t count) {
        double lane[kLanes];
        std::memcpy(lane, &low_, sizeof low_);
        std::memcpy(lane + kLanes / 2, &high_, sizeof high_);
        for (int64_t i = 0; i < count; ++i) lane[i] += static_cast<double>(rest[i]) * static_cast<double>(rest[i]);
        for (int64_t width = kLanes / 2; width > 0; width /= 2) {
            for (int64_t i = 0; i < width; ++i) lane[i] += lane[i + width];
        }
        return lane[0];
    }

   private:
    Doubles low_{};
    Doubles high_{};
};

void ema(int64_t n, float a, float keep, const float *__restrict x, float *__restrict y) {
    for (int64_t j = 0; j < n; ++j) y[j] = a * x[j] + keep * y[j];
}

// The contraction reads kGroup of the d blocks at a time: with eight streams in flight one core reaches one and a half times
// the memory bandwidth of a single stream. If there are more blocks, a strip of sums stays in the L1 cache between groups.
// Sums run in the order of i, independent of the grouping.
constexpr int64_t kGroup = 8;
constexpr int64_t kStrip = 2048;

typedef float Line __attribute__((vector_size(16 * sizeof(float))));
constexpr int64_t kLine = 16;

struct Contraction {
    int64_t block;
    float scale;
    float scale_again;  // 1, unless the scale is too small for a single float
    float b;
    float keep;
    float *h;
    const float *v;
    float *m;
    float *sum;
};

// Elements from j on of G blocks; the first group initializes the sums, and the last one updates M.
template <int G, bool Scaled, class Value>
inline void contract(const Contraction &c, int64_t j, int64_t strip, bool first, bool last) {
    Value sum = first ? Value{} : load<Value>(c.sum + j - strip);
    for (int i = 0; i < G; ++i) {
        float *h = c.h + i * c.block + j;
        Value term = load<Value>(h);
        if constexpr (Scaled) {
            term = c.scale_again * (c.scale * term);
            store(h, term);
        }
        sum = i == 0 && first ? c.v[i] * term : sum + c.v[i] * term;
    }
    if (!last) {
        store(c.sum + j - strip, sum);
    } else if (c.keep == 0.0f) {
        store(c.m + j, c.b * sum);
    } else {
        store(c.m + j, c.keep * load<Value>(c.m + j) + c.b * sum);
    }
}

template <int G, bool Scaled>
void contract_group(const Contraction &c, int64_t strip, int64_t length, bool first, bool last) {
    int64_t j = strip;
    for (; j + kLine <= strip + length; j += kLine) contract<G, Scaled, Line>(c, j, strip, first, last);
    for (; j < strip + length; ++j) contract<G, Scaled, float>(c, j, strip, first, last);
}

template <bool Scaled, int G = kGroup>
inline void contract_groups(int64_t blocks, const Contraction &c, int64_t strip, int64_t length, bool first, bool last) {
    if constexpr (G > 0) {
        if (blocks >= G) return contract_group<G, Scaled>(c, strip, length, first, last);
        contract_groups<Scaled, G - 1>(blocks, c, strip, length, first, last);
    }
}

template <bool Scaled>
void contract_all(int64_t n, int64_t d, Contraction c) {
    alignas(64) float sum[kStrip];
    c.sum = sum;
    const int64_t strip_length = d <= kGroup ? n : kStrip;
    for (int64_t strip = 0; strip < n; strip += strip_length) {
        const int64_t length = n - strip < strip_length ? n - strip : strip_length;
        for (int64_t i = 0; i < d; i += kGroup) {
            Contraction group = c;
            group.h = c.h + i * c.block;
            group.v = c.v + i;
            contract_groups<Scaled>(d - i, group, strip, length, i == 0, i + kGroup >= d);
        }
    }
}

void compose(int64_t n, int64_t d, int64_t block, float b, float keep, const float *h, const float *v, float *m) {
    // Without Scaled, h is only read.
    contract_all<false>(n, d, Contraction{block, 1.0f, 1.0f, b, keep, const_cast<float *>(h), v, m, nullptr});
}

void scale_compose(int64_t n, int64_t d, int64_t block, double scale, float b, float keep, float *h, const float *v,
                   float *m) {
    constexpr double kSmallest = 1e-30;
    const double again = scale < kSmallest ? kSmallest : 1.0;
    contract_all<true>(n, d, Contraction{block, static_cast<float>(scale / again), static_cast<float>(again), b, keep, h, v,
                                         m, nullptr});
}

double storm(int64_t n, float keep, const float *__restrict g_new, const float *__restrict g_old, float *__restrict h) {
    SumOfSquares sum;
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
        const Floats low = load<Floats>(g_new + j) + keep * (load<Floats>(h + j) - load<Floats>(g_old + j));
        const Floats high = load<Floats>(g_new + j + 8) + keep * (load<Floats>(h + j + 8) - load<Floats>(g_old + j + 8));
        store(h + j, low);
        store(h + j + 8, high);
        sum.add(low, high);
    }
    for (int64_t i = j; i < n; ++i) h[i] = g_new[i] + keep * (h[i] - g_old[i]);
    return sum.finish(h + j, n - j);
}

double sum_of_squares(int64_t n, const float *__restrict x) {
    SumOfSquares sum;
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) sum.add(load<Floats>(x + j), load<Floats>(x + j + 8));
    return sum.finish(x + j, n - j);
}

// Pieces side by side, fetched ahead: with one stream, a core used half of the memory bandwidth.
void sums_of_squares(const float *__restrict x, double *sums) {
    constexpr int64_t kAhead = 512;
    SumOfSquares sum[kSumsAtOnce];
    for (int64_t j = 0; j < kSumPiece; j += kLanes) {
#pragma GCC unroll 4
        for (int i = 0; i < kSumsAtOnce; ++i) {
            const float *at = x + i * kSumPiece + j;
            __builtin_prefetch(at + kAhead);
            sum[i].add(load<Floats>(at), load<Floats>(at + 8));
        }
    }
    for (int i = 0; i < kSumsAtOnce; ++i) sums[i] = sum[i].finish(nullptr, 0);
}

void step(int64_t n, double step, const float *__restrict m, float *__restrict w) {
    for (int64_t j = 0; j < n; ++j) w[j] -= static_cast<float>(step * static_cast<double>(m[j]));
}

// x and y are the same or do not overlap, so there are no dependencies; with ivdep the loop is vectorized in place too.
void scale(int64_t n, double factor, const float *x, float *y) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) y[j] = static_cast<float>(factor * static_cast<double>(x[j]));
}

// Computed in double, where the square of a float is exact: neither tiny nor huge changes are lost on the way to w, and the
// sign in Yogi is exact. Square roots and quotients are correctly rounded on every CPU, so results are bit-identical.
template <bool Yogi>
void adaptive_step_by(int64_t n, const AdaptiveStep &s, const float *__restrict delta, float *__restrict m,
                      float *__restrict v, float *__restrict w) {
    const double keep1 = s.beta1;
    const double keep2 = s.beta2;
    const double fresh1 = 1.0 - s.beta1;
    const double fresh2 = 1.0 - s.beta2;
    const double epsilon = s.epsilon;
    const double eta = s.eta;
    for (int64_t j = 0; j < n; ++j) {
        const auto change = static_cast<double>(delta[j]);
        const auto second = static_cast<double>(v[j]);
        const double square = change * change;
        const double momentum = keep1 * static_cast<double>(m[j]) + fresh1 * change;
        double spread;
        if constexpr (Yogi) {
            const double sign = second > square ? 1.0 : second < square ? -1.0 : 0.0;
            spread = second - fresh2 * square * sign;
        } else {
            spread = keep2 * second + fresh2 * square;
        }
        m[j] = static_cast<float>(momentum);
        v[j] = static_cast<float>(spread);
        w[j] = static_cast<float>(static_cast<double>(w[j]) + eta * momentum / (std::sqrt(spread) + epsilon));
    }
}

void adaptive_step(int64_t n, const AdaptiveStep &s, const float *delta, float *m, float *v, float *w) {
    if (s.yogi) {
        adaptive_step_by<true>(n, s, delta, m, v, w);
    } else {
        adaptive_step_by<false>(n, s, delta, m, v, w);
    }
}

inline uint32_t magnitude(const float *x) {
    uint32_t bits;
    std::memcpy(&bits, x, sizeof bits);
    return bits & 0x7fffffffu;
}

void count_digits(int64_t n, Digit digit, uint32_t above, const float *x, uint32_t *counts) {
    const uint32_t mask = (1u << digit.width) - 1u;
    for (int64_t j = 0; j < n; ++j) {
        const uint32_t bits = magnitude(x + j);
        if (bits >> (digit.shift + digit.width) == above) ++counts[bits >> digit.shift & mask];
    }
}

int64_t find_magnitude(int64_t n, uint32_t bits, int64_t nth, const float *__restrict x) {
    for (int64_t start = 0; start < n; start += kStrip) {
        const int64_t length = n - start < kStrip ? n - start : kStrip;
        uint32_t here = 0;
        for (int64_t j = 0; j < length; ++j) here += magnitude(x + start + j) == bits ? 1u : 0u;
        if (here < nth) {
            nth -= here;
            continue;
        }
        for (int64_t j = start;; ++j) {
            if (magnitude(x + j) == bits && --nth == 0) return j;
        }
    }
    return -1;
}

void keep_magnitudes(int64_t n, uint32_t least, const float *x, float *y) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
        uint32_t bits;
        std::memcpy(&bits, x + j, sizeof bits);
        bits = (bits & 0x7fffffffu) >= least ? bits : 0u;
        std::memcpy(y + j, &bits, sizeof bits);
    }
}

// The 16 bits of an element of a mask, within a number of the generator.
typedef uint16_t Part __attribute__((may_alias));

void dropout_mask(int64_t n, int32_t left, uint64_t state, uint8_t *__restrict mask) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lowest bits come first");
    constexpr int64_t kNumbers = 64;
    constexpr int64_t kParts = 4 * kNumbers;
    if (left == 0) {
        std::memset(mask, 0, static_cast<size_t>(n));
        return;
    }
    const auto last = static_cast<uint16_t>(left - 1);
    alignas(64) uint64_t numbers[kNumbers];
    const Part *parts = reinterpret_cast<const Part *>(numbers);
    for (int64_t start = 0; start < n; start += kParts) {
        for (int64_t i = 0; i < kNumbers; ++i) {
            uint64_t z = state + static_cast<uint64_t>(i + 1) * kSplitMixStep;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
            numbers[i] = z ^ (z >> 31);
        }
        state += kNumbers * kSplitMixStep;
        const int64_t length = n - start < kParts ? n - start : kParts;
        for (int64_t j = 0; j < length; ++j) mask[start + j] = parts[j] <= last ? 1 : 0;
    }
}

int64_t first_not_finite(int64_t n, const float *__restrict x) {
    constexpr uint32_t kExponent = 0x7f800000u;
    for (int64_t start = 0; start < n; start += kStrip) {
        const int64_t length = n - start < kStrip ? n - start : kStrip;
        uint32_t bad = 0;
        for (int64_t j = 0; j < length; ++j) {
            uint32_t bits;
            std::memcpy(&bits, x + start + j, sizeof bits);
            bad |= (bits & kExponent) == kExponent ? 1u : 0u;
        }
        if (bad == 0) continue;
        for (int64_t j = start;; ++j) {
            uint32_t bits;
            std::memcpy(&bits, x + j, sizeof bits);
            if ((bits & kExponent) == kExponent) return j;
        }
    }
    return -1;
}

void triad(int64_t n, float s, const float *__restrict b, const float *__restrict c, float *__restrict a) {
    for (int64_t j = 0; j < n; ++j) a[j] = b[j] + s * c[j];
}

void triad_non_temporal(int64_t n, float s, const float *__restrict b, const float *__restrict c, float *__restrict a) {
#if defined(__AVX512F__)
    int64_t j = 0;
    for (; j < n && reinterpret_cast<uintptr_t>(a + j) % 64 != 0; ++j) a[j] = b[j] + s * c[j];
    for (; j + 16 <= n; j += 16) {
        const __m512 value = _mm512_add_ps(_mm512_loadu_ps(b + j), _mm512_mul_ps(_mm512_set1_ps(s), _mm512_loadu_ps(c + j)));
        _mm512_stream_ps(a + j, value);
    }
    for (; j < n; ++j) a[j] = b[j] + s * c[j];
    _mm_sfence();
#elif defined(__AVX__)
    int64_t j = 0;
    for (; j < n && reinterpret_cast<uintptr_t>(a + j) % 32 != 0; ++j) a[j] = b[j] + s * c[j];
    for (; j + 8 <= n; j += 8) {
        const __m256 value = _mm256_add_ps(_mm256_loadu_ps(b + j), _mm256_mul_ps(_mm256_set1_ps(s), _mm256_loadu_ps(c + j)));
        _mm256_stream_ps(a + j, value);
    }
    for (; j < n; ++j) a[j] = b[j] + s * c[j];
    _mm_sfence();
#else
    triad(n, s, b, c, a);
#endif
}

}  // namespace

const Kernels &FCM_JOIN(kernels_, FCM_ISA)() {
    static constexpr Kernels table{ema,
                                   compose,
                                   scale_compose,
                                   storm,
                                   sum_of_squares,
                                   sums_of_squares,
                                   step,
                                   FCM_JOIN(average_, FCM_ISA),
                                   FCM_JOIN(mean_exponents_, FCM_ISA),
                                   FCM_JOIN(mean_sums_, FCM_ISA),
                                   FCM_JOIN(mean_combine_, FCM_ISA),
                                   FCM_JOIN(mean_finish_, FCM_ISA),
                                   first_not_finite,
                                   triad,
                                   triad_non_temporal,
                                   FCM_JOIN(schulz_load_, FCM_ISA),
                                   FCM_JOIN(schulz_step_, FCM_ISA),
                                   FCM_JOIN(schulz_store_, FCM_ISA),
                                   FCM_JOIN(product_pack_left_, FCM_ISA),
                                   FCM_JOIN(product_pack_right_, FCM_ISA),
                                   FCM_JOIN(product_rows_, FCM_ISA),
                                   FCM_JOIN(product_mirror_, FCM_ISA),
                                   FCM_JOIN(round_to_bf16_, FCM_ISA),
                                   scale,
                                   adaptive_step,
                                   dropout_mask,
                                   count_digits,
                                   find_magnitude,
                                   keep_magnitudes};
    return table;
}

}  // namespace fcm
