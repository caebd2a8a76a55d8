// Newton-Schulz of one matrix with a short side of at most 128, compiled once for each instruction set.
#include "small_schulz.h"

#include <cstring>

#include "tile.h"

namespace fcm {
namespace {

static_assert(kSchulzPad % kVector == 0 && kSchulzPanel % kTileRows == 0 && kSchulzPanel == 8, "tiles must fit the padding");

// One row of tiles: `rows` <= kTileRows, columns from `from` (a multiple of kVector) to width.
template <int V = kTileVectors>
inline void tile_columns(int64_t rows, int64_t from, const Stretch &stretch, const float *p, int64_t p_width, const float *q,
                         int64_t width, const Store &s) {
    if constexpr (V > 0) {
        int64_t j = from;
        for (; j + V * kVector <= width; j += V * kVector) tile_rows<V>(rows, stretch, p, p_width, q + j, width, s.at(j), width);
        if (j < width) tile_columns<V - 1>(rows, j, stretch, p, p_width, q, width, s);
    }
}

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
