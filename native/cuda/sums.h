// How the elements of a vector are added: in double and in a fixed order that depends neither on the grid nor on the
// alignment. Each vector is cut into pieces, a piece belongs to a block, and element j of a piece belongs to thread
// (j / 4) mod kThreads.
#pragma once

#include "device.h"
#include "status.h"

namespace fcm {

// The sum of a piece occupies one double of the workspace. Pieces are small, so that a vector of a million elements occupies
// every multiprocessor.
constexpr int64_t kSumPiece = 4 * kChunk;

inline int64_t pieces_of(int64_t n) { return parts_of(n, kSumPiece); }

// Of entries that each have a number of pieces: the last one that begins at or before `position`. Entries without pieces begin
// where the next one does.
template <class Entry>
__device__ __forceinline__ int64_t entry_at(const Entry *entries, int64_t count, int64_t Entry::*first, int64_t position) {
    int64_t low = 0;
    int64_t high = count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (entries[middle].*first <= position) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

__device__ __forceinline__ bool is_vector_aligned(const float *at) { return reinterpret_cast<uintptr_t>(at) % 16 == 0; }

// The square of a float is exact in double, so fusing it into the sum does not change the rounding.
template <int W>
__device__ __forceinline__ double add_squares(double sum, const float (&value)[W]) {
#pragma unroll
    for (int i = 0; i < W; ++i) sum = fma(static_cast<double>(value[i]), static_cast<double>(value[i]), sum);
    return sum;
}

// The thread's part of the sum of squares of the values that op.at(j, value) gives for the elements of the piece at `start`
// of a vector of n elements.
template <class Op>
__device__ __forceinline__ double piece_squares(int64_t start, int64_t n, bool vectors, const Op &op) {
    double sum = 0.0;
    for (int64_t chunk = start; chunk < start + kSumPiece && chunk < n; chunk += kChunk) {
        const int64_t first = chunk + 4 * static_cast<int64_t>(threadIdx.x);
        if (vectors && first + 4 <= n) {
            float value[4];
            op.template at<4>(first, value);
            sum = add_squares<4>(sum, value);
        } else {
            for (int64_t j = first; j < first + 4 && j < n; ++j) {
                float value[1];
                op.template at<1>(j, value);
                sum = add_squares<1>(sum, value);
            }
        }
    }
    return sum;
}

// The elements of one vector.
struct Elements {
    const float *x;

    template <int W>
    __device__ __forceinline__ void at(int64_t j, float (&value)[W]) const {
        load<W>(x + j, value);
    }
};

// The same for a vector in which NaN and Inf are looked for: a sum that is not finite has one among its own terms.
__device__ __forceinline__ double checked_squares(int64_t start, int64_t n, bool vectors, const float *x, const Check &check) {
    const double sum = piece_squares(start, n, vectors, Elements{x});
    if (!not_finite(sum)) return sum;
    for (int64_t chunk = start; chunk < start + kSumPiece && chunk < n; chunk += kChunk) {
        const int64_t first = chunk + 4 * static_cast<int64_t>(threadIdx.x);
        for (int64_t j = first; j < first + 4 && j < n; ++j) {
            if (not_finite(x[j])) check.found(x + j);
        }
    }
    return sum;
}

// The norm from the sums of the pieces of a vector, returned to thread 0.
__device__ __forceinline__ double norm_of(const double *sums, int64_t pieces, double *partial) {
    double sum = 0.0;
    for (int64_t i = threadIdx.x; i < pieces; i += kThreads) sum += sums[i];
    return sqrt(block_sum(sum, partial));
}

// How a vector moves along m: by eta, or by eta over the norm of m.
struct StepSize {
    bool any;  // false for a zero m, which makes no step
    double step;
};

template <int W>
__device__ __forceinline__ void step_along(const StepSize &size, const float *m, float *w) {
    if (!size.any) return;
    float by[W], value[W];
    load<W>(m, by);
    load<W>(w, value);
#pragma unroll
    for (int i = 0; i < W; ++i) value[i] -= static_cast<float>(size.step * static_cast<double>(by[i]));
    store<W>(w, value);
}

}  // namespace fcm
