// Newton-Schulz for many small matrices on tensor cores: bf16 matrices and sums in fp32, or fp32 matrices whose elements are
// rounded to tf32 where they are factors. All else is as in small_schulz.h: the queue, Y = X^T, and the levels kResident and
// kStreamY; every GPU with such tensor cores has shared memory for the Gram matrix and two panels.
//
// A TILE is 16 x 16 results, two of 16 x 8 that an instruction computes. Both sides of Y are padded to whole tiles by zeros, which
// every product keeps. A row takes `pitch` elements, an odd number of vectors of 16 bytes, so that the same vector of eight
// neighbouring rows is in eight different groups of banks.
//
// TILES OF A SYMMETRIC PRODUCT (Gram matrix and polynomial). Of the n x n tiles, row i has those on the diagonal and right of it
// up to half a turn, around the end to the left; the other half are their mirror images:
//
//   n = 5:  d # # . .     n = 6:  d # # # . .     The tiles, row by row, are cut into 8 stretches of the same length, up to one
//           . d # # .             . d # # # .     tile, one for each warp: 4 or 5 tiles for n = 8, 3 or 2 for n = 6. Tiles of one
//           . . d # #             . . d # # #     row have the fragment of the left factor in common.
//           # . . d #             . . . d # #
//           # # . . d             # . . . d #
//                                 # # . . . d
//
// The Gram matrix is Y^T Y, both factors with the depth along the rows of Y: fragments of bf16 are transposed while they are
// loaded; those of tf32 are loaded element by element, with the rows 2t and 2t + 1 of Y as the depths t and t + 4 of a
// fragment, because four rows that are two apart are in different banks. The polynomial's factors are symmetric, so that the
// right one is read by rows too.
//
// TILES OF THE UPDATE Y = a Y + Y B. A warp has a row of tiles, or a half, a quarter or an eighth of it, whatever occupies all warps
// with at most four tiles: 4 rows of tiles at a time if n > 4, and 8 if less; of the last ones, fewer tiles for each warp.
#pragma once

#include "fragments.h"
#include "small_matrices.h"

