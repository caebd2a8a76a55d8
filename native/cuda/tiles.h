// Tiles of a product: which part of a result a block of threads computes, and how it is stored.
//
//   a result      128 x 128 tiles, of a symmetric one those of the upper triangle; at the right and at the lower edge a tile is
//                 64 wide or high if no more is left
//   a tile        8 warps; how they divide it, and the depth, is up to the kernel (products.cu, mma_tiles.h)
//   storing       a quarter of a tile, 64 x 64, at a time, through shared memory
#pragma once

#include "bf16.h"
#include "device.h"
#include "products.h"
#include "sums.h"

namespace fcm {

constexpr int kTile = 128;
constexpr int kHalfTile = kTile / 2;
constexpr int kTilePad = 4;  // keeps rows aligned for vectors, and distributes columns over the banks

using Stage = float[kHalfTile][kHalfTile + kTilePad];  // a quarter of the result, on its way to memory

// The tiles of the upper triangle, row by row: their number, and the position of tile `t`.
__host__ __device__ inline int64_t triangle(int64_t side) { return side % 2 == 0 ? side / 2 * (side + 1) : (side + 1) / 2 * side; }

__device__ __forceinline__ void triangle_place(int64_t t, int64_t side, int64_t &row, int64_t &col) {
    // The rows before `row` hold row * side - row (row - 1) / 2 tiles. The square root may be off by one; this is corrected
    // below.
    const double b = 2.0 * static_cast<double>(side) + 1.0;
    row = static_cast<int64_t>((b - sqrt(b * b - 8.0 * static_cast<double>(t))) / 2.0);
    while (row > 0 && row * side - row * (row - 1) / 2 > t) --row;
    while ((row + 1) * side - (row + 1) * row / 2 <= t) ++row;
    col = row + t - (row * side - row * (row - 1) / 2);
}

// A factor of a product: V(i, k) = base[i * step + k * along], for `count` vectors i and `depth` elements k.
template <class Element>
struct Factor {
    const Element *base;
    int64_t step;
    int64_t along;
    int64_t count;
    int64_t depth;
};

// The last entry that begins at or before `tile`.
__device__ __forceinline__ const ProductEntry &product_at(const Products &p, int64_t tile) {
    return p.listed == nullptr ? p.single : p.listed[entry_at(p.listed, p.count, &ProductEntry::first_tile, tile)];
}

// Where a tile of a client's product reads and writes. In shared memory, because keeping it would occupy registers that the sums
// need.
template <class Element>
struct TileWork {
    Factor<Element> a;
    Factor<Element> b;
    const Element *base;  // may be null
    Element *out;
    Element *also;  // may be null
    int64_t pitch;        // of these three
    float product_factor;
    float base_factor;
    float diagonal;
    int64_t rows;
    int64_t cols;
    int64_t top;
    int64_t left;
    unsigned *flag;  // may be null
    bool symmetric;
};

template <class Element>
__device__ __forceinline__ TileWork<Element> tile_of(const Products &p, int64_t task) {
    const ProductEntry &entry = product_at(p, task / p.clients);
    // The tiles of a matrix follow each other, because they share its rows and columns.
    const int64_t local = task - entry.first_tile * p.clients;
    const int64_t client = local / entry.tiles;
    const int64_t tile = local - client * entry.tiles;
    const int64_t across = parts_of(entry.cols, kTile);
    int64_t row = tile / across;
    int64_t col = tile - row * across;
    if (entry.symmetric != 0) triangle_place(tile, across, row, col);
    const auto *a = static_cast<const Element *>(p.a) + client * p.a_stride;
    const auto *b = static_cast<const Element *>(p.b) + client * p.b_stride;
    const auto *base = static_cast<const Element *>(p.base) + client * p.base_stride;
    auto *out = static_cast<Element *>(p.out) + client * p.out_stride;
    return {{a + entry.a, entry.a_row, entry.a_col, entry.rows, entry.depth},
            {b + entry.b, entry.b_col, entry.b_row, entry.cols, entry.depth},
            entry.base < 0 ? nullptr : base + entry.base,
            out + entry.out,
            entry.also < 0 ? nullptr : out + entry.also,
            entry.pitch,
            entry.product_factor,
            entry.base_factor,
            entry.diagonal,
            entry.rows,
            entry.cols,
            row * kTile,
            col * kTile,
            entry.matrix < 0 ? nullptr : p.flags + client * p.flag_stride + entry.matrix,
            entry.symmetric != 0};
}

// value = base_factor base + product_factor sum for a quarter of a tile that is staged, and stores it. Threads run along the rows,
// so that memory is accessed in whole sectors wherever the matrix begins. Returns whether a value is not finite.
template <class Element>
__device__ __forceinline__ bool store_quarter(const TileWork<Element> &t, Stage &stage, int64_t top, int64_t left) {
    bool bad = false;
    const int thread = thread_index();
    const int rows = t.rows - top < kHalfTile ? static_cast<int>(t.rows - top) : kHalfTile;
    const int cols = t.cols - left < kHalfTile ? static_cast<int>(t.cols - left) : kHalfTile;
    // Of a symmetric result, the elements below the diagonal are mirror images: those of a row i with j < i + below.
    const int below = t.symmetric ? static_cast<int>(top - left) : -kTile;
    constexpr int kRowsAtOnce = kThreads / kHalfTile;
    const int j = thread % kHalfTile;
    if (j < cols) {
        int i = thread / kHalfTile;
        int64_t at = (top + i) * t.pitch + left + j;
#pragma unroll 1
        for (; i < rows; i += kRowsAtOnce, at += kRowsAtOnce * t.pitch) {
            if (j < i + below) continue;
            float value = t.product_factor * stage[i][j];
            if (t.base != nullptr) value = fmaf(t.base_factor, to_float(t.base[at]), value);
            bad = bad || not_finite(value);
            const Element stored = rounded_to<Element>(value);
            t.out[at] = stored;
            stage[i][j] = value;
            if (t.also != nullptr) t.also[at] = j == i + below ? rounded_to<Element>(to_float(stored) + t.diagonal) : stored;
        }
    }
    if (!t.symmetric) return bad;
    __syncthreads();
    // A warp takes 8 rows of 4 columns: one sector of each column, from 32 different banks.
    constexpr int kColsAtOnce = 4;
    const int i = thread % 8 + thread / 32 * 8;
    if (i >= rows) return bad;
    int mirrored = thread / 8 % kColsAtOnce;
    int64_t at = (left + mirrored) * t.pitch + top + i;
#pragma unroll 1
    for (; mirrored < cols; mirrored += kColsAtOnce, at += kColsAtOnce * t.pitch) {
        if (mirrored <= i + below) continue;
        const Element stored = rounded_to<Element>(stage[i][mirrored]);
        t.out[at] = stored;
        if (t.also != nullptr) t.also[at] = stored;
    }
    return bad;
}

}  // namespace fcm
