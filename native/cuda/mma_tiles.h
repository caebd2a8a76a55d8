// Tiles on tensor cores: factors in bf16, or in tf32 rounded from floats, and sums in fp32.
//
//   a tile        8 warps: 4 down and 2 across if it is 128 high, 2 down and 4 across if it is 64 high
//   a warp        32 rows and 64, 32 or 16 columns: 2 x 8, 2 x 4 or 2 x 2 products of 16 x 8, each the depth of two vectors
//   a vector      16 bytes: 8 elements of bf16 or 4 floats; all copies and most loads are vectors
//   depth         slices of 4 vectors, in two buffers of shared memory: the next one is copied while this one is multiplied
//
// A slice is stored as it is in memory: with vectors along the depth, slice[i][k], or, if the matrix is stored the other way
// round, along the rows of the result, slice[k][i]. Vectors are permuted within groups, so that the rows that are loaded
// together lie in different banks.
#pragma once

#include "async_copy.h"
#include "fragments.h"
#include "tiles.h"

#if FCM_TENSOR_CORES
namespace fcm {

constexpr int kVectorBytes = 16;
constexpr int kDeepVectors = 4;  // of a slice with vectors along the depth

template <class Element>
struct MmaSlice {
    static constexpr int kElements = kVectorBytes / static_cast<int>(sizeof(Element));  // of a vector
    static constexpr int kDepth = kDeepVectors * kElements;
    static constexpr int kTileVectors = kTile / kElements;  // of a row with vectors along the rows of the result
    static constexpr int kVectors = kTile * kDeepVectors;

    uint4 vectors[kVectors];