namespace fcm {

constexpr int kMmaTile = 16;
constexpr int kMostMmaTiles = FCM_SMALL_SIDE / kMmaTile;
constexpr int kMmaPanel = 128;  // rows of a panel at most

// A short side is padded to one tile or to an even number: a code for each number would take as long again to compile.
// Elements from a row to the next. The number of tiles is a constant wherever there are products, so that the compiler knows the
// distance of what a thread reads.
template <class Element>
__host__ __device__ constexpr int mma_pitch(int tiles) {
    return tiles * kMmaTile + kVector<Element>;
}

template <class Element>
__host__ __device__ inline Shape mma_shape_of(const fcm_matrix_block &block) {
    const auto side = static_cast<int>(block.rows < block.cols ? block.rows : block.cols);
    const auto width = static_cast<int>(padded_to(side, side <= kMmaTile ? kMmaTile : 2 * kMmaTile));
    return {side, width, mma_pitch<Element>(width / kMmaTile), block.rows < block.cols ? block.cols : block.rows};
}

__host__ __device__ inline int64_t mma_resident(const Shape &s) {
    return rows_elements(s, s.width) + rows_elements(s, padded_to(s.length, kMmaTile));
}
// The rows of each of two panels beside the Gram matrix; if possible, so many that the update occupies all warps.
__host__ __device__ inline int mma_panel_rows(const Shape &s, int64_t available) {
    const int64_t rows = (available - s.width * s.pitch) / 2 / s.pitch;
    return rows >= kMmaPanel ? kMmaPanel : rows >= kMmaPanel / 2 ? kMmaPanel / 2 : static_cast<int>(rows / kMmaTile * kMmaTile);
}
__host__ __device__ inline Level mma_level_of(const Shape &s, int64_t available) {
    return mma_resident(s) <= available ? kResident : kStreamY;
}
// Elements of shared memory after the head, and of the workspace.
__host__ __device__ inline int64_t mma_shared(const Shape &s, int64_t available) {
    if (mma_level_of(s, available) == kResident) return mma_resident(s);
    return rows_elements(s, s.width) + 2 * rows_elements(s, mma_panel_rows(s, available));
}
__host__ __device__ inline int64_t mma_stream(const Shape &s, int64_t available) {
    return mma_level_of(s, available) == kResident ? 0 : s.width * padded_to(s.length, kMmaTile);
}

#if FCM_TENSOR_CORES

template <class Element>
__device__ __forceinline__ Parts<Element> mma_work_of(const Schulz &s, float *shared) {
    const Head &head = *reinterpret_cast<const Head *>(shared);
    Parts<Element> work;
    work.shape = head.shape;
    work.gram = reinterpret_cast<Element *>(shared + kHead);
    work.y = work.gram + rows_elements(work.shape, work.shape.width);
    work.panel = work.y;
    work.panel_rows = head.panel_rows;
    work.panel_elements = static_cast<int>(rows_elements(work.shape, work.panel_rows));
    work.far_y = static_cast<Element *>(s.stream) + blockIdx.x * s.stream_stride;
    work.far_gram = nullptr;
    return work;
}

// ---- Fragments ----

// The depth of a fragment: two vectors.
template <class Element>
constexpr int kDepth = 2 * kVector<Element>;

// What a lane adds to the address of a tile to find its part of a fragment. `Transposed`: the depth is along the rows in memory.
template <class Element, bool Transposed>
__device__ __forceinline__ int left_offset(int lane, int pitch) {
    if constexpr (!Transposed) return lane % 16 * pitch + lane / 16 * kVector<Element>;
    if constexpr (kVector<Element> == 8) return (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8;
    return lane % 4 * 2 * pitch + lane / 4;
}
template <class Element, bool Transposed>
__device__ __forceinline__ int right_offset(int lane, int pitch) {
    if constexpr (!Transposed) return (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * kVector<Element>;
    if constexpr (kVector<Element> == 8) return lane % 16 * pitch + lane / 16 * 8;
    return lane % 4 * 2 * pitch + lane / 4;
}

// 16 rows of the first factor, and 16 columns of the second, of which b[0], b[1] are the first 8.
template <bool Transposed, class Element>
__device__ __forceinline__ void load_left(uint32_t (&a)[4], const Element *at, int pitch) {
    if constexpr (!Transposed) {
        ldmatrix_x4(a, at);
    } else if constexpr (kVector<Element> == 8) {
        ldmatrix_x4_trans(a, at);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = __float_as_uint(at[i / 2 * pitch + i % 2 * 8]);
    }
    round_fragment(a, Element{});
}
template <bool Transposed, class Element>
__device__ __forceinline__ void load_right(uint32_t (&b)[4], const Element *at, int pitch) {
    if constexpr (!Transposed) {
        ldmatrix_x4(b, at);
    } else if constexpr (kVector<Element> == 8) {
        ldmatrix_x4_trans(b, at);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) b[i] = __float_as_uint(at[i % 2 * pitch + i / 2 * 8]);
    }
    round_fragment(b, Element{});
}

template <class Element>
__device__ __forceinline__ void multiply_tile(float (&sum)[2][4], const uint32_t (&a)[4], const uint32_t (&b)[4]) {
    const uint32_t first[2] = {b[0], b[1]};
    const uint32_t second[2] = {b[2], b[3]};
    multiply_fragments(sum[0], a, first, Element{});
    multiply_fragments(sum[1], a, second, Element{});
}

// Two neighbours, the first of which has an even column.
__device__ __forceinline__ void load_two(const float *from, float (&value)[2]) { load_near<2>(from, value); }
__device__ __forceinline__ void load_two(const Bf16 *from, float (&value)[2]) {
    from_bf16x2(*reinterpret_cast<const uint32_t *>(from), value[0], value[1]);
}

// What is below the normal range becomes zero, with its sign, as on a CPU.
__device__ __forceinline__ float normal(float x) {
#if defined(__CUDA_ARCH__)
    float result;
    asm("mul.ftz.f32 %0, %1, 0f3F800000;" : "=f"(result) : "f"(x));
    return result;
#else
    const unsigned bits = __float_as_uint(x);
    return (bits & 0x7f800000u) == 0 ? __uint_as_float(bits & 0x80000000u) : x;
#endif
}

// Rounds them to what is stored; returns whether one is then not finite.
__device__ __forceinline__ bool round_two(const float (&value)[2], float (&element)[2]) {
    element[0] = value[0];
    element[1] = value[1];
    return not_finite(value[0]) || not_finite(value[1]);
}
__device__ __forceinline__ bool round_two(const float (&value)[2], Bf16 (&element)[2]) {
    const uint32_t pair = to_bf16x2(normal(value[0]), normal(value[1]));
    element[0].bits = static_cast<uint16_t>(pair);
    element[1].bits = static_cast<uint16_t>(pair >> 16);
    return (pair & 0x7f80u) == 0x7f80u || (pair & 0x7f800000u) == 0x7f800000u;
}

__device__ __forceinline__ void store_two(float *to, const float (&element)[2]) { store_near<2>(to, element); }
__device__ __forceinline__ void store_two(Bf16 *to, const Bf16 (&element)[2]) {
    *reinterpret_cast<uint32_t *>(to) = element[0].bits | static_cast<uint32_t>(element[1].bits) << 16;
}

// ---- Symmetric products ----

// How N x N tiles are divided.
template <int N>
struct Triangle {
    static constexpr int kTiles = N * (N + 1) / 2;
    static constexpr int kMost = (kTiles + kWarps - 1) / kWarps;  // tiles of a warp

    // With an even number of tiles, only the first half of the rows has the tile that is half a turn away.
    __device__ static constexpr int in_row(int row) { return N % 2 != 0 || row < N / 2 ? N / 2 + 1 : N / 2; }
};

// The tiles of a warp.
template <int N>
struct Stretch {
    int count;
    int row[Triangle<N>::kMost];  // in tiles
    int col[Triangle<N>::kMost];
};

template <int N>
__device__ __forceinline__ Stretch<N> stretch_of() {
    using T = Triangle<N>;
    const int warp = thread_index() / 32;
    const int begin = warp * T::kTiles / kWarps;
    Stretch<N> stretch;
    stretch.count = (warp + 1) * T::kTiles / kWarps - begin;
    int row = 0;
    int turn = begin;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        if (row == i && turn >= T::in_row(i)) {
            turn -= T::in_row(i);
            ++row;
        }
    }
#pragma unroll
    for (int m = 0; m < T::kMost; ++m) {
        stretch.row[m] = row;
        stretch.col[m] = row + turn < N ? row + turn : row + turn - N;
        if (++turn == T::in_row(row)) {
            ++row;
            turn = 0;
        }
    }
    return stretch;
}

template <int N>
struct TileSums {
    float of[Triangle<N>::kMost][2][4] = {};
};

// sum += Q^T Q over `depth` rows of Q, or Q Q over the columns of a symmetric Q.
template <int N, bool Transposed, class Element>
__device__ __forceinline__ void add_tiles(TileSums<N> &sum, const Stretch<N> &stretch, const Element *q, int depth) {
    constexpr int kPitch = mma_pitch<Element>(N);
    constexpr int kNext = Transposed ? kMmaTile : kMmaTile * kPitch;  // tile
    const int lane = thread_index() % 32;
    const Element *left = q + left_offset<Element, Transposed>(lane, kPitch);
    const Element *right = q + right_offset<Element, Transposed>(lane, kPitch);
#pragma unroll 1
    for (int k = 0; k < depth; k += kDepth<Element>) {
        const int at = Transposed ? k * kPitch : k;
        uint32_t a[4];
#pragma unroll
        for (int m = 0; m < Triangle<N>::kMost; ++m) {
            if (m >= stretch.count) break;
            if (m == 0 || stretch.row[m] != stretch.row[m - 1]) load_left<Transposed>(a, left + stretch.row[m] * kNext + at, kPitch);
            uint32_t b[4];
            load_right<Transposed>(b, right + stretch.col[m] * kNext + at, kPitch);
            multiply_tile<Element>(sum.of[m], a, b);
        }
    }
}

// Stores the Gram matrix, or b A + c A A in its place, with the mirror image of each tile. Nobody else reads or writes the
// elements in which a tile of the Gram matrix and its image are.
template <int N, bool Poly, class Element>
__device__ __forceinline__ void store_tiles(Element *to, const TileSums<N> &sum, const Stretch<N> &stretch, float b, float c) {
    constexpr int kPitch = mma_pitch<Element>(N);
    const int lane = thread_index() % 32;
#pragma unroll
    for (int m = 0; m < Triangle<N>::kMost; ++m) {
        if (m >= stretch.count) break;
        const int row = stretch.row[m] * kMmaTile + lane / 4;
        const int col = stretch.col[m] * kMmaTile + lane % 4 * 2;
        Element *tile = to + row * kPitch + col;
        Element *image = to + col * kPitch + row;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int lower = i / 2 * 8;
            const int right = i % 2 * 8;
            float value[2] = {sum.of[m][i % 2][i / 2 * 2], sum.of[m][i % 2][i / 2 * 2 + 1]};
            Element *place = tile + lower * kPitch + right;
            if constexpr (Poly) {
                float old[2];
                load_two(place, old);
                value[0] = fmaf(b, old[0], c * value[0]);
                value[1] = fmaf(b, old[1], c * value[1]);
            }
            Element element[2];
            round_two(value, element);
            store_two(place, element);
            if (stretch.row[m] != stretch.col[m]) {
                image[right * kPitch + lower] = element[0];
                image[(right + 1) * kPitch + lower] = element[1];
            }
        }
    }
}

