// Device code of Newton-Schulz for many small matrices of mixed shapes, with the whole iteration of all matrices in one launch.
//
// A block of 256 threads takes one matrix after the other from a common queue, the most expensive first. During the iteration
// it holds Y = X^T: `length` rows, the long side, of `width` floats, the short side padded with zeros. So X X^T = Y^T Y and
// B X = (Y B)^T both run along rows. The polynomial of the Gram matrix overwrites the Gram matrix.
//
// Every element of a product is one chain of fused multiply-adds in the order of k, as on the CPU. A result therefore depends
// neither on tiles nor on levels nor on the device, and it equals the CPU's except for the last bit of the norm.
//
// WHERE THINGS ARE. The size of shared memory decides; a row takes `pitch` floats, an odd number of vectors, so that the same
// vector of eight neighbouring rows is in eight different groups of banks.
//
//   kResident    | head | Gram | Y                  |   global memory is accessed at the beginning and at the end only
//   kStreamY     | head | Gram | panel 0 | panel 1  |   Y is in the workspace; rows are copied to a panel while the rows in the
//                                                       other one are used
//   kStreamAll   | head | rows | panel 0 | panel 1  |   the Gram matrix is in the workspace too, and streamed like Y: only for
//                                                       a side near 128 on the GPUs with the least shared memory
//
// TILES OF A SYMMETRIC PRODUCT (Gram matrix and polynomial). The side is cut into n <= 16 blocks of P: 8 for sides up to 128,
// 6 up to 96, 4 up to 64, 2 up to 32. A block of rows times half a block of columns, P x P/2 sums, belongs to a thread, and a
// pair of block rows 2w and 2w + 1 to warp w. Of the blocks {i, j} and {j, i}, which mirror each other, the pair of i computes
//
//   those right of it:  j odd for row 2w, j even for row 2w + 1        (w = 2:         j = 0  1  2  3  4  5  6  7  8  9 ...
//   those left of it:   j even for row 2w, j odd for row 2w + 1           row 2w = 4       #     #     d  #     #     # ...
//   on the diagonal:    the right half                                    row 2w + 1 = 5      #     #     d  #     #    ...)
//
// so that the lanes of a warp have the half blocks 0 ... 31 of columns, each once: lane c loads columns c P/2 ..., which are
// neighbouring vectors, and one of two blocks of rows, which are broadcast. (Lane 4w, whose columns are the left half of the
// diagonal, has the right half of the diagonal of row 2w + 1, as lane 4w + 3 has.) At sides of 16 P this is 8 warps of 32 lanes.
// What remains is the left half of the diagonal's upper triangle, P/2 (P/2 + 1) / 2 sums for each block row: the first lanes of a
// block row take one each, as their `extra`.
//
// For sides up to 16 thread t has element (t / 16, t % 16) and nothing is mirrored.
//
// TILES OF THE UPDATE Y = a Y + Y B. A thread has four columns and up to eight rows of Y. Eight lanes have 32 neighbouring
// columns, one wavefront of shared memory; the 32 groups of eight lanes are distributed over the columns first and then over as
// many rows as possible: 8 groups of rows for sides up to 128, 10 up to 96, 16 up to 64, 32 up to 32. For sides up to 16, a
// thread has one column, and 16 lanes a row.
#pragma once

#include "small_matrices.h"

