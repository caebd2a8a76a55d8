// Device code of Newton-Schulz for many small matrices of mixed shapes, with the whole iteration of all matrices in one launch.
//
// A block of threads takes one matrix after the other from a common queue, the most expensive first. During the iteration it
// holds Y = X^T (`length` rows, the long side, of `width` floats, the short side padded with zeros), so that X X^T = Y^T Y
// and B X = (Y B)^T both run along rows. The size of shared memory decides what is kept there:
//   kResident    Y and the Gram matrix: global memory is only accessed at the beginning and at the end
//   kStreamY     the Gram matrix; Y is in the workspace and streamed in panels, twice per step
//   kStreamAll   neither; both are streamed in panels (a short side near 128 on the GPUs with the least shared memory)
// The polynomial of the Gram matrix overwrites the Gram matrix.
//
// Every element of a product is one chain of fused multiply-adds in the order of k, as on the CPU. A result therefore does
// not depend on the level or on the device, and it equals the CPU's except for the last bit of the norm. Of symmetric
// products one triangle is computed, in square register tiles that are distributed over the threads, and mirrored.
#pragma once

#include "device.h"
#include "schulz.h"
#include "status.h"

namespace fcm {

constexpr int kGroups = 16;    // threads along each side of a product
constexpr int kPanel = 32;     // rows of Y or of the Gram matrix that are streamed through shared memory together
constexpr int kNarrow = 64;    // short sides up to this use register tiles of up to 4 x 4, longer ones of 8 x 8
constexpr int kPad = 4;        // after each row of Y in shared memory: aligns vectors and distributes rows over the banks
constexpr int kHead = 12;      // floats at the start of shared memory, for a Head
static_assert(kGroups * kGroups == kThreads, "a thread a tile");

// The rows of Y that a thread updates at a time; times the columns of its tile, as many sums as its registers hold.
__host__ __device__ constexpr int rows_a_thread(int width) { return width > kNarrow ? 4 : 8; }

enum Level : int { kResident = 0, kStreamY = 1, kStreamAll = 2 };

struct Shape {
    int side;        // short side
    int width;       // short side padded to whole vectors
    int64_t length;  // long side
};

__host__ __device__ inline Shape shape_of(const fcm_matrix_block &block) {
    const int64_t side = block.rows < block.cols ? block.rows : block.cols;
    const int unit = side > kNarrow ? 8 : 4;
    return {static_cast<int>(side), (static_cast<int>(side) + unit - 1) / unit * unit,
            block.rows < block.cols ? block.cols : block.rows};
}

__host__ __device__ inline double cost_of(const fcm_matrix_block &block) {
    const Shape s = shape_of(block);
    return static_cast<double>(s.width) * static_cast<double>(s.width) *
           (3.0 * static_cast<double>(s.length) + static_cast<double>(s.width));
}

// Floats of shared memory after the head. A panel of Y is either kPanel whole rows, or kPanel columns of the rows that are
// updated together.
__host__ __device__ inline int64_t panel_floats(const Shape &s) {
    const int64_t rows = kPanel * (s.width + kPad);
    const int64_t columns = kGroups * rows_a_thread(s.width) * (kPanel + kPad);
    return rows > columns ? rows : columns;
}
__host__ __device__ inline int64_t shared_floats(const Shape &s, Level level) {
    const int64_t gram = static_cast<int64_t>(s.width) * s.width;
    if (level == kResident) return gram + s.length * (s.width + kPad);
    if (level == kStreamY) return gram + panel_floats(s);
    return kPanel * s.width + panel_floats(s);
}
__host__ __device__ inline Level level_of(const Shape &s, int64_t available) {
    if (shared_floats(s, kResident) <= available) return kResident;
    return shared_floats(s, kStreamY) <= available ? kStreamY : kStreamAll;
}
// Floats of the workspace for the data that is not kept in shared memory.
__host__ __device__ inline int64_t stream_floats(const Shape &s, Level level) {
    if (level == kResident) return 0;
    const int64_t gram = static_cast<int64_t>(s.width) * s.width;
    return s.length * s.width + (level == kStreamAll ? gram : 0);
}

struct Schulz {
    SchulzOperands of;
    const int64_t *order;      // blocks by descending cost
    int64_t order_count;
    unsigned long long *next;  // the next matrix in the queue; 0 before and after a launch
    float *stream;             // stream_stride floats for each block of the grid
    int64_t stream_stride;
    int64_t shared_floats;     // shared memory available to a matrix
    Check bad;                 // for NaN and Inf in m
    Check out_of_range;        // with the next ticket
};

// The matrix that a block works on, stored at the start of its shared memory. Every phase reads it again, because keeping
// the values would occupy registers that the sums need.
struct Head {
    unsigned long long task;
    int64_t length;
    int side;
    int width;
    Level level;
    int steps;  // 0 for a matrix of zeros
};
static_assert(sizeof(Head) <= kHead * sizeof(float), "the head has room");

// The addresses of the parts of a matrix; `level` determines which of them are valid.
struct Work {
    Shape shape;
    Level level;
    float *gram;
    float *y;
    float *panel;
    float *gram_panel;
    float *far_y;
    float *far_gram;
};

__device__ __forceinline__ Work work_of(const Schulz &s, float *shared) {
    const Head &head = *reinterpret_cast<const Head *>(shared);
    Work work;
    work.shape = {head.side, head.width, head.length};
    work.level = head.level;
    float *room = shared + kHead;
    const int gram = head.width * head.width;
    work.gram = room;
    work.y = room + gram;
    work.panel = room + (head.level == kStreamAll ? kPanel * head.width : gram);
    work.gram_panel = room;
    work.far_y = s.stream + blockIdx.x * s.stream_stride;
    work.far_gram = work.far_y + head.length * head.width;
    return work;
}

__device__ __forceinline__ int minimum(int64_t a, int64_t b) { return static_cast<int>(a < b ? a : b); }

// The index of row or column `i` of a tile of T. Wide tiles consist of two halves that are far apart, so that neighbouring
// threads read neighbouring vectors without bank conflicts.
template <int T>
__device__ __forceinline__ int place_in_tile(int tile, int i, int width) {
    if constexpr (T == 8) return i < 4 ? 4 * tile + i : width / 2 + 4 * tile + i - 4;
    return T * tile + i;
}

template <int T>
__device__ __forceinline__ void load_tile(const float *row, int tile, int width, float (&value)[T]) {
    if constexpr (T == 8) {
        const float4 low = *reinterpret_cast<const float4 *>(row + 4 * tile);
        const float4 high = *reinterpret_cast<const float4 *>(row + width / 2 + 4 * tile);
        value[0] = low.x;
        value[1] = low.y;
        value[2] = low.z;
        value[3] = low.w;
        value[4] = high.x;
        value[5] = high.y;
        value[6] = high.z;
        value[7] = high.w;
    } else if constexpr (T == 4) {
        load<4>(row + 4 * tile, value);
    } else {
#pragma unroll
        for (int i = 0; i < T; ++i) value[i] = row[T * tile + i];
    }
}

// Copies `count` rows of the workspace to shared memory, where rows are `to_stride` floats apart.
__device__ __forceinline__ void fetch_rows(float *to, int to_stride, const float *from, int width, int count) {
    const int vectors = width / 4;
#pragma unroll 1
    for (int e = static_cast<int>(threadIdx.x); e < count * vectors; e += kThreads) {
        const int row = e / vectors;
        const int at = e - row * vectors;
        *reinterpret_cast<float4 *>(to + row * to_stride + 4 * at) =
            *reinterpret_cast<const float4 *>(from + static_cast<int64_t>(row) * width + 4 * at);
    }
}

// sum += Q^T Q over `depth` rows of Q, for the rows and columns of one tile.
template <int T>
__device__ __forceinline__ void add_squares(float (&sum)[T][T], const float *q, int stride, int depth, int row, int col,
                                            int width) {
#pragma unroll(T == 8 ? 1 : 4)
    for (int k = 0; k < depth; ++k, q += stride) {
        float left[T], right[T];
        load_tile<T>(q, row, width, left);
        load_tile<T>(q, col, width, right);
#pragma unroll
        for (int i = 0; i < T; ++i) {
#pragma unroll
            for (int j = 0; j < T; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
        }
    }
}

// Stores the Gram matrix, or b A + c A A in its place (`poly`). A tile below the diagonal is the mirror image of a computed
// one, and so is the lower half of a tile on the diagonal. Each element of `to` is read and written by a single thread.
template <int T>
__device__ __forceinline__ void store_tile(float *to, const float (&sum)[T][T], int row, int col, int width, bool poly,
                                           float b, float c) {
#pragma unroll
    for (int i = 0; i < T; ++i) {
#pragma unroll
        for (int j = 0; j < T; ++j) {
            const int r = place_in_tile<T>(row, i, width);
            const int s = place_in_tile<T>(col, j, width);
            if (row == col && s < r) continue;
            const float value = poly ? fmaf(b, to[r * width + s], c * sum[i][j]) : sum[i][j];
            to[r * width + s] = value;
            to[s * width + r] = value;
        }
    }
}

template <int T>
__device__ __forceinline__ void symmetric_product(const Schulz &s, float *shared, bool poly, float b, float c) {
    const Work work = work_of(s, shared);
    const int width = work.shape.width;
    const int tiles = width / T;
    // The tiles of the upper triangle are assigned to the threads row by row.
    int row = 0;
    int col = static_cast<int>(threadIdx.x);
    while (row < tiles && col >= tiles - row) {
        col -= tiles - row;
        ++row;
    }
    col += row;
    const bool mine = row < tiles;
    const bool streamed = poly ? work.level == kStreamAll : work.level != kResident;
    const int64_t depth = poly ? work.shape.side : work.shape.length;
    float sum[T][T] = {};
    if (streamed) {
        const float *far = poly ? work.far_gram : work.far_y;
#pragma unroll 1
        for (int64_t k = 0; k < depth; k += kPanel) {
            const int count = minimum(kPanel, depth - k);
            fetch_rows(work.panel, width + kPad, far + k * width, width, count);
            __syncthreads();
            if (mine) add_squares<T>(sum, work.panel, width + kPad, count, row, col, width);
            __syncthreads();
        }
    } else {
        const float *near = poly ? work.gram : work.y;
        if (mine) add_squares<T>(sum, near, poly ? width : width + kPad, static_cast<int>(depth), row, col, width);
        __syncthreads();  // everybody has read what is overwritten now
    }
    if (mine && work.level == kStreamAll) {
        store_tile<T>(work.far_gram, sum, row, col, width, poly, b, c);
    } else if (mine) {
        store_tile<T>(work.gram, sum, row, col, width, poly, b, c);
    }
    __syncthreads();
}

// sum += Y B over `depth` columns of Y, for a thread's rows of Y, which start at y + offset[r], and its columns of B.
template <int T, int R>
__device__ __forceinline__ void add_product(float (&sum)[R][T], const float *y, const int (&offset)[R], const float *b,
                                            int depth, int col, int width) {
    int k = 0;
    for (; k + 4 <= depth; k += 4) {
        float rows[R][4];
#pragma unroll
        for (int r = 0; r < R; ++r) load<4>(y + offset[r] + k, rows[r]);
#pragma unroll
        for (int i = 0; i < 4; ++i, b += width) {
            float right[T];
            load_tile<T>(b, col, width, right);
#pragma unroll
            for (int r = 0; r < R; ++r) {
#pragma unroll
                for (int j = 0; j < T; ++j) sum[r][j] = fmaf(rows[r][i], right[j], sum[r][j]);
            }
        }
    }
    for (; k < depth; ++k, b += width) {
        float right[T];
        load_tile<T>(b, col, width, right);
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const float left = y[offset[r] + k];
#pragma unroll
            for (int j = 0; j < T; ++j) sum[r][j] = fmaf(left, right[j], sum[r][j]);
        }
    }
}

// Y = a Y + sum for a thread's rows and columns; returns whether a value left the range of float.
template <int T, int R>
__device__ __forceinline__ bool move_rows(float *y, int stride, const float (&sum)[R][T], float a, int group, int rows,
                                          int col, int width) {
    bool bad = false;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        if (group + kGroups * r >= rows) continue;
        float *row = y + static_cast<int64_t>(group + kGroups * r) * stride;
#pragma unroll
        for (int j = 0; j < T; ++j) {
            float &place = row[place_in_tile<T>(col, j, width)];
            const float value = fmaf(a, place, sum[r][j]);
            bad = bad || not_finite(value);
            place = value;
        }
    }
    return bad;
}