template <class Element, int N, Level L, bool Poly>
__device__ __forceinline__ void mma_symmetric(const Schulz &s, float *shared, float b, float c) {
    const Parts<Element> work = mma_work_of<Element>(s, shared);
    const Stretch<N> stretch = stretch_of<N>();
    TileSums<N> sum;
    if constexpr (Poly) {
        add_tiles<N, false>(sum, stretch, work.gram, N * kMmaTile);
        __syncthreads();  // everybody has read what is overwritten now
    } else if constexpr (L == kResident) {
        add_tiles<N, true>(sum, stretch, work.y, static_cast<int>(padded_to(work.shape.length, kMmaTile)));
    } else {
        for_panels(work, work.far_y, work.shape.width, padded_to(work.shape.length, kMmaTile),
                   [&](const Element *panel, int64_t, int rows) { add_tiles<N, true>(sum, stretch, panel, rows); });
    }
    store_tiles<N, Poly>(work.gram, sum, stretch, b, c);
    __syncthreads();  // the product is there
}

// ---- The update ----

// Y = a Y + Y B, in place, for the first rows of tiles from y on, of which `rows` exist. A warp has one of P parts of a row. Returns
// whether a value left the range.
template <int N, int P, class Element>
__device__ __forceinline__ bool update_tiles(Element *y, const Element *b, int rows, float a) {
    constexpr int kPitch = mma_pitch<Element>(N);
    constexpr int kTiles = (N + P - 1) / P;  // of a part; the last ones have less if this is no divisor
    const int lane = thread_index() % 32;
    const int row = thread_index() / 32 / P;
    const int first = thread_index() / 32 % P * kTiles;
    const int count = row >= rows ? 0 : kTiles * P == N ? kTiles : minimum(kTiles, N - first);
    float sum[kTiles][2][4] = {};
    if (count > 0) {
        const Element *left = y + row * kMmaTile * kPitch + left_offset<Element, false>(lane, kPitch);
        const Element *right = b + first * kMmaTile * kPitch + right_offset<Element, false>(lane, kPitch);
#pragma unroll 1
        for (int k = 0; k < N * kMmaTile; k += kDepth<Element>) {
            uint32_t factor[4];
            load_left<false>(factor, left + k, kPitch);
#pragma unroll
            for (int j = 0; j < kTiles; ++j) {
                if (kTiles * P != N && j >= count) break;
                uint32_t other[4];
                load_right<false>(other, right + j * kMmaTile * kPitch + k, kPitch);
                multiply_tile<Element>(sum[j], factor, other);
            }
        }
    }
    __syncthreads();  // everybody has read the rows that move now
    Element *tile = y + (row * kMmaTile + lane / 4) * kPitch + first * kMmaTile + lane % 4 * 2;
    bool bad = false;
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
        if (j >= count) break;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            Element *place = tile + i / 2 * 8 * kPitch + j * kMmaTile + i % 2 * 8;
            float value[2];
            load_two(place, value);
            value[0] = fmaf(a, value[0], sum[j][i % 2][i / 2 * 2]);
            value[1] = fmaf(a, value[1], sum[j][i % 2][i / 2 * 2 + 1]);
            Element element[2];
            bad = round_two(value, element) || bad;
            store_two(place, element);
        }
    }
    return bad;
}

