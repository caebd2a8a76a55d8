// Newton-Schulz of one matrix with a short side of at most 128, compiled once for each instruction set.
//
// Every element of a product is one chain of fused multiply-adds in the order of k, whatever the tile or register
// width, so AVX2 and AVX-512 agree to the bit; the baseline has no fused multiply-add and rounds twice.
#include "small_schulz.h"

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

// The compiler would rather fold a load into each multiply-add that uses it; eight loads of one vector then starve the
// multipliers. An empty instruction that claims to change the value makes it load once.
inline Vector load_once(const float *p) {
    Vector v = load(p);
#if defined(__AVX512F__)
    asm("" : "+v"(v));
#elif defined(__AVX2__)
    asm("" : "+x"(v));
#endif
    return v;
}

// Opaque to the compiler, which would otherwise keep the address of every row of a tile alive through the inner loop.
template <class Float>
inline Float *next_row(Float *p, int64_t width) {
    p += width;
    asm("" : "+r"(p));
    return p;
}

static_assert(kSchulzPad % kVector == 0 && kSchulzPanel % kTileRows == 0 && kSchulzPanel == 8, "tiles must fit the padding");

// 8 x 8 at a time through registers where there are any wide enough.
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

// What becomes of a product: out = product, or out = base_factor base + product_factor product.
struct Store {
    float *out;
    const float *base;
    float base_factor;
    float product_factor;

    Store at(int64_t offset) const {
        return {out + offset, base == nullptr ? nullptr : base + offset, base_factor, product_factor};
    }
};

// A stretch of the sum over k: `resume` goes on from what `out` holds, `finish` applies the factors.
struct Stretch {
    int64_t depth;
    bool resume;
    bool finish;
};

// sum_k p[k, i] q[k, j] for R rows i and V vectors of columns j; rows of p are p_width apart, of q and out, width.
template <int R, int V>
inline void tile(const Stretch stretch, const float *p, int64_t p_width, const float *q, int64_t width, const Store s) {
    Vector sum[R][V];
    const float *begun = s.out;
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i, begun = next_row(begun, width)) {
#pragma GCC unroll 3
        for (int v = 0; v < V; ++v) sum[i][v] = stretch.resume ? load(begun + v * kVector) : broadcast(0.0f);
    }
    for (int64_t k = 0; k < stretch.depth; ++k, p += p_width, q += width) {
        Vector row[V];
#pragma GCC unroll 3
        for (int v = 0; v < V; ++v) row[v] = load_once(q + v * kVector);
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
            const Vector factor = broadcast(p[i]);
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

template <int V, int R = kTileRows>
inline void tile_rows(int64_t rows, const Stretch &stretch, const float *p, int64_t p_width, const float *q, int64_t width,
                      const Store &s) {
    if constexpr (R > 0) {
        if (rows >= R) return tile<R, V>(stretch, p, p_width, q, width, s);
        tile_rows<V, R - 1>(rows, stretch, p, p_width, q, width, s);
    }
}

// One row of tiles: `rows` <= kTileRows, columns from `from` (a multiple of kVector) to width.
template <int V = kTileVectors>
inline void tile_columns(int64_t rows, int64_t from, const Stretch &stretch, const float *p, int64_t p_width, const float *q,
                         int64_t width, const Store &s) {
    if constexpr (V > 0) {
        int64_t j = from;
        for (; j + V * kVector <= width; j += V * kVector) tile_rows<V>(rows, stretch, p, p_width, q + j, width, s.at(j));
        if (j < width) tile_columns<V - 1>(rows, j, stretch, p, p_width, q, width, s);
    }
}

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Of blocks of 8 x 8; those on the diagonal are whole already, see kDiagonal.
void mirror_upper(float *a, int64_t width) {
    for (int64_t i = 0; i < width; i += 8) {
        for (int64_t j = i + 8; j < width; j += 8) transpose8(a + i * width + j, width, a + j * width + i, width);
    }
}

// Tile columns start at a multiple of this, so that every tile reaches back to its 8 x 8 block on the diagonal.
constexpr int64_t kDiagonal = kVector < 8 ? 8 : kVector;

// Rows of Q that fit the first-level cache together while every tile passes over them.
constexpr int64_t kCachedFloats = 8192;

// out = base_factor base + product_factor Q^T Q, symmetric: tiles that touch the upper triangle, then a mirror.
void symmetric_product(int64_t side, int64_t width, int64_t depth, const float *q, const Store &s) {
    const int64_t stretch_depth = kCachedFloats / width;
    for (int64_t k = 0; k < depth; k += stretch_depth) {
        const Stretch stretch{smaller(stretch_depth, depth - k), k > 0, k + stretch_depth >= depth};
        const float *rows = q + k * width;
        for (int64_t i = 0; i < side; i += kTileRows) {
            const int64_t from = i / kDiagonal * kDiagonal;
            tile_columns(smaller(kTileRows, side - i), from, stretch, rows + i, width, rows, width, s.at(i * width));
        }
    }
    mirror_upper(s.out, width);
}

}  // namespace

