// Newton-Schulz for one matrix with a short side of at most 128, compiled once for each instruction set.
#include "small_schulz.h"

#include <cstring>
#include <type_traits>

#include "tile.h"

namespace fcm {
namespace {

static_assert(kSchulzPad % kVector == 0 && kSchulzPanel % kTileRows == 0, "tiles must fit the padding");

// The number of remaining columns that one tile takes. Four vectors are split into two and two, because a tile of one vector
// has too few sums to keep the multipliers busy.
inline int64_t strip_of(int64_t left) {
    constexpr int64_t most = kTileVectors * kVector;
    return left == most + kVector && kTileVectors > 2 ? left / 2 : smaller(left, most);
}

// A tile of `rows` <= kTileRows and a strip of `columns`.
template <class A, int V = kTileVectors, class P>
inline void strip_tile(int64_t rows, int64_t columns, const Stretch &stretch, const P &p, const float *q, int64_t q_width,
                       const Store &s, int64_t width) {
    if constexpr (V > 0) {
        if (columns == V * kVector) return tile_rows<A, V>(rows, stretch, p, q, q_width, s, width);
        strip_tile<A, V - 1>(rows, columns, stretch, p, q, q_width, s, width);
    }
}

// Tile columns start at a multiple of this, so that every tile includes its 8 x 8 block on the diagonal.
constexpr int64_t kDiagonal = kVector < 8 ? 8 : kVector;

inline int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// The first of the last rows, whose block of columns would fill at most half a vector. There the rows below the diagonal are
// computed, in whole vectors, instead of the columns beside it. Returns the rounded side if there are no such rows.
inline int64_t last_rows(int64_t side) {
    const int64_t last = (side - 1) / kDiagonal * kDiagonal;
    return last > 0 && side - last <= kDiagonal / 2 ? last : round_up(side, kDiagonal);
}

// Copies the computed side of the diagonal to the other one in blocks of 8 x 8; the blocks on the diagonal are complete.
void mirror(float *a, int64_t side, int64_t pitch) {
    const int64_t last = last_rows(side);
    for (int64_t i = 0; i < side; i += 8) {
        if (i < last) {
            for (int64_t j = i + 8; j < smaller(last, side); j += 8) transpose8(a + i * pitch + j, pitch, a + j * pitch + i, pitch);
        } else {
            for (int64_t j = 0; j < i; j += 8) transpose8(a + i * pitch + j, pitch, a + j * pitch + i, pitch);
        }
    }
}

// The floats of Q that stay in the L1 cache while every tile reads them.
constexpr int64_t kCachedFloats = 8192;
static_assert(kCachedFloats <= kSchulzPairs && kSchulzPanel * FCM_SMALL_SIDE <= kSchulzPairs, "copies need room");

// Joins `depth` rows of bf16 numbers to pairs.
void join_rows(int64_t depth, int64_t width, const float *rows, int64_t rows_width, float *pairs, int64_t pairs_width) {
    for (int64_t k = 0; k < depth; k += 2, rows += 2 * rows_width, pairs += pairs_width) {
        for (int64_t i = 0; i < width; i += kSchulzPad) {
            join<kSchulzPad>(rows + i, k + 1 < depth ? rows + rows_width + i : nullptr, pairs + i);
        }
    }
}

// Takes the upper halves of a row of `width` floats, a multiple of kSchulzPad, so that its pairs are neighbours in the row.
inline void join_columns(int64_t width, const float *row, float *pairs) {
    typedef uint32_t Wide __attribute__((vector_size(kSchulzPad * sizeof(uint32_t))));
    typedef uint16_t Narrow __attribute__((vector_size(kSchulzPad * sizeof(uint16_t))));
    for (int64_t i = 0; i < width; i += kSchulzPad) {
        Wide bits;
        std::memcpy(&bits, row + i, sizeof bits);
        const Narrow halves = __builtin_convertvector(bits >> 16, Narrow);
        std::memcpy(pairs + i / 2, &halves, sizeof halves);
    }
}

// Rounds `count` floats, a multiple of kSchulzPad; from one place to another, or in place.
void round_to_tf32(int64_t count, const float *from, float *to) {
    for (int64_t i = 0; i < count; i += kVector) store(to + i, to_tf32(load(from + i)));
}

// Whether operands are joined to pairs before they are multiplied.
template <class A>
constexpr bool kJoins = kPairs && std::is_same_v<A, Bf16Pairs>;
// Whether rounded copies of them are multiplied.
template <class A>
constexpr bool kCopies = std::is_same_v<A, Tf32>;

// out = base_factor base + product_factor Q^T Q, which is symmetric: the tiles that touch one triangle are computed, then
// mirrored. Q has rows of `q_width` floats, out and base have rows of w.pitch floats.
template <class A>
void symmetric_product(const SmallSchulz &w, int64_t depth, const float *q, int64_t q_width, const Store &s) {
    int64_t stretch_depth = kCachedFloats / w.width;
    if constexpr (kJoins<A>) stretch_depth *= 2;
    if constexpr (A::kDepth == 2) stretch_depth = stretch_depth / 2 * 2;
    const int64_t last = last_rows(w.side);
    const int64_t columns = round_up(w.side, kVector);
    for (int64_t k = 0; k < depth; k += stretch_depth) {
        Stretch stretch{smaller(stretch_depth, depth - k), k > 0, k + stretch_depth >= depth};
        const float *rows = q + k * q_width;
        int64_t width = q_width;
        if constexpr (kJoins<A>) {
            join_rows(stretch.depth, w.width, rows, q_width, w.pairs, w.width);
            rows = w.pairs;
            width = w.width;
            stretch.depth = (stretch.depth + 1) / 2;
        } else if constexpr (kCopies<A>) {
            for (int64_t r = 0; r < stretch.depth; ++r) round_to_tf32(w.width, rows + r * q_width, w.pairs + r * w.width);
            rows = w.pairs;
            width = w.width;
        }
        for (int64_t i = 0; i < w.side; i += kTileRows) {
            const int64_t to = i < last ? smaller(last, columns) : columns;
            for (int64_t strip, j = i < last ? i / kDiagonal * kDiagonal : 0; j < to; j += strip) {
                strip = strip_of(to - j);
                strip_tile<A>(smaller(kTileRows, w.side - i), strip, stretch, PackedFactor{rows + i, width}, rows + j, width,
                              s.at(i * w.pitch + j), w.pitch);
            }
        }
    }
    mirror(s.out, w.side, w.pitch);
}

template <class A>
__attribute__((noinline)) void step_in(const SmallSchulz &w, float a, float b, float c) {
    symmetric_product<A>(w, w.length, w.y, w.width, Store{w.gram, nullptr, 0.0f, 1.0f});
    symmetric_product<A>(w, w.side, w.gram, w.pitch, Store{w.poly, w.gram, b, c});
    // X = a X + B X, that is Y = a Y + Y B, in place: a panel of rows is copied aside, and each strip of columns of B is
    // applied to it while the panel is in the L1 cache.
    const int64_t columns = round_up(w.side, kVector);
    const float *poly = w.poly;
    float *joined = w.pairs + w.width / 2 * w.pitch;
    if constexpr (kJoins<A>) {
        join_rows(w.side, w.width, w.poly, w.pitch, w.pairs, w.pitch);
        poly = w.pairs;
    } else if constexpr (kCopies<A>) {
        round_to_tf32(w.width * w.pitch, w.poly, w.poly);
    }
    for (int64_t i = 0; i < w.length; i += kSchulzPanel) {
        const int64_t rows = smaller(kSchulzPanel, w.length - i);
        float *y = w.y + i * w.width;
        std::memcpy(w.panel, y, static_cast<size_t>(rows * w.width) * sizeof(float));
        Factor factor{w.panel, 1, w.width};
        int64_t depth = w.side;
        if constexpr (kJoins<A>) {
            join_columns(rows * w.width, w.panel, joined);
            factor = Factor{joined, 1, w.width / 2};
            depth = (w.side + 1) / 2;
        } else if constexpr (kCopies<A>) {
            round_to_tf32(rows * w.width, w.panel, w.pairs);
            factor.at = w.pairs;
        }
        for (int64_t strip, j = 0; j < columns; j += strip) {
            strip = strip_of(columns - j);
            for (int64_t r = 0; r < rows; r += kTileRows) {
                strip_tile<A>(smaller(kTileRows, rows - r), strip, Stretch{depth, false, true},
                              Factor{factor.at + r * factor.across, 1, factor.across}, poly + j, w.pitch,
                              Store{y + r * w.width + j, w.panel + r * w.width + j, a, 1.0f}, w.width);
            }
        }
    }
}

// Called before the first product; every product keeps the padding zero.
void clear_padding(const SmallSchulz &w, float *square) {
    for (int64_t i = 0; i < w.width; ++i) {
        const int64_t from = i < w.side ? w.side : 0;
        std::memset(square + i * w.pitch + from, 0, static_cast<size_t>(w.pitch - from) * sizeof(float));
    }
}

}  // namespace

void FCM_JOIN(schulz_load_, FCM_ISA)(const SmallSchulz &w, const float *x, int64_t rows, int64_t cols, double factor) {
    const auto scaled = [factor](float value) { return static_cast<float>(static_cast<double>(value) * factor); };
    clear_padding(w, w.gram);
    clear_padding(w, w.poly);
    if (rows > cols) {  // already tall: Y is X itself
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
    if (w.precision == FCM_BF16) {
        for (int64_t i = 0; i < w.length * w.width; i += kVector) store(w.y + i, to_bf16(load(w.y + i)));
    }
}

void FCM_JOIN(schulz_step_, FCM_ISA)(const SmallSchulz &w, float a, float b, float c) {
    if (w.precision == FCM_BF16) {
        const FlushDenormals flush;
        step_in<Bf16Pairs>(w, a, b, c);
    } else if (w.precision == FCM_TF32) {
        step_in<Tf32>(w, a, b, c);
    } else {
        step_in<Fp32>(w, a, b, c);
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