// The same, with so many parts that all warps have something to do. `done` is increased by the rows of tiles that are done.
template <int N, int P, class Element>
__device__ __forceinline__ bool update_some(Element *y, const Element *b, int rows, float a, int &done) {
    constexpr int kAtOnce = kWarps / P;
    if constexpr (P < N) {
        if (rows - done <= kAtOnce / 2) return update_some<N, 2 * P>(y, b, rows, a, done);
    }
    const bool bad = update_tiles<N, P>(y + done * kMmaTile * mma_pitch<Element>(N), b, rows - done, a);
    done += kAtOnce;
    return bad;
}

template <int N, class Element>
__device__ __forceinline__ bool update_panel(Element *y, const Element *b, int rows, float a) {
    bool bad = false;
#pragma unroll 1
    for (int done = 0; done < rows;) bad = update_some<N, (N > 4 ? 2 : 1)>(y, b, rows, a, done) || bad;
    return bad;
}

template <class Element, int N, Level L>
__device__ __forceinline__ bool mma_update(const Schulz &s, float *shared, float a) {
    const Parts<Element> work = mma_work_of<Element>(s, shared);
    const int64_t length = padded_to(work.shape.length, kMmaTile);
    bool bad = false;
    if constexpr (L == kResident) {
        bad = update_panel<N>(work.y, work.gram, static_cast<int>(length) / kMmaTile, a);
    } else {
        for_panels(work, work.far_y, work.shape.width, length, [&](Element *panel, int64_t first, int rows) {
            bad = update_panel<N>(panel, work.gram, rows / kMmaTile, a) || bad;
            __syncthreads();  // all rows of the panel have moved
            store_panel(work, panel, first, rows);
        });
    }
    __syncthreads();  // everybody has the new Y
    return bad;
}