// Y = a Y + Y B, a group of rows at a time: once all threads hold their sums, the old rows are no longer needed.
template <int T>
__device__ __forceinline__ bool update(const Schulz &s, float *shared, float a) {
    const Work work = work_of(s, shared);
    const int width = work.shape.width;
    const int side = work.shape.side;
    const int64_t length = work.shape.length;
    constexpr int R = rows_a_thread(T == 8 ? FCM_SMALL_SIDE : kNarrow);
    constexpr int kRowsAtOnce = kGroups * R;
    const int col = static_cast<int>(threadIdx.x) % kGroups;
    const int group = static_cast<int>(threadIdx.x) / kGroups;
    const bool mine = col * T < width;
    bool bad = false;
#pragma unroll 1
    for (int64_t first = 0; first < length; first += kRowsAtOnce) {
        const int rows = minimum(kRowsAtOnce, length - first);
        float sum[R][T] = {};
        if (work.level == kResident) {
            const float *y = work.y + first * (width + kPad);
            int offset[R];
#pragma unroll
            for (int r = 0; r < R; ++r) {
                // for rows past the end, the last row is read again and its sum is discarded
                offset[r] = minimum(group + kGroups * r, rows - 1) * (width + kPad);
            }
            if (mine) add_product<T, R>(sum, y, offset, work.gram, side, col, width);
            __syncthreads();
            if (mine) bad = move_rows<T, R>(work.y + first * (width + kPad), width + kPad, sum, a, group, rows, col, width) || bad;
        } else {
            float *y = work.far_y + first * width;
            int offset[R];
#pragma unroll
            for (int r = 0; r < R; ++r) offset[r] = (group + kGroups * r) * (kPanel + kPad);
#pragma unroll 1
            for (int k = 0; k < side; k += kPanel) {
                constexpr int kVectors = kPanel / 4;
                for (int e = static_cast<int>(threadIdx.x); e < kRowsAtOnce * kVectors; e += kThreads) {
                    const int row = e / kVectors;
                    const int at = e % kVectors * 4;
                    float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                    if (row < rows && k + at < width) {
                        four = *reinterpret_cast<const float4 *>(y + static_cast<int64_t>(row) * width + k + at);
                    }
                    *reinterpret_cast<float4 *>(work.panel + row * (kPanel + kPad) + at) = four;
                }
                const int depth = minimum(kPanel, side - k);
                if (work.level == kStreamAll) fetch_rows(work.gram_panel, width, work.far_gram + k * width, width, depth);
                __syncthreads();
                const float *b = work.level == kStreamAll ? work.gram_panel : work.gram + k * width;
                if (mine) add_product<T, R>(sum, work.panel, offset, b, depth, col, width);
                __syncthreads();
            }
            if (mine) bad = move_rows<T, R>(y, width, sum, a, group, rows, col, width) || bad;
        }
    }
    __syncthreads();
    return bad;
}