namespace fcm {

constexpr int kTiny = 16;         // sides up to this have a thread for each element of a symmetric product
constexpr int kLeastPanel = 12;   // rows; with room for fewer, the Gram matrix is not kept in shared memory either
constexpr int kSlicePanel = 16;   // rows of a panel of kStreamAll
constexpr int kMostRows = 8;      // rows of Y that a thread updates together

// The side of a block of a symmetric product, by the short side of the matrix.
__host__ __device__ constexpr int block_side(int side) {
    return side <= kTiny ? 1 : side <= 32 ? 2 : side <= 64 ? 4 : side <= 96 ? 6 : 8;
}

// Floats from a row to the next, and groups of rows in the update. Both are the same for all sides with blocks of P, so that
// the compiler knows the distance of what a thread reads.
__host__ __device__ constexpr int pitch_of(int P) { return P == 1 ? kTiny + 4 : 16 * P + 4; }
__host__ __device__ constexpr int groups_of(int P) { return P == 1 ? kThreads / kTiny : 32 / ((16 * P + 31) / 32); }

__host__ __device__ inline Shape shape_of(const fcm_matrix_block &block) {
    const auto side = static_cast<int>(block.rows < block.cols ? block.rows : block.cols);
    const int P = block_side(side);
    const int unit = P == 6 ? 12 : P == 8 ? 8 : 4;
    return {side, (side + unit - 1) / unit * unit, pitch_of(P), block.rows < block.cols ? block.cols : block.rows};
}

__host__ __device__ inline double cost_of(const fcm_matrix_block &block) {
    const Shape s = shape_of(block);
    return static_cast<double>(s.width) * static_cast<double>(s.width) *
           (3.0 * static_cast<double>(s.length) + static_cast<double>(s.width));
}

__host__ __device__ inline int row_groups(const Shape &s) { return groups_of(block_side(s.side)); }

// The rows of each of two panels beside the Gram matrix. If possible, each thread has eight rows of a panel to update, or four.
__host__ __device__ inline int panel_rows(const Shape &s, int64_t available) {
    const int64_t left = (available - rows_elements(s, s.width)) / 2 + (s.pitch - s.width);
    const int most = row_groups(s) * kMostRows;
    if (left >= static_cast<int64_t>(most) * s.pitch) return most;
    if (left >= static_cast<int64_t>(most) / 2 * s.pitch) return most / 2;
    return left < s.pitch ? 0 : static_cast<int>(left / s.pitch);
}
__host__ __device__ inline Level level_of(const Shape &s, int64_t available) {
    if (rows_elements(s, s.width) + rows_elements(s, s.length) <= available) return kResident;
    return panel_rows(s, available) >= kLeastPanel ? kStreamY : kStreamAll;
}
// Floats of shared memory after the head.
__host__ __device__ inline int64_t shared_floats(const Shape &s, Level level, int64_t available) {
    if (level == kResident) return rows_elements(s, s.width) + rows_elements(s, s.length);
    if (level == kStreamY) return rows_elements(s, s.width) + 2 * rows_elements(s, panel_rows(s, available));
    return rows_elements(s, row_groups(s) * kMostRows) + 2 * rows_elements(s, kSlicePanel);
}
// Floats of the workspace for the data that is not kept in shared memory.
__host__ __device__ inline int64_t stream_floats(const Shape &s, Level level) {
    if (level == kResident) return 0;
    return s.width * s.length + (level == kStreamAll ? s.pitch * s.width : 0);
}

using Work = Parts<float>;

template <Level L>
__device__ __forceinline__ Work work_of(const Schulz &s, float *shared) {
    const Head &head = *reinterpret_cast<const Head *>(shared);
    Work work;
    work.shape = head.shape;
    work.gram = shared + kHead;
    work.y = L == kStreamAll ? work.gram : work.gram + rows_elements(work.shape, work.shape.width);
    work.panel = L == kStreamAll ? work.y + rows_elements(work.shape, row_groups(work.shape) * kMostRows) : work.y;
    work.panel_rows = head.panel_rows;
    work.panel_elements = static_cast<int>(rows_elements(work.shape, work.panel_rows));
    work.far_y = static_cast<float *>(s.stream) + blockIdx.x * s.stream_stride;
    work.far_gram = work.far_y + work.shape.length * work.shape.width;
    return work;
}

// store_near to the workspace: nvcc divides a store of four floats that were computed one by one into four stores.
template <int N>
__device__ __forceinline__ void store_far(float *to, const float (&value)[N]) {
#if defined(__CUDA_ARCH__)
    if constexpr (N == 4) {
        asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "f"(value[0]), "f"(value[1]),
                     "f"(value[2]), "f"(value[3])
                     : "memory");
        return;
    }
#endif
    store_near<N>(to, value);
}

