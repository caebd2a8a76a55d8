// The register tile from which every matrix product is built, for the instruction set of the including file. Everything has
// internal linkage, for the reason given in kernels.cpp.
//
// Every element of a product is one chain of fused multiply-adds in the order of k, independent of the tile, the register
// width and the way in which the sum is cut into stretches. AVX2 and AVX-512 are therefore bit-identical. The baseline has
// no fused multiply-add and rounds twice. In bf16 the order is 1, 0, 3, 2, ..., which is that of the instruction for pairs of
// them (see Bf16).
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
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

// The same bits as whole numbers.
typedef uint32_t Words __attribute__((vector_size(sizeof(Vector))));
inline Words words(Vector v) {
    Words w;
    std::memcpy(&w, &v, sizeof w);
    return w;
}
inline Vector vector(Words w) {
    Vector v;
    std::memcpy(&v, &w, sizeof v);
    return v;
}
inline Words choose(Words where, Words yes, Words no) { return (where & yes) | (~where & no); }

constexpr uint32_t kSign = 0x80000000u;
constexpr uint32_t kInfinity = 0x7f800000u;
constexpr uint32_t kQuiet = 0x00400000u;  // what makes a NaN quiet; so none becomes an infinity when its low bits go

// Rounds to bf16, to the nearest and then the even one. What is below the normal range becomes zero, with its sign.
inline Vector to_bf16(Vector v) {
#if defined(__AVX512BF16__)
    const __m256i halves = (__m256i)_mm512_cvtneps_pbh(v);
    return vector((Words)_mm512_maskz_cvtepu16_epi32(0xffff, halves) << 16);
#else
    const Words w = words(v);
    const Words magnitude = w & ~kSign;
    const Words rounded = (w + 0x7fffu + (w >> 16 & 1u)) & 0xffff0000u;
    const Words number = choose((Words)(magnitude < 0x00800000u), w & kSign, rounded);
    return vector(choose((Words)(magnitude > kInfinity), (w | kQuiet) & 0xffff0000u, number));
#endif
}

// Rounds to tf32, to the nearest and then the larger one, as cvt.rna.tf32 does.
inline Vector to_tf32(Vector v) {
    const Words w = words(v);
    const Words rounded = (w + 0x1000u) & 0xffffe000u;
    return vector(choose((Words)((w & ~kSign) > kInfinity), w | kQuiet, rounded));
}

// While it exists, this thread reads and writes numbers below the normal range as zero, as vdpbf16ps always does. What it
// surrounds must be a call that is not inlined: the compiler does not know that arithmetic depends on it.
class FlushDenormals {
#if defined(__SSE2__)
   public:
    FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr((saved_ & ~kRounding) | kFlush); }
    ~FlushDenormals() { _mm_setcsr(saved_); }
    FlushDenormals(const FlushDenormals &) = delete;
    FlushDenormals &operator=(const FlushDenormals &) = delete;

   private:
    static constexpr unsigned kRounding = 0x6000u;  // cleared: to the nearest
    static constexpr unsigned kFlush = 0x8040u;     // results and operands
    unsigned saved_;
#else
   public:
    FlushDenormals() {}
    ~FlushDenormals() {}
#endif
};

// The arithmetics of a product of factors that have been rounded. `base` and `result` are what becomes of what is added to it,
// and of the result. With kDepth = 2 the sum runs over pairs of k, the second one of each first.
struct Fp32 {
    static constexpr int kDepth = 1;
    static Vector add(Vector a, Vector b, Vector sum) { return multiply_add(a, b, sum); }
    static Vector base(Vector v) { return v; }
    static Vector result(Vector v) { return v; }
};

// A product of two factors has 22 bits and is exact. Nothing else is different.
struct Tf32 : Fp32 {};

// Operands are bf16 numbers in floats. A product of two has 16 bits and is exact; of a pair of them, vdpbf16ps adds the second
// one first, each with a rounding of its own, and so does this.
struct Bf16 : Fp32 {
    static constexpr int kDepth = 2;
    static Vector base(Vector v) { return to_bf16(v); }
    static Vector result(Vector v) { return to_bf16(v); }
};

