// Tiles of fp32, each element one chain of fused multiply-adds in the order of k.
//
//   a tile        8 warps, 4 down and 2 across; a warp is 4 x 8 lanes, so that its loads of both factors are short
//   a thread      patches of 4 x 4 elements: one, or two 64 rows apart, or two 64 columns apart, or four
//   depth         slices of 16, in two buffers of shared memory: the next one is copied while this one is multiplied
//
// A slice is stored as slice[k][i] for both factors, so that a thread reads its four rows or columns as one vector.
#pragma once

#include "async_copy.h"
#include "tiles.h"

namespace fcm {

constexpr int kSlice = 16;
constexpr int kPatch = 4;
constexpr int kAcross = kHalfTile / kPatch;  // threads along each side
static_assert(kAcross * kAcross == kThreads, "each thread has a patch of half a tile");

using Slice = float[kSlice][kTile + kTilePad];

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

// Copies slice[d][i] = V(from + i, k + d) for H vectors; those that do not exist are zeros. What follows the last element of the
// depth is not written. A thread has one column or one row of the slice and takes steps along the other, so that an address is an
// addition.
template <int H>
__device__ __forceinline__ void fetch_slice(Slice &slice, const Factor<float> &f, int64_t from, int k) {
    const int thread = thread_index();
    const int vectors = f.count - from < H ? static_cast<int>(f.count - from) : H;
    const int deep = static_cast<int>(f.depth) - k;
    const float *start = f.base + from * f.step + k * f.along;
    if (f.step != 1) {
        // A warp reads 8 neighbouring elements, one sector, of 4 vectors, and stores them to 32 different banks.
        constexpr int kStep = kThreads / kSlice;
        const int d = thread % 8 + thread / 32 % 2 * 8;
        if (d >= deep) return;
        int i = thread / 8 % 4 + thread / 64 * 4;
        const float *at = start + i * f.step + d * f.along;
        const int64_t ahead = kStep * f.step;
#pragma unroll
        for (int n = 0; n < H / kStep; ++n, i += kStep, at += ahead) {
            if (i < vectors) {
                copy_async4(&slice[d][i], at);
            } else {
                slice[d][i] = 0.0f;
            }
        }
    } else if (f.along % 4 == 0 && is_vector_aligned(start)) {
        // Four vectors at a time; a warp reads whole rows.
        constexpr int kQuads = H / 4;
        constexpr int kStep = kThreads / kQuads;
        const int i = thread % kQuads * 4;
        const int bytes = vectors - i >= 4 ? 16 : vectors > i ? 4 * (vectors - i) : 0;
        int d = thread / kQuads;
        const float *at = start + i + d * f.along;
        const int64_t ahead = kStep * f.along;
#pragma unroll
        for (int n = 0; n < kSlice / kStep; ++n, d += kStep, at += ahead) {
            if (d < deep) copy_async16(&slice[d][i], at, bytes);
        }
    } else {
        constexpr int kStep = kThreads / H;
        const int i = thread % H;
        int d = thread / H;
        const float *at = start + i + d * f.along;
        const int64_t ahead = kStep * f.along;
#pragma unroll 1
        for (int n = 0; n < kSlice / kStep; ++n, d += kStep, at += ahead) {
            if (d >= deep) return;
            if (i < vectors) {
                copy_async4(&slice[d][i], at);
            } else {
                slice[d][i] = 0.0f;
            }
        }
    }
}

// sum += the products of the elements d of a slice, for the patches of a thread: P x Q of them.
template <int P, int Q>
__device__ __forceinline__ void add_element(float (&sum)[P * kPatch][Q * kPatch], const Slice &a, const Slice &b, int d, int row,
                                            int col) {
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

// The same for `deep` elements. A whole slice needs no index.
template <int P, int Q>
__device__ __forceinline__ void add_slice(float (&sum)[P * kPatch][Q * kPatch], const Slice &a, const Slice &b, int deep) {
    const int row = patch_row();
    const int col = patch_col();
    if (deep >= kSlice) {
#pragma unroll 16
        for (int d = 0; d < kSlice; ++d) add_element<P, Q>(sum, a, b, d, row, col);
    } else {
#pragma unroll 1
        for (int d = 0; d < deep; ++d) add_element<P, Q>(sum, a, b, d, row, col);
    }
}

// Stores the patches of all threads, a quarter of the tile at a time; returns whether a value of this thread's is not finite.
template <int P, int Q>
__device__ __forceinline__ bool store_tile(const TileWork<float> &t, Stage &stage, const float (&sum)[P * kPatch][Q * kPatch]) {
    bool bad = false;
#pragma unroll
    for (int p = 0; p < P; ++p) {
#pragma unroll
        for (int q = 0; q < Q; ++q) {
#pragma unroll
            for (int i = 0; i < kPatch; ++i) {
                const float row[kPatch] = {sum[p * kPatch + i][q * kPatch], sum[p * kPatch + i][q * kPatch + 1],
                                           sum[p * kPatch + i][q * kPatch + 2], sum[p * kPatch + i][q * kPatch + 3]};
                store<kPatch>(&stage[patch_row() + i][patch_col()], row);
            }
            __syncthreads();
            // The rounded edges of a triangle lie below the diagonal.
            bad = store_quarter(t, stage, t.top + p * kHalfTile, t.left + q * kHalfTile) || bad;
            __syncthreads();
        }
    }
    return bad;
}

// What a block keeps in shared memory: slices of the factors, then the result.
union TileRoom {
    struct {
        Slice a[2];
        Slice b[2];
    } slices;
    Stage stage;
};

template <int P, int Q>
__device__ __forceinline__ bool product_tile(const TileWork<float> &t, TileRoom &room) {
    const auto depth = static_cast<int>(t.a.depth);  // sides are below 2^31
    float sum[P * kPatch][Q * kPatch] = {};
    auto &a = room.slices.a;
    auto &b = room.slices.b;
    fetch_slice<P * kHalfTile>(a[0], t.a, t.top, 0);
    fetch_slice<Q * kHalfTile>(b[0], t.b, t.left, 0);
    commit_copies();
    int now = 0;
#pragma unroll 1
    for (int k = 0; k < depth; k += kSlice) {
        if (k + kSlice < depth) {
            fetch_slice<P * kHalfTile>(a[1 - now], t.a, t.top, k + kSlice);
            fetch_slice<Q * kHalfTile>(b[1 - now], t.b, t.left, k + kSlice);
            commit_copies();
            wait_copies<1>();
        } else {
            wait_copies<0>();
        }
        __syncthreads();
        // What follows the last element is skipped, because adding zeros would turn a sum of -0 into 0.
        add_slice<P, Q>(sum, a[now], b[now], depth - k);
        __syncthreads();
        now = 1 - now;
    }
    return store_tile<P, Q>(t, room.stage, sum);
}

__device__ __forceinline__ bool any_tile(const TileWork<float> &t, TileRoom &room) {
    const bool high = t.rows - t.top > kHalfTile;
    const bool wide = t.cols - t.left > kHalfTile;
    if (high && wide) return product_tile<2, 2>(t, room);
    if (high) return product_tile<2, 1>(t, room);
    if (wide) return product_tile<1, 2>(t, room);
    return product_tile<1, 1>(t, room);
}

}  // namespace fcm