// ---- Symmetric products ----

// What a thread computes: rows P * row ... and columns P/2 * col ... of the result, and one element on or beside the diagonal.
template <int P>
struct Unit {
    bool any;
    int row;
    int col;
    bool has_extra;
    int extra_row;  // within the block on the diagonal
    int extra_col;
};

template <int P>
__device__ __forceinline__ Unit<P> unit_of(const Shape &shape) {
    constexpr int kHalf = P / 2;
    const int blocks = shape.width / P;
    const int lane = thread_index() % 32;
    const int pair = thread_index() / 32;
    const int first = 2 * pair;
    const int own = lane / 2;
    Unit<P> unit;
    int rank;  // of this lane among those of its block row
    if (own < first) {
        unit.row = first + own % 2;
        unit.col = lane;
        rank = lane / 4 * 2 + lane % 2;
    } else if (own == first) {
        unit.row = first + 1 - lane % 2;
        unit.col = 2 * unit.row + 1;
        rank = first;
    } else {
        unit.row = first + 1 - own % 2;
        unit.col = lane;
        rank = first + 1 + (own - first - 1) / 2 * 2 + lane % 2;
    }
    unit.any = unit.row < blocks && unit.col < 2 * blocks;
    // Extras are numbered by rows of the triangle. A block row has about as many lanes as there are blocks, which is more.
    int r = 0;
    int c = rank;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
        if (r == i && c >= kHalf - i) {
            c -= kHalf - i;
            ++r;
        }
    }
    unit.has_extra = unit.any && r < kHalf;
    // Without one, a lane computes one that nobody stores.
    unit.extra_row = r < kHalf ? r : 0;
    unit.extra_col = r < kHalf ? r + c : 0;
    return unit;
}

template <int P>
struct Sums {
    float of[P][P / 2] = {};
    float extra = 0.0f;
};

// One of the first N values, without a branch.
template <int N, int P>
__device__ __forceinline__ float pick(const float (&value)[P], int i) {
    if constexpr (N == 1) {
        return value[0];
    } else if constexpr (N == 4) {
        const float low = i % 2 == 0 ? value[0] : value[1];
        const float high = i % 2 == 0 ? value[2] : value[3];
        return i < 2 ? low : high;
    } else {
        float found = value[N - 1];
#pragma unroll
        for (int j = 0; j < N - 1; ++j) found = i == j ? value[j] : found;
        return found;
    }
}

// sum += Q^T Q over `depth` rows of Q. The factors of the extra are among the rows of the thread.
template <int P>
__device__ __forceinline__ void add_squares(Sums<P> &sum, const Unit<P> &unit, const float *q, int depth) {
    constexpr int kHalf = P / 2;
    constexpr int kPitch = pitch_of(P);
    const float *rows = q + P * unit.row;
    const float *cols = q + kHalf * unit.col;
#pragma unroll(P == 8 ? 2 : 4)
    for (int k = 0; k < depth; ++k) {
        float left[P], right[kHalf];
        load_near<P>(rows + k * kPitch, left);
        load_near<kHalf>(cols + k * kPitch, right);
        sum.extra = fmaf(pick<kHalf>(left, unit.extra_row), pick<kHalf>(left, unit.extra_col), sum.extra);
#pragma unroll
        for (int i = 0; i < P; ++i) {
#pragma unroll
            for (int j = 0; j < kHalf; ++j) sum.of[i][j] = fmaf(left[i], right[j], sum.of[i][j]);
        }
    }
}