    // Vector v, along the depth, of row i. Two rows fill a line of all banks, so that the permutation changes every two rows.
    __device__ __forceinline__ uint4 *along(int i, int v) { return vectors + i * kDeepVectors + (v ^ (i / 2 % kDeepVectors)); }
    // Vector v, along the rows of the result, of depth d. A fragment takes 8 depths of one vector, or 4 depths of two.
    __device__ __forceinline__ uint4 *across(int d, int v) {
        constexpr int kStep = kElements == 8 ? 1 : 2;
        return vectors + d * kTileVectors + (v ^ (d * kStep % 8));
    }
};

// Copies the vectors [from, from + H) of a factor over [k, k + kDepth). What does not exist becomes zero. A thread has one vector
// of a row and takes steps along the rows, in which the permutation does not change, so that an address is an addition.
template <bool Along, int H, class Element>
__device__ __forceinline__ void fetch_mma(MmaSlice<Element> &slice, const Factor<Element> &f, int64_t from, int k) {
    using S = MmaSlice<Element>;
    const int thread = thread_index();
    const int count = f.count - from < H ? static_cast<int>(f.count - from) : H;
    const int deep = static_cast<int>(f.depth) - k;
    constexpr int kRowVectors = Along ? kDeepVectors : H / S::kElements;  // that are copied, of a row
    constexpr int kStep = kThreads / kRowVectors;
    constexpr int kRows = Along ? H : S::kDepth;
    static_assert(kRows % kStep == 0 && kStep % 8 == 0, "whole steps");
    const int v = thread % kRowVectors;
    int row = thread / kRowVectors;
    const int left = (Along ? deep : count) - v * S::kElements;  // elements
    const int bytes = left >= S::kElements ? kVectorBytes : left > 0 ? left * static_cast<int>(sizeof(Element)) : 0;
    const int64_t pitch = Along ? f.step : f.along;
    const Element *at = f.base + (Along ? from + row : k + row) * pitch + (Along ? k : from) + v * S::kElements;
    uint4 *to = Along ? slice.along(row, v) : slice.across(row, v);
#pragma unroll
    for (int n = 0; n < kRows / kStep; ++n) {
        const int there = row < (Along ? count : deep) ? bytes : 0;
        copy_async16(to, at, there);
        row += kStep;
        at += kStep * pitch;
        to += kStep * (Along ? kDeepVectors : S::kTileVectors);
    }
}

// Rows and columns of warps are multiples of 16, so that the permutation of a vector is an exclusive or with a number that only
// depends on the lane.

// Element (d, i) of a slice of floats with vectors along the rows of the result; ldmatrix transposes 16-bit elements only.
// A lane takes d = 8 s + lane % 4 + deep and i = row + lane / 4 + beyond.
__device__ __forceinline__ uint32_t tf32_at(const MmaSlice<float> &slice, int lane, int s, int deep, int row, int beyond) {
    const int vector = (row / 4 + beyond / 4) ^ (lane / 16 ^ lane % 4 * 2);
    const auto *floats = reinterpret_cast<const float *>(slice.vectors + (8 * s + lane % 4 + deep) * (kTile / 4) + vector);
    return to_tf32(floats[lane / 4 % 4]);
}

// Rows [row, row + 16) of the first factor over vectors 2s and 2s + 1 of the depth. `Along`: vectors run along the depth.
template <bool Along, class Element>
__device__ __forceinline__ void load_left(uint32_t (&a)[4], const MmaSlice<Element> &slice, int lane, int row, int s) {
    constexpr bool kFloats = MmaSlice<Element>::kElements == 4;
    if constexpr (Along) {
        ldmatrix_x4(a, slice.vectors + (row + lane % 16) * kDeepVectors + (2 * s ^ (lane / 16 ^ lane / 2 % 4)));
        round_fragment(a, Element{});
    } else if constexpr (kFloats) {
#pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = tf32_at(slice, lane, s, i / 2 * 4, row, i % 2 * 8);
    } else {
        const int d = 16 * s + lane % 8 + lane / 16 * 8;
        ldmatrix_x4_trans(a, slice.vectors + d * (kTile / 8) + (row / 8 ^ (lane / 8 % 2 ^ lane % 8)));
    }
}

// Columns [col, col + 16) of the second factor, of which a fragment has 8: b[0], b[1] and b[2], b[3].
template <bool Along, class Element>
__device__ __forceinline__ void load_right(uint32_t (&b)[4], const MmaSlice<Element> &slice, int lane, int col, int s) {
    constexpr bool kFloats = MmaSlice<Element>::kElements == 4;
    if constexpr (Along) {
        const int i = lane % 8 + lane / 16 * 8;
        ldmatrix_x4(b, slice.vectors + (col + i) * kDeepVectors + (2 * s ^ (lane / 8 % 2 ^ lane / 2 % 4)));
        round_fragment(b, Element{});
    } else if constexpr (kFloats) {
#pragma unroll
        for (int k = 0; k < 4; ++k) b[k] = tf32_at(slice, lane, s, k % 2 * 4, col, k / 2 * 8);
    } else {
        ldmatrix_x4_trans(b, slice.vectors + (16 * s + lane % 16) * (kTile / 8) + (col / 8 ^ (lane / 16 ^ lane % 8)));
    }
}

// What a block keeps in shared memory: slices of the factors, then the result.
template <class Element>
union MmaRoom {
    struct {
        MmaSlice<Element> a[2];
        MmaSlice<Element> b[2];
    } slices;
    Stage stage;
};

// The 16 x 8 results of a warp within a tile of P x Q quarters.
template <int P, int Q>
struct WarpTile {
    static constexpr int kDown = 2 * P;             // warps
    static constexpr int kAcross = kWarps / kDown;  // warps
    static constexpr int kRows = 2;                 // results of 16 rows
    static constexpr int kCols = Q * kHalfTile / kAcross / 8;
    static_assert(kDown * kRows * 16 == P * kHalfTile && kCols % 2 == 0, "warps cover the tile");

