// Tiles of a product: which part of a result a block of threads computes, and which elements of it a thread.
//
//   a result      128 x 128 tiles, of a symmetric one those of the upper triangle; at the right and at the lower edge a tile is
//                 64 wide or high if no more is left
//   a tile        8 warps, 4 down and 2 across; a warp is 4 x 8 lanes, so that its loads of both factors are short
//   a thread      patches of 4 x 4 elements: one, or two 64 rows apart, or two 64 columns apart, or four
//   depth         slices of 16, in two buffers of shared memory: the next one is copied while this one is multiplied
//
// A slice is stored as slice[k][i] for both factors, so that a thread reads its four rows or columns as one vector.
#pragma once

#include "async_copy.h"
#include "device.h"

namespace fcm {

constexpr int kTile = 128;
constexpr int kHalfTile = kTile / 2;
constexpr int kSlice = 16;
constexpr int kPatch = 4;
constexpr int kTilePad = 4;  // keeps rows aligned for vectors, and distributes the columns of a slice over the banks
constexpr int kAcross = kHalfTile / kPatch;  // threads along each side
static_assert(kAcross * kAcross == kThreads, "each thread has a patch of half a tile");

using Slice = float[kSlice][kTile + kTilePad];
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

// The first row and the first column of a thread's patch within half a tile.
__device__ __forceinline__ int patch_row() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return kPatch * (warp / 2 * 4 + lane / 8);
}
__device__ __forceinline__ int patch_col() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return kPatch * (warp % 2 * 8 + lane % 8);
}

// A factor of a product: V(i, k) = base[i * step + k * along], for `count` vectors i and `depth` elements k.
struct Factor {
    const float *base;
    int64_t step;
    int64_t along;
    int64_t count;
    int64_t depth;
};

// Copies slice[d][i] = V(from + i, k + d) for `height` vectors; those that do not exist are zeros. What follows the last
// element of the depth is not written.
__device__ __forceinline__ void fetch_slice(Slice &slice, const Factor &f, int64_t from, int height, int64_t k) {
    const int thread = static_cast<int>(threadIdx.x);
    const int vectors = f.count - from < height ? static_cast<int>(f.count - from) : height;
    const int deep = f.depth - k < kSlice ? static_cast<int>(f.depth - k) : kSlice;
    const float *start = f.base + from * f.step + k * f.along;
    const auto one = [&](int d, int i) {
        if (d >= deep) return;
        if (i < vectors) {
            copy_async4(&slice[d][i], start + i * f.step + d * f.along);
        } else {
            slice[d][i] = 0.0f;
        }
    };
    if (f.step == 1 && f.along % 4 == 0 && reinterpret_cast<uintptr_t>(start) % 16 == 0) {
        // Four vectors at a time; a warp reads whole rows.
        const int quads = height / 4;
        for (int e = thread; e < kSlice * quads; e += kThreads) {
            const int d = e / quads;
            const int i = 4 * (e - d * quads);
            if (d < deep && i + 4 <= vectors) {
                copy_async16(&slice[d][i], start + i + d * f.along);
            } else {
                for (int j = i; j < i + 4; ++j) one(d, j);
            }
        }
    } else if (f.step == 1) {
        for (int e = thread; e < kSlice * height; e += kThreads) one(e / height, e % height);
    } else {
        // A warp reads 8 neighbouring elements, one sector, of 4 vectors, and stores them to 32 different banks.
        for (int e = thread; e < kSlice * height; e += kThreads) one(e % 8 + e / 32 % 2 * 8, e / 8 % 4 + e / 64 * 4);
    }
}

// sum += the products of `deep` elements of a slice, for the patches of a thread: P x Q of them.
template <int P, int Q>
__device__ __forceinline__ void add_slice(float (&sum)[P * kPatch][Q * kPatch], const Slice &a, const Slice &b, int deep,
                                          int row, int col) {
#pragma unroll(P * Q == 4 ? 2 : 4)
    for (int d = 0; d < deep; ++d) {
        float rows[P][kPatch], cols[Q][kPatch];
#pragma unroll
        for (int p = 0; p < P; ++p) load<kPatch>(&a[d][row + p * kHalfTile], rows[p]);
#pragma unroll
        for (int q = 0; q < Q; ++q) load<kPatch>(&b[d][col + q * kHalfTile], cols[q]);
#pragma unroll
        for (int i = 0; i < P * kPatch; ++i) {
#pragma unroll
            for (int j = 0; j < Q * kPatch; ++j) {
                sum[i][j] = fmaf(rows[i / kPatch][i % kPatch], cols[j / kPatch][j % kPatch], sum[i][j]);
            }
        }
    }
}

}  // namespace fcm