// Stores the Gram matrix, or b A + c A A in its patch, with the mirror image of each element. On the diagonal both images of
// some elements are computed; they are equal, and everything is read before anything is written.
template <int P, bool Poly>
__device__ __forceinline__ void store_unit(float *to, Sums<P> &sum, const Unit<P> &unit, float b, float c) {
    constexpr int kHalf = P / 2;
    constexpr int kPitch = pitch_of(P);
    float *rows = to + P * unit.row * kPitch + kHalf * unit.col;
    float *cols = to + kHalf * unit.col * kPitch + P * unit.row;
    float *diagonal = to + P * unit.row * (kPitch + 1);
    float *extra = diagonal + unit.extra_row * kPitch + unit.extra_col;
    if constexpr (Poly) {
#pragma unroll
        for (int i = 0; i < P; ++i) {
            float old[kHalf];
            load_near<kHalf>(rows + i * kPitch, old);
#pragma unroll
            for (int j = 0; j < kHalf; ++j) sum.of[i][j] = fmaf(b, old[j], c * sum.of[i][j]);
        }
        if (unit.has_extra) sum.extra = fmaf(b, *extra, c * sum.extra);
    }
#pragma unroll
    for (int i = 0; i < P; ++i) store_near<kHalf>(rows + i * kPitch, sum.of[i]);
#pragma unroll
    for (int j = 0; j < kHalf; ++j) {
        float mirror[P];
#pragma unroll
        for (int i = 0; i < P; ++i) mirror[i] = sum.of[i][j];
        store_near<P>(cols + j * kPitch, mirror);
    }
    if (unit.has_extra) {
        *extra = sum.extra;
        diagonal[unit.extra_col * kPitch + unit.extra_row] = sum.extra;
    }
}

// For tiny sides: an element a thread.
template <>
struct Unit<1> {
    bool any;
    int row;
    int col;
};
template <>
struct Sums<1> {
    float of = 0.0f;
};
template <>
__device__ __forceinline__ Unit<1> unit_of<1>(const Shape &shape) {
    const int row = thread_index() / kTiny;
    const int col = thread_index() % kTiny;
    return {row < shape.side && col < shape.side, row, col};
}
template <>
__device__ __forceinline__ void add_squares<1>(Sums<1> &sum, const Unit<1> &unit, const float *q, int depth) {
#pragma unroll 4
    for (int k = 0; k < depth; ++k) sum.of = fmaf(q[k * pitch_of(1) + unit.row], q[k * pitch_of(1) + unit.col], sum.of);
}
template <bool Poly>
__device__ __forceinline__ void store_element(float *to, const Sums<1> &sum, const Unit<1> &unit, float b, float c) {
    float &place = to[unit.row * pitch_of(1) + unit.col];
    place = Poly ? fmaf(b, place, c * sum.of) : sum.of;
}

template <int P, Level L, bool Poly>
__device__ __forceinline__ void symmetric_product(const Schulz &s, float *shared, float b, float c) {
    const Work work = work_of<L>(s, shared);
    const Unit<P> unit = unit_of<P>(work.shape);
    Sums<P> sum;
    if constexpr (Poly ? L == kStreamAll : L != kResident) {
        for_panels(work, Poly ? work.far_gram : work.far_y, Poly ? work.shape.pitch : work.shape.width,
                   Poly ? work.shape.side : work.shape.length,
                   [&](const float *panel, int64_t, int rows) {
                       if (unit.any) add_squares<P>(sum, unit, panel, rows);
                   });
    } else {
        const float *near = Poly ? work.gram : work.y;
        if (unit.any) add_squares<P>(sum, unit, near, Poly ? work.shape.side : static_cast<int>(work.shape.length));
        if (Poly) __syncthreads();  // everybody has read what is overwritten now
    }
    float *to = L == kStreamAll ? work.far_gram : work.gram;
    if (unit.any) {
        if constexpr (P == 1) {
            store_element<Poly>(to, sum, unit, b, c);
        } else {
            store_unit<P, Poly>(to, sum, unit, b, c);
        }
    }
    __syncthreads();  // the product is there
}

// ---- The update ----

// The columns of a thread: four, or one for tiny sides.
template <int P>
constexpr int kColumns = P == 1 ? 1 : 4;