// Y = X^T factor, computed in double and rounded once. Reads along the rows of m for either orientation.
__device__ __forceinline__ bool load_matrix(const Work &work, const fcm_matrix_block &block, const float *m, double factor) {
    const int width = work.shape.width;
    const bool tall = block.rows > block.cols;
    const bool resident = work.level == kResident;
    bool bad = false;
#pragma unroll 1
    for (int64_t first = 0; first < work.shape.length; first += kPanel) {
        const int count = minimum(kPanel, work.shape.length - first);
        float *to = resident ? work.y + first * (width + kPad) : work.panel;
#pragma unroll 1
        for (int e = static_cast<int>(threadIdx.x); e < kPanel * width; e += kThreads) {
            const int row = tall ? e / width : e % kPanel;
            const int col = tall ? e - row * width : e / kPanel;
            if (row >= count) continue;
            float value = 0.0f;
            if (col < work.shape.side) {
                const int64_t at = tall ? (first + row) * block.cols + col : col * block.cols + first + row;
                value = static_cast<float>(static_cast<double>(m[at]) * factor);
                bad = bad || not_finite(value);
            }
            to[row * (width + kPad) + col] = value;
        }
        if (!resident) {
            __syncthreads();
            const int vectors = width / 4;
#pragma unroll 1
            for (int e = static_cast<int>(threadIdx.x); e < count * vectors; e += kThreads) {
                const int row = e / vectors;
                const int at = 4 * (e - row * vectors);
                *reinterpret_cast<float4 *>(work.far_y + (first + row) * width + at) =
                    *reinterpret_cast<const float4 *>(work.panel + row * (width + kPad) + at);
            }
            __syncthreads();
        }
    }
    __syncthreads();
    return bad;
}