// ---- A matrix ----

template <class Element, int N, Level L>
__device__ __forceinline__ bool mma_iterate(const Schulz &s, float *shared, bool bad) {
#pragma unroll 1
    for (int i = 0; i < reinterpret_cast<const Head *>(shared)->steps; ++i) {
        mma_symmetric<Element, N, L, false>(s, shared, 0.0f, 0.0f);
        mma_symmetric<Element, N, L, true>(s, shared, s.of.coefficients[3 * i + 1], s.of.coefficients[3 * i + 2]);
        bad = mma_update<Element, N, L>(s, shared, s.of.coefficients[3 * i]);
    }
    return bad;
}

template <class E>
struct InMma {
    using Element = E;
    static constexpr int kRows = kMmaTile;
    static constexpr bool kStreamsAll = false;

    __device__ static void begin(const Schulz &s, Head &head, const fcm_matrix_block &block) {
        head.shape = mma_shape_of<E>(block);
        head.level = mma_level_of(head.shape, s.available);
        head.panel_rows = mma_panel_rows(head.shape, s.available);
    }
    template <Level L>
    __device__ static Parts<E> work_of(const Schulz &s, float *shared) {
        return mma_work_of<E>(s, shared);
    }
    template <Level L>
    __device__ static bool iterate(const Schulz &s, float *shared, bool bad) {
        static_assert(kMostMmaTiles == 8, "a case for one tile and for each even number");
        switch (reinterpret_cast<const Head *>(shared)->shape.width / kMmaTile) {
            case 1: return mma_iterate<E, 1, L>(s, shared, bad);
            case 2: return mma_iterate<E, 2, L>(s, shared, bad);
            case 4: return mma_iterate<E, 4, L>(s, shared, bad);
            case 6: return mma_iterate<E, 6, L>(s, shared, bad);
            default: return mma_iterate<E, 8, L>(s, shared, bad);
        }
    }
};

#endif  // FCM_TENSOR_CORES

}  // namespace fcm