// Its first column, and its first row; the next ones are groups_of(P) apart.
struct Patch {
    bool any;
    int col;
    int row;
};

template <int P>
__device__ __forceinline__ Patch patch_of(const Shape &shape) {
    constexpr int kGroups = groups_of(P);
    const int thread = thread_index();
    if constexpr (P == 1) {
        return {thread % kTiny < shape.side, thread % kTiny, thread / kTiny};
    } else {
        const int eight = thread / 8;
        const int col = eight / kGroups * 32 + thread % 8 * 4;
        return {col < shape.width, col, eight % kGroups};
    }
}

// sum += Y B over `depth` columns of Y, a multiple of those of a thread, for its rows of Y, which start at y + offset[r], and its
// columns of B.
template <int P, int R>
__device__ __forceinline__ void add_product(float (&sum)[R][kColumns<P>], const float *y, const int (&offset)[R], const float *b,
                                            int depth) {
    constexpr int C = kColumns<P>;
#pragma unroll(C == 1 ? 4 : R < 8 ? 2 : 1)  // with eight rows there is no register for more
    for (int k = 0; k < depth; k += C) {
        float left[R][C];
#pragma unroll
        for (int r = 0; r < R; ++r) load_near<C>(y + offset[r] + k, left[r]);
#pragma unroll
        for (int i = 0; i < C; ++i) {
            float right[C];
            load_near<C>(b + (k + i) * pitch_of(P), right);
#pragma unroll
            for (int r = 0; r < R; ++r) {
#pragma unroll
                for (int j = 0; j < C; ++j) sum[r][j] = fmaf(left[r][i], right[j], sum[r][j]);
            }
        }
    }
}

// Y = a Y + Y B for R rows of each group, which are stored in place or to `far`; of `count` rows in all, which may be less,
// unless R is kMostRows. Returns whether a value left the range of float.
template <int P, int R, Level L>
__device__ __forceinline__ bool update_rows(const Work &work, const Patch &patch, float *y, float *far, int count, float a) {
    constexpr int C = kColumns<P>;
    constexpr int kPitch = pitch_of(P);
    constexpr int kGroups = groups_of(P);
    float sum[R][C] = {};
    int offset[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const int row = patch.row + kGroups * r;
        // for rows past the end, the last row is read again and its sum is discarded
        offset[r] = (R == kMostRows ? row : minimum(row, count - 1)) * kPitch;
        keep(offset[r]);
    }
    // The padding of Y and the rows of B beyond the side are zeros.
    const int depth = (work.shape.side + C - 1) / C * C;
    if constexpr (L == kStreamAll) {
        for_panels(work, work.far_gram, kPitch, depth, [&](const float *panel, int64_t first, int rows) {
            if (patch.any) add_product<P, R>(sum, y + first, offset, panel + patch.col, rows);
        });
    } else {
        if (patch.any) add_product<P, R>(sum, y, offset, work.gram + patch.col, depth);
    }
    if constexpr (L == kResident) __syncthreads();  // everybody has read the rows that move now
    if (!patch.any) return false;
    bool bad = false;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const int row = patch.row + kGroups * r;
        if (R != kMostRows && row >= count) continue;
        float value[C];
        load_near<C>(y + row * kPitch + patch.col, value);
#pragma unroll
        for (int j = 0; j < C; ++j) {
            value[j] = fmaf(a, value[j], sum[r][j]);
            bad = bad || not_finite(value[j]);
        }
        if constexpr (L == kResident) {
            store_near<C>(y + row * kPitch + patch.col, value);
        } else {
            store_far<C>(far + row * work.shape.width + patch.col, value);
        }
    }
    return bad;
}

template <int R>
struct Rows {
    static constexpr int value = R;
};

