// Compiled once for each instruction set (FCM_ISA names it). Everything here has internal linkage but the table,
// so that no code built for a newer CPU can be picked by the linker for an older one.
//
// No fused multiply-add in this file (-ffp-contract=off): these loops wait for memory anyway, and without it they
// give the same bits on every CPU. Sums use sixteen double lanes whatever the register width, for the same reason;
// the square of a float is exact in double.
#include "kernels.h"

#include <cstring>

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

inline Floats load8(const float *p) {
    Floats v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
inline void store8(float *p, Floats v) { std::memcpy(p, &v, sizeof v); }

// Sixteen running sums: element j of a piece goes to lane j mod 16. The compiler maps the two halves to whatever
// registers there are.
class SumOfSquares {
   public:
    void add(Floats low, Floats high) {
        const Doubles l = __builtin_convertvector(low, Doubles);
        const Doubles h = __builtin_convertvector(high, Doubles);
        low_ += l * l;
        high_ += h * h;
    }

    // The last, incomplete sixteen, `count` of them.
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

// A strip of M stays in the first-level cache while the d blocks stream past it: few streams at a time, each read in
// order, whatever d is. The hardware's prefetcher starts anew with each strip of each block, so the strip that comes
// next is asked for by hand.
constexpr int64_t kStrip = 1024;
constexpr int64_t kLine = 16;

template <bool Scaled, bool First>
inline void add_strip(int64_t length, float scale, float v, float *__restrict h, float *__restrict sum, const float *next) {
    const auto term = [=](int64_t j) {
        if constexpr (Scaled) h[j] = scale * h[j];
        return v * h[j];
    };
    int64_t j = 0;
    for (; j + kLine <= length; j += kLine) {
        __builtin_prefetch(next + j);
        for (int64_t i = j; i < j + kLine; ++i) sum[i] = First ? term(i) : sum[i] + term(i);
    }
    for (; j < length; ++j) sum[j] = First ? term(j) : sum[j] + term(j);
}

template <bool Scaled>
void compose_strips(int64_t n, int64_t d, int64_t block, float scale, float b, float keep, float *h, const float *v, float *m) {
    alignas(64) float sum[kStrip];
    for (int64_t start = 0; start < n; start += kStrip) {
        const int64_t length = n - start < kStrip ? n - start : kStrip;
        for (int64_t i = 0; i < d; ++i) {
            float *hi = h + i * block + start;
            const float *next = i + 1 < d ? hi + block : h + start + length;
            if (i == 0) {
                add_strip<Scaled, true>(length, scale, v[i], hi, sum, next);
            } else {
                add_strip<Scaled, false>(length, scale, v[i], hi, sum, next);
            }
        }
        float *__restrict out = m + start;
        if (keep == 0.0f) {
            for (int64_t j = 0; j < length; ++j) out[j] = b * sum[j];
        } else {
            for (int64_t j = 0; j < length; ++j) out[j] = keep * out[j] + b * sum[j];
        }
    }
}

void compose(int64_t n, int64_t d, int64_t block, float b, float keep, const float *h, const float *v, float *m) {
    // Not Scaled, so h is only read.
    compose_strips<false>(n, d, block, 1.0f, b, keep, const_cast<float *>(h), v, m);
}

void scale_compose(int64_t n, int64_t d, int64_t block, float scale, float b, float keep, float *h, const float *v,
                   float *m) {
    compose_strips<true>(n, d, block, scale, b, keep, h, v, m);
}

double storm(int64_t n, float keep, const float *__restrict g_new, const float *__restrict g_old, float *__restrict h) {
    SumOfSquares sum;
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
        const Floats low = load8(g_new + j) + keep * (load8(h + j) - load8(g_old + j));
        const Floats high = load8(g_new + j + 8) + keep * (load8(h + j + 8) - load8(g_old + j + 8));
        store8(h + j, low);
        store8(h + j + 8, high);
        sum.add(low, high);
    }
    for (int64_t i = j; i < n; ++i) h[i] = g_new[i] + keep * (h[i] - g_old[i]);
    return sum.finish(h + j, n - j);
}

double sum_of_squares(int64_t n, const float *__restrict x) {
    SumOfSquares sum;
    int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) sum.add(load8(x + j), load8(x + j + 8));
    return sum.finish(x + j, n - j);
}

void step(int64_t n, double step, const float *__restrict m, float *__restrict w) {
    for (int64_t j = 0; j < n; ++j) w[j] -= static_cast<float>(step * static_cast<double>(m[j]));
}

void average(int64_t clients, int64_t n, const double *weights, double total, float *x, int64_t stride) {
    alignas(64) double sum[kStrip];
    alignas(64) float mean[kStrip];
    for (int64_t start = 0; start < n; start += kStrip) {
        const int64_t length = n - start < kStrip ? n - start : kStrip;
        std::memset(sum, 0, sizeof sum);
        for (int64_t k = 0; k < clients; ++k) {
            const float *__restrict row = x + k * stride + start;
            const double weight = weights == nullptr ? 1.0 : weights[k];
            if (weight == 0.0) continue;
            for (int64_t j = 0; j < length; ++j) sum[j] += weight * static_cast<double>(row[j]);
        }
        for (int64_t j = 0; j < length; ++j) mean[j] = static_cast<float>(sum[j] / total);
        for (int64_t k = 0; k < clients; ++k) {
            std::memcpy(x + k * stride + start, mean, static_cast<size_t>(length) * sizeof(float));
        }
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
                                   step,
                                   average,
                                   first_not_finite,
                                   triad,
                                   triad_non_temporal,
                                   FCM_JOIN(schulz_load_, FCM_ISA),
                                   FCM_JOIN(schulz_step_, FCM_ISA),
                                   FCM_JOIN(schulz_store_, FCM_ISA)};
    return table;
}

}  // namespace fcm
