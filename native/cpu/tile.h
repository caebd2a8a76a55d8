// The register tile from which every matrix product is built, for the instruction set of the including file. Everything has
// internal linkage, for the reason given in kernels.cpp.
//
// Every element of a product is one chain of fused multiply-adds in the order of k, independent of the tile, the register
// width and the way in which the sum is cut into stretches. AVX2 and AVX-512 are therefore bit-identical. The baseline has
// no fused multiply-add and rounds twice.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define FCM_JOIN_(a, b) a##b
#define FCM_JOIN(a, b) FCM_JOIN_(a, b)

namespace fcm {
namespace {

#if defined(__AVX512F__)
using Vector = __m512;
constexpr int kVector = 16;
constexpr int kTileRows = 8;
constexpr int kTileVectors = 3;  // 24 accumulators of 32 registers
inline Vector load(const float *p) { return _mm512_loadu_ps(p); }
inline void store(float *p, Vector v) { _mm512_storeu_ps(p, v); }
inline Vector broadcast(float s) { return _mm512_set1_ps(s); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
inline Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
#elif defined(__AVX2__)
using Vector = __m256;
constexpr int kVector = 8;
constexpr int kTileRows = 4;
constexpr int kTileVectors = 3;  // 12 accumulators of 16 registers
inline Vector load(const float *p) { return _mm256_loadu_ps(p); }
inline void store(float *p, Vector v) { _mm256_storeu_ps(p, v); }
inline Vector broadcast(float s) { return _mm256_set1_ps(s); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
inline Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
#else
typedef float Vector __attribute__((vector_size(16)));
constexpr int kVector = 4;
constexpr int kTileRows = 4;
constexpr int kTileVectors = 2;
inline Vector load(const float *p) {
    Vector v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
inline void store(float *p, Vector v) { std::memcpy(p, &v, sizeof v); }
inline Vector broadcast(float s) { return Vector{s, s, s, s}; }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }
inline Vector multiply(Vector a, Vector b) { return a * b; }
#endif

// The compiler prefers to fold a load into each multiply-add that uses it, and eight loads of one vector then stall the
// multipliers. An empty instruction that pretends to modify the value forces a single load.
inline Vector load_once(const float *p) {
    Vector v = load(p);
#if defined(__AVX512F__)
    asm("" : "+v"(v));
#elif defined(__AVX2__)
    asm("" : "+x"(v));
#endif
    return v;
}

// Opaque to the compiler, which would otherwise keep the address of every row of a tile in a register through the inner
// loop.
template <class Float>
inline Float *next_row(Float *p, int64_t width) {
    p += width;
    asm("" : "+r"(p));
    return p;
}

// Transposes 8 x 8 elements, in registers where they are wide enough.
inline void transpose8(const float *from, int64_t from_stride, float *to, int64_t to_stride) {
#if defined(__AVX2__)
    __m256 r[8], t[8];
    for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_stride);
    for (int i = 0; i < 4; ++i) {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; ++i) {
        r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
        r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
        r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
        r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
    }
    for (int i = 0; i < 4; ++i) {
        _mm256_storeu_ps(to + i * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
#else
    for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 8; ++j) to[j * to_stride + i] = from[i * from_stride + j];
    }
#endif
}

// Where a product is stored: out = product, or out = base_factor base + product_factor product.
struct Store {
    float *out;
    const float *base;
    float base_factor;
    float product_factor;

    Store at(int64_t offset) const {
        return {out + offset, base == nullptr ? nullptr : base + offset, base_factor, product_factor};
    }
};

// A stretch of the sum over k: `resume` continues from the values in `out`, `finish` applies the factors.
struct Stretch {
    int64_t depth;
    bool resume;
    bool finish;
};

// The elements p[k, i] of a factor: consecutive i are `across` apart, consecutive k are `down` apart.
struct Factor {
    const float *at;
    int64_t down;
    int64_t across;
};

// The same with the elements of one k contiguous, which the compiler can address without another register.
struct PackedFactor {
    const float *at;
    int64_t down;
    static constexpr int64_t across = 1;
};

// sum_k p[k, i] q[k, j] for R rows i and V vectors of columns j. The widths are row strides.
template <int R, int V, class P>
inline void tile(const Stretch stretch, P p, const float *q, int64_t q_width, const Store s, int64_t width) {
    Vector sum[R][V];
    const float *begun = s.out;
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i, begun = next_row(begun, width)) {
#pragma GCC unroll 3
        for (int v = 0; v < V; ++v) sum[i][v] = stretch.resume ? load(begun + v * kVector) : broadcast(0.0f);
    }
    for (int64_t k = 0; k < stretch.depth; ++k, p.at += p.down, q += q_width) {
        Vector row[V];
#pragma GCC unroll 3
        for (int v = 0; v < V; ++v) row[v] = load_once(q + v * kVector);
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
            const Vector factor = broadcast(p.at[i * p.across]);
#pragma GCC unroll 3
            for (int v = 0; v < V; ++v) sum[i][v] = multiply_add(factor, row[v], sum[i][v]);
        }
    }
    float *out = s.out;
    if (stretch.finish && s.base != nullptr) {
        const float *base = s.base;
        const Vector base_factor = broadcast(s.base_factor);
        const Vector product_factor = broadcast(s.product_factor);
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i, out = next_row(out, width), base = next_row(base, width)) {
#pragma GCC unroll 3
            for (int v = 0; v < V; ++v) {
                const Vector product = multiply(product_factor, sum[i][v]);
                store(out + v * kVector, multiply_add(base_factor, load(base + v * kVector), product));
            }
        }
    } else {
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i, out = next_row(out, width)) {
#pragma GCC unroll 3
            for (int v = 0; v < V; ++v) store(out + v * kVector, sum[i][v]);
        }
    }
}

template <int V, int R = kTileRows, class P>
inline void tile_rows(int64_t rows, const Stretch &stretch, const P &p, const float *q, int64_t q_width, const Store &s,
                      int64_t width) {
    if constexpr (R > 0) {
        if (rows >= R) return tile<R, V>(stretch, p, q, q_width, s, width);
        tile_rows<V, R - 1>(rows, stretch, p, q, q_width, s, width);
    }
}

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace
}  // namespace fcm