// The same for any number of rows, as many for each thread as there are, up to eight.
template <int P, Level L>
__device__ __forceinline__ bool update_some(const Work &work, const Patch &patch, float *y, float *far, int count, float a) {
    constexpr int kGroups = groups_of(P);
    constexpr int kPitch = pitch_of(P);
    bool bad = false;
    int done = 0;
    const auto some = [&](auto rows) {
        constexpr int R = decltype(rows)::value;
        bad = update_rows<P, R, L>(work, patch, y + done * kPitch, far + done * work.shape.width, count - done,
                                  a) ||
              bad;
        done += R * kGroups;
        if (L == kStreamAll) __syncthreads();  // the panels of the Gram matrix are used again
    };
#pragma unroll 1
    while (count - done >= kMostRows * kGroups) some(Rows<kMostRows>{});
#pragma unroll 1
    while (count - done > 2 * kGroups) some(Rows<4>{});
    if (count - done > kGroups) some(Rows<2>{});
    if (count - done > 0) some(Rows<1>{});
    return bad;
}

template <int P, Level L>
__device__ __forceinline__ bool update(const Schulz &s, float *shared, float a) {
    const Work work = work_of<L>(s, shared);
    const Patch patch = patch_of<P>(work.shape);
    bool bad = false;
    if constexpr (L == kResident) {
        bad = update_some<P, L>(work, patch, work.y, work.y, static_cast<int>(work.shape.length), a);
    } else if constexpr (L == kStreamY) {
        const int width = work.shape.width;
        for_panels(work, work.far_y, width, work.shape.length, [&](float *panel, int64_t first, int rows) {
            bad = update_some<P, L>(work, patch, panel, work.far_y + first * width, rows, a) || bad;
        });
    } else {
        constexpr int kMost = groups_of(P) * kMostRows;
#pragma unroll 1
        for (int64_t first = 0; first < work.shape.length; first += kMost) {
            const int rows = minimum(kMost, work.shape.length - first);
            float *far = work.far_y + first * work.shape.width;
            fetch(work.y, work.shape, far, work.shape.width, rows);
            bad = update_some<P, L>(work, patch, work.y, far, rows, a) || bad;
        }
    }
    __syncthreads();  // everybody has the new Y
    return bad;
}

// ---- A matrix ----

template <int P, Level L>
__device__ __forceinline__ bool iterate(const Schulz &s, float *shared, bool bad) {
#pragma unroll 1
    for (int i = 0; i < reinterpret_cast<const Head *>(shared)->steps; ++i) {
        symmetric_product<P, L, false>(s, shared, 0.0f, 0.0f);
        symmetric_product<P, L, true>(s, shared, s.of.coefficients[3 * i + 1], s.of.coefficients[3 * i + 2]);
        bad = update<P, L>(s, shared, s.of.coefficients[3 * i]);
    }
    return bad;
}

struct InFp32 {
    using Element = float;
    static constexpr int kRows = 1;
    static constexpr bool kStreamsAll = true;

    __device__ static void begin(const Schulz &s, Head &head, const fcm_matrix_block &block) {
        head.shape = shape_of(block);
        head.level = level_of(head.shape, s.available);
        head.panel_rows = head.level == kStreamAll ? kSlicePanel : panel_rows(head.shape, s.available);
    }
    template <Level L>
    __device__ static Work work_of(const Schulz &s, float *shared) {
        return fcm::work_of<L>(s, shared);
    }
    template <Level L>
    __device__ static bool iterate(const Schulz &s, float *shared, bool bad) {
        if constexpr (L == kStreamAll) {
            return fcm::iterate<8, L>(s, shared, bad);
        } else {
            switch (block_side(reinterpret_cast<const Head *>(shared)->shape.side)) {
                case 1: return fcm::iterate<1, L>(s, shared, bad);
                case 2: return fcm::iterate<2, L>(s, shared, bad);
                case 4: return fcm::iterate<4, L>(s, shared, bad);
                case 6: return fcm::iterate<6, L>(s, shared, bad);
                default: return fcm::iterate<8, L>(s, shared, bad);
            }
        }
    }
};

}  // namespace fcm
