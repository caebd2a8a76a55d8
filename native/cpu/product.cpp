// The parts of a blocked matrix product, compiled once for each instruction set. multiply.cpp combines them.
#include "product.h"

#include <type_traits>

#include "tile.h"

namespace fcm {
namespace {

constexpr int kTileColumns = kTileVectors * kVector;
static_assert(kProductPanel % kTileColumns == 0 && kProductRows % kTileRows == 0, "tiles must fit the blocks");

// to[k * width + i] = from(i, k) for `count` <= width vectors i, the rest zero; from(i, k) = from[i * step + k * along].
void pack(int64_t count, int64_t width, int64_t depth, const float *from, int64_t step, int64_t along, float *to) {
    if (step == 1) {  // the vectors are interleaved: whole rows are copied
        for (int64_t k = 0; k < depth; ++k) {
            std::memcpy(to + k * width, from + k * along, static_cast<size_t>(count) * sizeof(float));
            for (int64_t i = count; i < width; ++i) to[k * width + i] = 0.0f;
        }
        return;
    }
    for (int64_t i = 0; i < width; i += 8) {
        int64_t k = 0;
        if (along == 1 && i + 8 <= count && i + 8 <= width) {  // contiguous vectors: 8 x 8 blocks are transposed
            for (; k + 8 <= depth; k += 8) transpose8(from + i * step + k, step, to + k * width + i, width);
        }
        for (; k < depth; ++k) {
            for (int64_t v = i; v < smaller(i + 8, width); ++v) {
                to[k * width + v] = v < count ? from[v * step + k * along] : 0.0f;
            }
        }
    }
}

// The same, rounded to the precision of the product; where there are instructions for pairs, with half the depth. It goes by
// way of a buffer that stays in the L1 cache.
template <int Width>
void pack_for(const Product &p, int64_t count, int64_t depth, const float *from, int64_t step, int64_t along, float *to) {
    if (p.precision == FCM_FP32) return pack(count, Width, depth, from, step, along, to);
    constexpr int64_t kPart = 32;
    static_assert(kProductDepth % kPart == 0 && kPart * Width % kVector == 0, "whole vectors and whole pairs");
    alignas(64) float part[kPart * Width];
    for (int64_t k = 0; k < depth; k += kPart) {
        const int64_t rows = smaller(kPart, depth - k);
        pack(count, Width, rows, from + k * along, step, along, part);
        for (int64_t i = rows * Width; i % kVector != 0; ++i) part[i] = 0.0f;  // what the last vector has beyond the rows
        if (p.precision == FCM_TF32) {
            for (int64_t i = 0; i < rows * Width; i += kVector) store(part + i, to_tf32(load(part + i)));
        } else {
            for (int64_t i = 0; i < rows * Width; i += kVector) store(part + i, to_bf16(load(part + i)));
        }
        if (p.precision == FCM_TF32 || !kPairs) {
            std::memcpy(to + k * Width, part, static_cast<size_t>(rows * Width) * sizeof(float));
            continue;
        }
        constexpr int kBlock = Width % 16 == 0 ? 16 : Width;
        for (int64_t r = 0; r < rows; r += 2) {
            for (int64_t i = 0; i < Width; i += kBlock) {
                const float *first = part + r * Width + i;
                join<kBlock>(first, r + 1 < rows ? first + Width : nullptr, to + (k + r) / 2 * Width + i);
            }
        }
    }
}

// A tile that extends beyond the edge of the result is computed in a local buffer.
template <class A>
void edge_tile(const Product &p, int64_t row, int64_t rows, int64_t col, const Stretch &stretch, const float *left,
               const float *right) {
    alignas(64) float sums[kTileRows * kTileColumns] = {};
    const int64_t cols = smaller(kTileColumns, p.cols - col);
    const size_t bytes = static_cast<size_t>(cols) * sizeof(float);
    for (int64_t i = 0; i < rows && stretch.resume; ++i) {
        std::memcpy(sums + i * kTileColumns, p.out + (row + i) * p.cols + col, bytes);
    }
    tile_rows<A, kTileVectors>(rows, Stretch{stretch.depth, stretch.resume, false}, PackedFactor{left, kTileRows}, right,
                               kProductPanel, Store{sums, nullptr, 0.0f, 1.0f}, kTileColumns);
    if (stretch.finish) {  // on the whole tile with vector arithmetic: edges must round in the same way
        alignas(64) float base[kTileRows * kTileColumns] = {};
        for (int64_t i = 0; i < rows && p.base != nullptr; ++i) {
            std::memcpy(base + i * kTileColumns, p.base + (row + i) * p.cols + col, bytes);
        }
        for (int64_t j = 0; j < kTileRows * kTileColumns; j += kVector) {
            Vector value = multiply(broadcast(p.product_factor), load(sums + j));
            if (p.base != nullptr) value = multiply_add(broadcast(p.base_factor), A::base(load(base + j)), value);
            store(sums + j, A::result(value));
        }
    }
    for (int64_t i = 0; i < rows; ++i) std::memcpy(p.out + (row + i) * p.cols + col, sums + i * kTileColumns, bytes);
}

template <class A>
__attribute__((noinline)) void rows_in(const Product &p, int64_t row, int64_t rows, int64_t k, int64_t depth, const float *left,
                                       const float *right) {
    const int64_t packed_depth = kPairs && std::is_same_v<A, Bf16Pairs> ? (depth + 1) / 2 : depth;
    const Stretch stretch{packed_depth, k > 0, k + depth == p.depth};
    const int64_t first = p.symmetric ? row / kTileColumns * kTileColumns : 0;
    for (int64_t col = first; col < p.cols; col += kTileColumns) {
        const float *columns = right + col / kProductPanel * kProductPanel * depth + col % kProductPanel;
        for (int64_t i = 0; i < rows; i += kTileRows) {
            const int64_t at = row + i;
            if (p.symmetric && col + kTileColumns <= at) break;  // this tile and those below it are mirrored
            const int64_t height = smaller(kTileRows, rows - i);
            const float *packed = left + i * depth;
            // Without a base, edge_tile applies the factor as well: the case is too rare for another kind of tile.
            if (col + kTileColumns > p.cols || height < kTileRows || (p.base == nullptr && p.product_factor != 1.0f)) {
                edge_tile<A>(p, at, height, col, stretch, packed, columns);
            } else {
                const Store s{p.out + at * p.cols + col, p.base == nullptr ? nullptr : p.base + at * p.cols + col,
                              p.base_factor, p.product_factor};
                tile<A, kTileRows, kTileVectors>(stretch, PackedFactor{packed, kTileRows}, columns, kProductPanel, s, p.cols);
            }
        }
    }
}

}  // namespace

void FCM_JOIN(product_pack_left_, FCM_ISA)(const Product &p, int64_t row, int64_t rows, int64_t k, int64_t depth,
                                           float *packed) {
    for (int64_t i = 0; i < rows; i += kTileRows, packed += kTileRows * depth) {
        pack_for<kTileRows>(p, smaller(kTileRows, rows - i), depth, p.a + (row + i) * p.a_row + k * p.a_col, p.a_row, p.a_col,
                            packed);
    }
}

void FCM_JOIN(product_pack_right_, FCM_ISA)(const Product &p, int64_t col, int64_t k, int64_t depth, float *packed) {
    pack_for<kProductPanel>(p, smaller(kProductPanel, p.cols - col), depth, p.b + col * p.b_col + k * p.b_row, p.b_col,
                            p.b_row, packed);
}

void FCM_JOIN(product_rows_, FCM_ISA)(const Product &p, int64_t row, int64_t rows, int64_t k, int64_t depth,
                                      const float *left, const float *right) {
    if (p.precision == FCM_BF16) {
        const FlushDenormals flush;
        rows_in<Bf16Pairs>(p, row, rows, k, depth, left, right);
    } else {  // the factors of tf32 have been rounded already
        rows_in<Fp32>(p, row, rows, k, depth, left, right);
    }
}

void FCM_JOIN(product_mirror_, FCM_ISA)(const Product &p, int64_t row, int64_t rows) {
    const int64_t n = p.cols;
    const auto one = [&](int64_t i, int64_t j) { p.out[j * n + i] = p.out[i * n + j]; };
    for (int64_t i = row; i < row + rows; i += 8) {
        const int64_t height = smaller(8, row + rows - i);
        for (int64_t r = 0; r < height; ++r) {  // next to the diagonal, element by element
            for (int64_t j = i + r + 1; j < smaller(i + 8, n); ++j) one(i + r, j);
        }
        for (int64_t j = i + 8; j < n; j += 8) {
            if (height == 8 && j + 8 <= n) {
                transpose8(p.out + i * n + j, n, p.out + j * n + i, n);
            } else {
                for (int64_t r = 0; r < height; ++r) {
                    for (int64_t c = j; c < smaller(j + 8, n); ++c) one(i + r, c);
                }
            }
        }
    }
}

void FCM_JOIN(round_to_bf16_, FCM_ISA)(int64_t n, float *x) {
    int64_t i = 0;
    for (; i + kVector <= n; i += kVector) store(x + i, to_bf16(load(x + i)));
    if (i == n) return;
    float last[kVector] = {};
    const auto bytes = static_cast<size_t>(n - i) * sizeof(float);
    std::memcpy(last, x + i, bytes);
    store(last, to_bf16(load(last)));
    std::memcpy(x + i, last, bytes);
}

}  // namespace fcm