    __device__ static int row() { return static_cast<int>(threadIdx.x) / 32 / kAcross * (kRows * 16); }
    __device__ static int col() { return static_cast<int>(threadIdx.x) / 32 % kAcross * (kCols * 8); }
};

// Stores the results of all warps, a quarter of the tile at a time; returns whether a value of this thread's is not finite.
template <class Element, int P, int Q>
__device__ __forceinline__ bool store_tile(const TileWork<Element> &t, Stage &stage,
                                           const float (&sum)[WarpTile<P, Q>::kRows][WarpTile<P, Q>::kCols][4]) {
    using Warp = WarpTile<P, Q>;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    bool bad = false;
#pragma unroll 1
    for (int quarter = 0; quarter < P * Q; ++quarter) {
        const int top = quarter / Q * kHalfTile;
        const int left = quarter % Q * kHalfTile;
        // The part of a warp lies in one quarter.
        if (Warp::row() / kHalfTile * kHalfTile == top && Warp::col() / kHalfTile * kHalfTile == left) {
#pragma unroll
            for (int i = 0; i < Warp::kRows; ++i) {
#pragma unroll
                for (int j = 0; j < Warp::kCols; ++j) {
                    const int row = Warp::row() - top + 16 * i + lane / 4;
                    const int col = Warp::col() - left + 8 * j + lane % 4 * 2;
                    stage[row][col] = sum[i][j][0];
                    stage[row][col + 1] = sum[i][j][1];
                    stage[row + 8][col] = sum[i][j][2];
                    stage[row + 8][col + 1] = sum[i][j][3];
                }
            }
        }
        __syncthreads();
        bad = store_quarter(t, stage, t.top + top, t.left + left) || bad;
        __syncthreads();
    }
    return bad;
}

template <class Element, bool LeftAlong, bool RightAlong, int P, int Q>
__device__ __forceinline__ bool mma_tile(const TileWork<Element> &t, MmaRoom<Element> &room) {
    using Warp = WarpTile<P, Q>;
    constexpr int kDepth = MmaSlice<Element>::kDepth;
    const auto depth = static_cast<int>(t.a.depth);  // sides are below 2^31
    float sum[Warp::kRows][Warp::kCols][4] = {};
    auto &a = room.slices.a;
    auto &b = room.slices.b;
    fetch_mma<LeftAlong, P * kHalfTile>(a[0], t.a, t.top, 0);
    fetch_mma<RightAlong, Q * kHalfTile>(b[0], t.b, t.left, 0);
    commit_copies();
    int now = 0;
#pragma unroll 1
    for (int k = 0; k < depth; k += kDepth) {
        if (k + kDepth < depth) {
            fetch_mma<LeftAlong, P * kHalfTile>(a[1 - now], t.a, t.top, k + kDepth);
            fetch_mma<RightAlong, Q * kHalfTile>(b[1 - now], t.b, t.left, k + kDepth);
            commit_copies();
            wait_copies<1>();
        } else {
            wait_copies<0>();
        }
        __syncthreads();
        const int lane = thread_index() % 32;
#pragma unroll
        for (int s = 0; s < kDeepVectors / 2; ++s) {
            uint32_t left[Warp::kRows][4];
#pragma unroll
            for (int i = 0; i < Warp::kRows; ++i) load_left<LeftAlong>(left[i], a[now], lane, Warp::row() + 16 * i, s);
#pragma unroll
            for (int j = 0; j < Warp::kCols; j += 2) {
                uint32_t right[4];
                load_right<RightAlong>(right, b[now], lane, Warp::col() + 8 * j, s);
                const uint32_t first[2] = {right[0], right[1]};
                const uint32_t second[2] = {right[2], right[3]};
#pragma unroll
                for (int i = 0; i < Warp::kRows; ++i) {
                    multiply_fragments(sum[i][j], left[i], first, Element{});
                    multiply_fragments(sum[i][j + 1], left[i], second, Element{});
                }
            }
        }
        __syncthreads();
        now = 1 - now;
    }
    return store_tile<Element, P, Q>(t, room.stage, sum);
}

template <class Element, bool LeftAlong, bool RightAlong>
__device__ __forceinline__ bool mma_tile_of_size(const TileWork<Element> &t, MmaRoom<Element> &room) {
    const bool high = t.rows - t.top > kHalfTile;
    const bool wide = t.cols - t.left > kHalfTile;
    if (high && wide) return mma_tile<Element, LeftAlong, RightAlong, 2, 2>(t, room);
    if (high) return mma_tile<Element, LeftAlong, RightAlong, 2, 1>(t, room);
    if (wide) return mma_tile<Element, LeftAlong, RightAlong, 1, 2>(t, room);
    return mma_tile<Element, LeftAlong, RightAlong, 1, 1>(t, room);
}

// The three layouts that Newton-Schulz has: X X^T, X^T X, and products of matrices as they are stored.
template <class Element>
__device__ __forceinline__ bool any_mma_tile(const TileWork<Element> &t, MmaRoom<Element> &room) {
    if (t.a.along != 1) return mma_tile_of_size<Element, false, false>(t, room);
    if (t.b.along == 1) return mma_tile_of_size<Element, true, true>(t, room);
    return mma_tile_of_size<Element, true, false>(t, room);
}

// All tiles of a launch, as products.cu takes them.
template <class Element>
__device__ __forceinline__ void multiply_tiles(const Products &p, TileWork<Element> &work, MmaRoom<Element> &room) {
    if (p.status->ticket <= p.stop_from) return;
    for (int64_t task = blockIdx.x; task < p.clients * p.tiles; task += gridDim.x) {
        if (threadIdx.x == 0) work = tile_of<Element>(p, task);
        __syncthreads();
        const bool bad = any_mma_tile(work, room);
        if (bad && work.flag != nullptr) atomicExch(work.flag, 1u);
        __syncthreads();  // everybody is done with this tile
    }
}

}  // namespace fcm
#endif  // FCM_TENSOR_CORES