// o = X and w -= step X; either may be null.
__device__ __forceinline__ void store_matrix(const Work &work, const fcm_matrix_block &block, float *o, float *w, float step) {
    const int width = work.shape.width;
    const int side = work.shape.side;
    const bool tall = block.rows > block.cols;
    const bool resident = work.level == kResident;
#pragma unroll 1
    for (int64_t first = 0; first < work.shape.length; first += kPanel) {
        const int count = minimum(kPanel, work.shape.length - first);
        if (!resident) {
            fetch_rows(work.panel, width + kPad, work.far_y + first * width, width, count);
            __syncthreads();
        }
        const float *from = resident ? work.y + first * (width + kPad) : work.panel;
#pragma unroll 1
        for (int e = static_cast<int>(threadIdx.x); e < kPanel * side; e += kThreads) {
            const int row = tall ? e / side : e % kPanel;
            const int col = tall ? e - row * side : e / kPanel;
            if (row >= count) continue;
            const int64_t at = tall ? (first + row) * block.cols + col : col * block.cols + first + row;
            const float value = from[row * (width + kPad) + col];
            if (w != nullptr) w[at] -= step * value;
            if (o != nullptr) o[at] = value;
        }
        if (!resident) __syncthreads();
    }
}

template <int T>
__device__ __forceinline__ bool iterate(const Schulz &s, float *shared, bool bad) {
#pragma unroll 1
    for (int i = 0; i < reinterpret_cast<const Head *>(shared)->steps; ++i) {
        symmetric_product<T>(s, shared, false, 0.0f, 0.0f);
        symmetric_product<T>(s, shared, true, s.of.coefficients[3 * i + 1], s.of.coefficients[3 * i + 2]);
        bad = update<T>(s, shared, s.of.coefficients[3 * i]);
    }
    return bad;
}