// The same on packed pairs: a float is two bf16 numbers, k in its low half and k + 1 in its high half.
#if defined(__AVX512BF16__)
struct Bf16Pairs : Bf16 {
    static constexpr int kDepth = 1;
    static Vector add(Vector a, Vector b, Vector sum) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }
};
constexpr bool kPairs = true;
#else
using Bf16Pairs = Bf16;
constexpr bool kPairs = false;
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
template <class A, int R, int V, class P>
inline void tile(const Stretch stretch, P p, const float *q, int64_t q_width, const Store s, int64_t width) {
    Vector sum[R][V];
    const float *begun = s.out;
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i, begun = next_row(begun, width)) {
#pragma GCC unroll 3
        for (int v = 0; v < V; ++v) sum[i][v] = stretch.resume ? load(begun + v * kVector) : broadcast(0.0f);
    }
    const auto add = [&]() __attribute__((always_inline)) {
        Vector row[V];
#pragma GCC unroll 3
        for (int v = 0; v < V; ++v) row[v] = load_once(q + v * kVector);
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
            const Vector factor = broadcast(p.at[i * p.across]);
#pragma GCC unroll 3
            for (int v = 0; v < V; ++v) sum[i][v] = A::add(factor, row[v], sum[i][v]);
        }
    };
    if constexpr (A::kDepth == 1) {
        for (int64_t k = 0; k < stretch.depth; ++k, p.at += p.down, q += q_width) add();
    } else {
        // 1, 0, 3, 2, ...: one back and three forward in turns. Both halves of a pair in one turn of the loop would need more
        // registers than there are.
        int64_t p_step = -p.down;
        int64_t q_step = -q_width;
        p.at += p.down;
        q += q_width;
        for (int64_t k = 0; k < stretch.depth / 2 * 2; ++k) {
            add();
            p.at += p_step;
            q += q_step;
            p_step = 2 * p.down - p_step;
            q_step = 2 * q_width - q_step;
        }
        if (stretch.depth % 2 == 1) {  // the last one has a zero beside it, which counts: -0 + 0 is 0
            for (int i = 0; i < R; ++i) {
                for (int v = 0; v < V; ++v) sum[i][v] = multiply_add(broadcast(0.0f), broadcast(0.0f), sum[i][v]);
            }
            p.at -= p.down;
            q -= q_width;
            add();
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
                store(out + v * kVector, A::result(multiply_add(base_factor, A::base(load(base + v * kVector)), product)));
            }
        }
    } else if (stretch.finish) {
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i, out = next_row(out, width)) {
#pragma GCC unroll 3
            for (int v = 0; v < V; ++v) store(out + v * kVector, A::result(sum[i][v]));
        }
    } else {
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i, out = next_row(out, width)) {
#pragma GCC unroll 3
            for (int v = 0; v < V; ++v) store(out + v * kVector, sum[i][v]);
        }
    }
}

template <class A, int V, int R = kTileRows, class P>
inline void tile_rows(int64_t rows, const Stretch &stretch, const P &p, const float *q, int64_t q_width, const Store &s,
                      int64_t width) {
    if constexpr (R > 0) {
        if (rows >= R) return tile<A, R, V>(stretch, p, q, q_width, s, width);
        tile_rows<A, V, R - 1>(rows, stretch, p, q, q_width, s, width);
    }
}

// Joins two rows of N bf16 numbers in floats to a row of pairs; without a second row, its numbers are zero. The pairs may be
// where the first row is.
template <int N>
inline void join(const float *first, const float *second, float *pairs) {
    typedef uint32_t Row __attribute__((vector_size(N * sizeof(uint32_t))));
    Row low;
    Row high{};
    std::memcpy(&low, first, sizeof low);
    if (second != nullptr) std::memcpy(&high, second, sizeof high);
    const Row joined = low >> 16 | (high & 0xffff0000u);
    std::memcpy(pairs, &joined, sizeof joined);
}

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace
}  // namespace fcm