void FCM_JOIN(schulz_load_, FCM_ISA)(const SmallSchulz &w, const float *x, int64_t rows, int64_t cols, double factor) {
    const auto scaled = [factor](float value) { return static_cast<float>(static_cast<double>(value) * factor); };
    if (rows > cols) {  // already tall: Y is X as it stands
        for (int64_t i = 0; i < rows; ++i) {
            float *to = w.y + i * w.width;
            for (int64_t j = 0; j < cols; ++j) to[j] = scaled(x[i * cols + j]);
            for (int64_t j = cols; j < w.width; ++j) to[j] = 0.0f;
        }
    } else {
        alignas(64) float strip[8 * 8];
        for (int64_t j = 0; j < cols; j += 8) {
            const int64_t wide = smaller(8, cols - j);
            for (int64_t i = 0; i < w.width; i += 8) {
                if (wide < 8 || i + 8 > rows) std::memset(strip, 0, sizeof strip);
                for (int64_t r = 0; r < 8 && i + r < rows; ++r) {
                    const float *from = x + (i + r) * cols + j;
                    if (wide == 8) {
                        for (int64_t c = 0; c < 8; ++c) strip[r * 8 + c] = scaled(from[c]);
                    } else {
                        for (int64_t c = 0; c < wide; ++c) strip[r * 8 + c] = scaled(from[c]);
                    }
                }
                float *to = w.y + j * w.width + i;
                if (wide == 8) {
                    transpose8(strip, 8, to, w.width);
                } else {
                    for (int64_t c = 0; c < wide; ++c) {
                        for (int64_t r = 0; r < 8; ++r) to[c * w.width + r] = strip[r * 8 + c];
                    }
                }
            }
        }
    }
}

void FCM_JOIN(schulz_step_, FCM_ISA)(const SmallSchulz &w, float a, float b, float c) {
    symmetric_product(w.side, w.width, w.length, w.y, Store{w.gram, nullptr, 0.0f, 1.0f});
    symmetric_product(w.side, w.width, w.side, w.gram, Store{w.poly, w.gram, b, c});
    // X = a X + B X, that is Y = a Y + Y B, in place: eight rows at a time are set aside, as they are for `base` and
    // transposed for the product.
    float *set_aside = w.panel;
    float *transposed = w.panel + kSchulzPanel * w.width;
    for (int64_t i = 0; i < w.length; i += kSchulzPanel) {
        const int64_t rows = smaller(kSchulzPanel, w.length - i);
        float *y = w.y + i * w.width;
        std::memcpy(set_aside, y, static_cast<size_t>(rows * w.width) * sizeof(float));
        for (int64_t j = 0; j < w.width; j += 8) {
            transpose8(set_aside + j, w.width, transposed + j * kSchulzPanel, kSchulzPanel);
        }
        for (int64_t r = 0; r < rows; r += kTileRows) {
            tile_columns(smaller(kTileRows, rows - r), 0, Stretch{w.side, false, true}, transposed + r, kSchulzPanel, w.poly,
                         w.width, Store{y + r * w.width, set_aside + r * w.width, a, 1.0f});
        }
    }
}

void FCM_JOIN(schulz_store_, FCM_ISA)(const SmallSchulz &w, int64_t rows, int64_t cols, float *o, float *target,
                                      float step) {
    const auto put = [&](int64_t at, const float *from, int64_t count) {
        if (target != nullptr) {
            for (int64_t j = 0; j < count; ++j) target[at + j] -= step * from[j];
        }
        if (o != nullptr) std::memcpy(o + at, from, static_cast<size_t>(count) * sizeof(float));
    };
    if (rows > cols) {
        for (int64_t i = 0; i < rows; ++i) put(i * cols, w.y + i * w.width, cols);
        return;
    }
    alignas(64) float strip[8 * 8];
    for (int64_t i = 0; i < rows; i += 8) {
        for (int64_t j = 0; j < cols; j += 8) {
            const int64_t wide = smaller(8, cols - j);
            if (wide == 8) {
                transpose8(w.y + j * w.width + i, w.width, strip, 8);
            } else {
                for (int64_t c = 0; c < wide; ++c) {
                    for (int64_t r = 0; r < 8; ++r) strip[r * 8 + c] = w.y[(j + c) * w.width + i + r];
                }
            }
            for (int64_t r = 0; r < smaller(8, rows - i); ++r) put((i + r) * cols + j, strip + r * 8, wide);
        }
    }
}

}  // namespace fcm