// The client and the block of a matrix.
struct Task {
    int64_t client;
    int64_t number;
    fcm_matrix_block block;
};

__device__ __forceinline__ Task task_of(const Schulz &s, const float *shared) {
    const auto task = static_cast<int64_t>(reinterpret_cast<const Head *>(shared)->task);
    const int64_t number = s.order[task / s.of.clients];
    return {task % s.of.clients, number, s.of.blocks[number]};
}

// Returns whether the matrix stayed within the range of float; the result is not stored yet.
__device__ __forceinline__ bool orthogonalize(const Schulz &s, float *shared) {
    const Task task = task_of(s, shared);
    const double norm = s.of.norms[task.client * s.of.block_count + task.number];
    const float *m = s.of.m + task.client * s.of.m_stride + task.block.m_offset;
    bool bad = load_matrix(work_of(s, shared), task.block, m, norm == 0.0 ? 0.0 : 1.0 / (norm * s.of.divisor));
    const int width = reinterpret_cast<const Head *>(shared)->width;
    if (width <= 16) {
        bad = iterate<1>(s, shared, bad);
    } else if (width <= 32) {
        bad = iterate<2>(s, shared, bad);
    } else if (width <= kNarrow) {
        bad = iterate<4>(s, shared, bad);
    } else {
        bad = iterate<8>(s, shared, bad);
    }
    return __syncthreads_or(bad ? 1 : 0) == 0;
}

__device__ __forceinline__ void one_matrix(const Schulz &s, float *shared) {
    if (orthogonalize(s, shared)) {
        const Task task = task_of(s, shared);
        store_matrix(work_of(s, shared), task.block,
                     s.of.o == nullptr ? nullptr : s.of.o + task.client * s.of.o_stride + task.block.o_offset,
                     s.of.w == nullptr ? nullptr : s.of.w + task.client * s.of.w_stride + task.block.w_offset,
                     static_cast<float>(s.of.eta * task.block.scale));
    } else if (threadIdx.x == 0) {
        const Task task = task_of(s, shared);
        s.out_of_range.found(s.of.m + task.client * s.of.m_stride + task.block.m_offset);
    }
}

}  // namespace fcm
