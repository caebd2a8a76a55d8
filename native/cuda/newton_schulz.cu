// Newton-Schulz of many small matrices of mixed shapes, the whole iteration of all of them in one launch.
//
// A block of threads takes one matrix after the other from a common queue, the dearest first. While it works on one, it
// holds Y = X^T (`length` rows, the long side, of `width` floats, the short side padded with zeros), so that X X^T = Y^T Y
// and B X = (Y B)^T both run along rows. What of it stays in shared memory depends on what fits:
//   kResident    Y and the Gram matrix: global memory is touched at the beginning and the end only
//   kStreamY     the Gram matrix; Y lies in the workspace and passes through in panels, twice a step
//   kStreamAll   neither; both pass through in panels (a short side near 128 on the GPUs with least shared memory)
// The polynomial of the Gram matrix takes the Gram matrix's own place.
//
// Every element of a product is one chain of fused multiply-adds in the order of k, as on the CPU, so a result depends
// neither on what fits nor on the device, and is the CPU's but for the last bit of the norm. Of symmetric products one
// triangle is computed, in square register tiles that the threads divide among themselves, and mirrored.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "arguments.h"
#include "context.h"
#include "device.h"

namespace fcm {

constexpr int kGroups = 16;    // threads along each side of a product
constexpr int kPanel = 32;     // rows of Y or of the Gram matrix that pass through shared memory together
constexpr int kNarrow = 64;    // short sides up to this have register tiles of up to 4 x 4, longer ones of 8 x 8
constexpr int kPad = 4;        // after each row of Y in shared memory: keeps vectors aligned, spreads rows over the banks
constexpr int kHead = 12;      // floats at the start of shared memory, for a Head
static_assert(kGroups * kGroups == kThreads, "a thread a tile");

// Rows of Y that a thread moves at a time: with the columns of its tile, as many sums as its registers hold.
__host__ __device__ constexpr int rows_a_thread(int width) { return width > kNarrow ? 4 : 8; }

enum Level : int { kResident = 0, kStreamY = 1, kStreamAll = 2 };

struct Shape {
    int side;        // short
    int width;       // side, padded to whole vectors
    int64_t length;  // long
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

// Floats of shared memory behind the head. A panel of Y is either kPanel whole rows, or kPanel columns of the rows that are
// moved together.
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
// Floats of the workspace for what does not stay.
__host__ __device__ inline int64_t stream_floats(const Shape &s, Level level) {
    if (level == kResident) return 0;
    const int64_t gram = static_cast<int64_t>(s.width) * s.width;
    return s.length * s.width + (level == kStreamAll ? gram : 0);
}

struct Schulz {
    int64_t clients;
    int64_t block_count;
    int64_t steps;
    double divisor;
    double eta;
    const float *m;
    int64_t m_stride;
    float *o;
    int64_t o_stride;
    float *w;
    int64_t w_stride;
    const float *coefficients;
    const fcm_matrix_block *blocks;
    int64_t *order;
    double *norms;
    float *stream;           // for each block of the grid, stream_stride floats
    int64_t stream_stride;
    int64_t shared_floats;   // what a matrix may use
    Findings *findings;
};

// The matrix that a block works on, at the start of its shared memory. Every phase reads it anew: what was known of it
// before would only occupy registers that the sums need.
struct Head {
    unsigned long long task;
    int64_t length;
    int side;
    int width;
    Level level;
    int steps;  // none for a matrix of zeros
};
static_assert(sizeof(Head) <= kHead * sizeof(float), "the head has room");

// Where the parts of a matrix lie; level says which of them mean something.
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

// Row or column number `i` of a tile of T. The wide tiles are two halves far apart, so that neighbouring threads read
// neighbouring vectors: no two of them meet on a bank.
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

// `count` rows of the workspace into shared memory, `to_stride` floats apart there.
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

// The Gram matrix, or in its place (`poly`) b A + c A A. A tile below the diagonal that is not computed is the mirror of one
// that is; within a tile on the diagonal, so is the lower half. `to` is read and written by one thread an element.
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
    // The threads take the tiles of the upper triangle, row after row.
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

// sum += Y B over `depth` columns of Y, for a thread's rows of Y, which start at y + offset[r], and columns of B.
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

// Y = a Y + sum for a thread's rows and columns; says whether something left the range of float.
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

// Y = a Y + Y B, some rows at a time: once all threads hold their sums, nobody needs the old rows.
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
                // rows past the end are read again, for nothing
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

// Y = X^T factor, in double and rounded once. Reads along the rows of m whichever way it lies.
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
        symmetric_product<T>(s, shared, true, s.coefficients[3 * i + 1], s.coefficients[3 * i + 2]);
        bad = update<T>(s, shared, s.coefficients[3 * i]);
    }
    return bad;
}

// Whose matrix, and which.
struct Task {
    int64_t client;
    int64_t number;
    fcm_matrix_block block;
};

__device__ __forceinline__ Task task_of(const Schulz &s, const float *shared) {
    const auto task = static_cast<int64_t>(reinterpret_cast<const Head *>(shared)->task);
    const int64_t number = s.order[task / s.clients];
    return {task % s.clients, number, s.blocks[number]};
}

// Whether the matrix stayed within the range of float; it is not stored yet.
__device__ __forceinline__ bool orthogonalize(const Schulz &s, float *shared) {
    const Task task = task_of(s, shared);
    const double norm = s.norms[task.client * s.block_count + task.number];
    const float *m = s.m + task.client * s.m_stride + task.block.m_offset;
    bool bad = load_matrix(work_of(s, shared), task.block, m, norm == 0.0 ? 0.0 : 1.0 / (norm * s.divisor));
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
                     s.o == nullptr ? nullptr : s.o + task.client * s.o_stride + task.block.o_offset,
                     s.w == nullptr ? nullptr : s.w + task.client * s.w_stride + task.block.w_offset,
                     static_cast<float>(s.eta * task.block.scale));
    } else if (threadIdx.x == 0) {
        const Task task = task_of(s, shared);
        atomicMin(&s.findings->out_of_range, static_cast<unsigned long long>(task.client * s.block_count + task.number));
    }
}

}  // namespace fcm

using fcm::kThreads;
using fcm::kWarps;

// The blocks by cost, the dearest first; and nothing has been found or taken yet.
extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_schulz_order(fcm::Schulz s) {
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < s.block_count;
         i += static_cast<int64_t>(gridDim.x) * kThreads) {
        const double cost = fcm::cost_of(s.blocks[i]);
        int64_t before = 0;
        for (int64_t j = 0; j < s.block_count; ++j) {
            const double other = fcm::cost_of(s.blocks[j]);
            if (other > cost || (other == cost && j < i)) ++before;
        }
        s.order[before] = i;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) *s.findings = fcm::Findings{fcm::kNothing, fcm::kNothing, 0};
}

// The norm of every matrix, before any is worked on: a NaN anywhere must leave everything unwritten.
extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_schulz_norms(fcm::Schulz s) {
    SHARED(double, partial, [kWarps]);
    for (int64_t i = blockIdx.x; i < s.clients * s.block_count; i += gridDim.x) {
        const int64_t client = i / s.block_count;
        const fcm_matrix_block block = s.blocks[i - client * s.block_count];
        const float *m = s.m + client * s.m_stride + block.m_offset;
        double sum = 0.0;
        for (int64_t j = threadIdx.x; j < block.rows * block.cols; j += kThreads) {
            sum = fma(static_cast<double>(m[j]), static_cast<double>(m[j]), sum);
        }
        const double total = fcm::block_sum(sum, partial);
        if (threadIdx.x == 0) {
            const double norm = sqrt(total);
            s.norms[i] = norm;
            if (fcm::not_finite(norm)) atomicMin(&s.findings->bad, static_cast<unsigned long long>(i));
        }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads, 2) fcm_k_newton_schulz(fcm::Schulz s) {
    SHARED_DYN(float, shared);
    if (s.findings->bad != fcm::kNothing) return;
    auto &head = *reinterpret_cast<fcm::Head *>(shared);
    const auto matrices = static_cast<unsigned long long>(s.clients * s.block_count);
    for (;;) {
        if (threadIdx.x == 0) {
            head.task = atomicAdd(&s.findings->next, 1ull);
            if (head.task < matrices) {
                const fcm::Task task = fcm::task_of(s, shared);
                const fcm::Shape shape = fcm::shape_of(task.block);
                head.length = shape.length;
                head.side = shape.side;
                head.width = shape.width;
                head.level = fcm::level_of(shape, s.shared_floats);
                head.steps = s.norms[task.client * s.block_count + task.number] == 0.0 ? 0 : static_cast<int>(s.steps);
            }
        }
        __syncthreads();
        if (head.task >= matrices) return;
        if (head.side > 0) fcm::one_matrix(s, shared);
        __syncthreads();  // everybody is done with this one and its place
    }
}

namespace fcm {
namespace {

constexpr int64_t kMostSteps = 1000;
constexpr int64_t kLine = 64;
constexpr int64_t kFloat = sizeof(float);

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Two blocks of threads a multiprocessor is what their registers leave room for.
int64_t grid_of(const fcm_context *context, int64_t matrices) {
    return std::min(matrices, int64_t{2} * context->multiprocessors);
}

int64_t shared_floats_of(const fcm_context *context) { return context->shared_bytes / kFloat - kHead; }

// The workspace, in order: coefficients and blocks as they are sent, the blocks by cost, one norm a matrix, one stream a
// block of the grid.
struct Room {
    int64_t blocks = 0;
    int64_t order = 0;
    int64_t norms = 0;
    int64_t stream = 0;
    int64_t stream_stride = 0;  // floats
    int64_t shared_bytes = 0;
    int64_t total = 0;
};

void check_blocks(Arguments &arguments, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count) {
    arguments.require(clients >= 0, "clients = %" PRId64 " is negative", clients)
        .require(block_count >= 0, "block_count = %" PRId64 " is negative", block_count)
        .require(block_count == 0 || blocks != nullptr, "the table of blocks is null");
    for (int64_t i = 0; arguments.ok() && i < block_count; ++i) {
        const fcm_matrix_block &b = blocks[i];
        int64_t size = 0;
        arguments.require(b.rows >= 0 && b.cols >= 0, "block %" PRId64 " is %" PRId64 " x %" PRId64, i, b.rows, b.cols)
            .require(std::min(b.rows, b.cols) <= FCM_SMALL_SIDE,
                     "block %" PRId64 ", %" PRId64 " x %" PRId64 ", has a short side over %d", i, b.rows, b.cols,
                     FCM_SMALL_SIDE)
            .require(product(b.rows, b.cols, &size), "block %" PRId64 " does not fit int64", i);
    }
}

Room room_for(Arguments &arguments, const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
              int64_t block_count) {
    Room room;
    if (!arguments.ok()) return room;
    for (int64_t i = 0; i < block_count; ++i) {
        // side <= 128, so only the long side can be too long; 2^40 keeps every product below far from overflow
        arguments.require(std::max(blocks[i].rows, blocks[i].cols) < (int64_t{1} << 40), "block %" PRId64 " is too long", i);
        if (!arguments.ok()) return room;
        const Shape shape = shape_of(blocks[i]);
        const Level level = level_of(shape, shared_floats_of(context));
        room.stream_stride = std::max(room.stream_stride, round_up(stream_floats(shape, level), kLine / kFloat));
        room.shared_bytes = std::max(room.shared_bytes, (kHead + shared_floats(shape, level)) * kFloat);
    }
    int64_t matrices = 0;
    const bool fits = product(clients, block_count, &matrices) && matrices < (int64_t{1} << 40) &&
                      block_count < (int64_t{1} << 40);
    arguments.require(fits, "%" PRId64 " clients of %" PRId64 " blocks are too many", clients, block_count);
    if (!arguments.ok() || matrices == 0) return room;
    room.blocks = round_up(3 * kMostSteps * kFloat, kLine);
    room.order = room.blocks + round_up(block_count * static_cast<int64_t>(sizeof(fcm_matrix_block)), kLine);
    room.norms = room.order + round_up(block_count * static_cast<int64_t>(sizeof(int64_t)), kLine);
    room.stream = room.norms + round_up(matrices * static_cast<int64_t>(sizeof(double)), kLine);
    // A workspace is aligned to doubles; a line more makes it fit for vectors.
    room.total = room.stream + grid_of(context, matrices) * room.stream_stride * kFloat + kLine;
    return room;
}

using Offset = int64_t fcm_matrix_block::*;
struct Operand {
    const char *name;
    const float *base;
    int64_t stride;
    Offset offset;
    bool written;
};

// What one client's blocks span from its base: all of it is treated as one operand of the batch.
void check_operand(Arguments &arguments, const Operand &operand, int64_t clients, const fcm_matrix_block *blocks,
                   int64_t block_count) {
    int64_t reach = 0;
    for (int64_t i = 0; arguments.ok() && i < block_count; ++i) {
        int64_t end = 0;
        arguments.require(blocks[i].*operand.offset >= 0 &&
                              sum(blocks[i].*operand.offset, blocks[i].rows * blocks[i].cols, &end),
                          "the offset of block %" PRId64 " in %s is %" PRId64, i, operand.name, blocks[i].*operand.offset);
        reach = std::max(reach, end);
    }
    arguments.batch(operand.name, operand.base, clients, reach, operand.stride, sizeof(float), operand.written);
    if (!operand.written) return;
    for (int64_t i = 0; arguments.ok() && i < block_count; ++i) {
        for (int64_t j = i + 1; arguments.ok() && j < block_count; ++j) {
            const int64_t a = blocks[i].*operand.offset;
            const int64_t b = blocks[j].*operand.offset;
            const bool apart = a + blocks[i].rows * blocks[i].cols <= b || b + blocks[j].rows * blocks[j].cols <= a;
            arguments.require(apart, "blocks %" PRId64 " and %" PRId64 " overlap in %s", i, j, operand.name);
        }
    }
}

// Coefficients and blocks, to where the kernels read them. The call ends by waiting for the stream, so the pinned room is
// free whenever a call begins.
void send_table(const fcm_context *context, const Room &room, char *workspace, const double *coefficients, int64_t steps,
                const fcm_matrix_block *blocks, int64_t block_count) {
    auto *staged = static_cast<char *>(context->staging);
    for (int64_t i = 0; i < 3 * steps; ++i) {
        const auto value = static_cast<float>(coefficients[i]);
        std::memcpy(staged + i * kFloat, &value, sizeof value);
    }
    const int64_t table = block_count * static_cast<int64_t>(sizeof(fcm_matrix_block));
    const bool together = room.blocks + table <= kStagingBytes;
    if (together) std::memcpy(staged + room.blocks, blocks, static_cast<size_t>(table));
    const int64_t bytes = together ? room.blocks + table : 3 * steps * kFloat;
    if (bytes > 0) {
        check(cudaMemcpyAsync(workspace, staged, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, context->stream),
              "cudaMemcpyAsync", bytes);
    }
    if (!together) {
        check(cudaMemcpyAsync(workspace + room.blocks, blocks, static_cast<size_t>(table), cudaMemcpyHostToDevice,
                              context->stream),
              "cudaMemcpyAsync", table);
    }
}

}  // namespace
}  // namespace fcm

using fcm::Arguments;
using fcm::check;
using fcm::launched;

fcm_status fcm_newton_schulz_small_workspace(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                             int64_t block_count, int64_t *bytes, fcm_error *error) {
    Arguments arguments("fcm_newton_schulz_small_workspace", error);
    arguments.context(context).require(bytes != nullptr, "the place for the answer is null");
    fcm::check_blocks(arguments, clients, blocks, block_count);
    const fcm::Room room = fcm::room_for(arguments, context, clients, blocks, block_count);
    if (arguments.ok()) *bytes = room.total;
    return arguments.status();
}

fcm_status fcm_newton_schulz_small(fcm_context *context, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count,
                                   const double *coefficients, int64_t steps, double divisor, double eta, const float *m,
                                   int64_t m_stride, float *o, int64_t o_stride, float *w, int64_t w_stride, void *workspace,
                                   int64_t workspace_bytes, fcm_error *error) {
    constexpr const char *function = "fcm_newton_schulz_small";
    return fcm::guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context)
            .require(steps >= 0 && steps <= fcm::kMostSteps, "steps = %" PRId64 " is outside [0, 1000]", steps)
            .require(steps == 0 || coefficients != nullptr, "the coefficients are null")
            .require(divisor > 0.0 && std::isfinite(divisor), "divisor = %g is not a positive number", divisor)
            .require(std::isfinite(eta), "eta = %g is not finite", eta)
            .require(o != nullptr || w != nullptr, "neither o nor w is given");
        fcm::check_blocks(arguments, clients, blocks, block_count);
        for (int64_t i = 0; arguments.ok() && i < 3 * steps; ++i) {
            arguments.require(std::isfinite(coefficients[i]), "coefficient %" PRId64 " is %g", i, coefficients[i]);
        }
        const bool in_place = o == m;
        fcm::check_operand(arguments, {"m", m, m_stride, &fcm_matrix_block::m_offset, in_place}, clients, blocks, block_count);
        if (o != nullptr && in_place) {
            arguments.require(o_stride == m_stride, "o is m but has another stride");
            for (int64_t i = 0; arguments.ok() && i < block_count; ++i) {
                arguments.require(blocks[i].m_offset == blocks[i].o_offset,
                                  "o is m but block %" PRId64 " has another offset", i);
            }
        } else if (o != nullptr) {
            fcm::check_operand(arguments, {"o", o, o_stride, &fcm_matrix_block::o_offset, true}, clients, blocks, block_count);
        }
        if (w != nullptr) {
            for (int64_t i = 0; arguments.ok() && i < block_count; ++i) {
                arguments.require(std::isfinite(blocks[i].scale), "the scale of block %" PRId64 " is %g", i, blocks[i].scale);
            }
            fcm::check_operand(arguments, {"w", w, w_stride, &fcm_matrix_block::w_offset, true}, clients, blocks, block_count);
        }
        const fcm::Room room = fcm::room_for(arguments, context, clients, blocks, block_count);
        arguments.workspace(workspace, workspace_bytes, room.total).disjoint();
        if (!arguments.ok() || clients == 0 || block_count == 0) return arguments.status();

        return fcm::on_device(function, context, error, [&] {
            const auto address = reinterpret_cast<uintptr_t>(workspace);
            char *start = static_cast<char *>(workspace) + (-address & static_cast<uintptr_t>(fcm::kLine - 1));
            fcm::send_table(context, room, start, coefficients, steps, blocks, block_count);
            const int64_t matrices = clients * block_count;
            const fcm::Schulz s{clients,
                                block_count,
                                steps,
                                divisor,
                                eta,
                                m,
                                m_stride,
                                o,
                                o_stride,
                                w,
                                w_stride,
                                reinterpret_cast<const float *>(start),
                                reinterpret_cast<const fcm_matrix_block *>(start + room.blocks),
                                reinterpret_cast<int64_t *>(start + room.order),
                                reinterpret_cast<double *>(start + room.norms),
                                reinterpret_cast<float *>(start + room.stream),
                                room.stream_stride,
                                fcm::shared_floats_of(context),
                                context->findings};
            LAUNCH(fcm_k_schulz_order, fcm::blocks_for(fcm::parts_of(block_count, kThreads)), kThreads, 0, context->stream, s);
            launched("fcm_k_schulz_order", clients, block_count);
            LAUNCH(fcm_k_schulz_norms, fcm::blocks_for(matrices), kThreads, 0, context->stream, s);
            launched("fcm_k_schulz_norms", clients, block_count);
            // Always all there is: another context of this device may be launching at the same time.
            check(cudaFuncSetAttribute(fcm_k_newton_schulz, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       context->shared_bytes),
                  "cudaFuncSetAttribute", context->shared_bytes);
            LAUNCH(fcm_k_newton_schulz, static_cast<unsigned>(fcm::grid_of(context, matrices)), kThreads,
                   static_cast<size_t>(room.shared_bytes), context->stream, s);
            launched("fcm_k_newton_schulz", clients, block_count);

            const fcm::Findings findings = fcm::read_findings(context);
            const auto not_finite = [&](unsigned long long number, const char *words) {
                const auto client = static_cast<int64_t>(number) / block_count;
                const auto block = static_cast<int64_t>(number) % block_count;
                const int64_t size = blocks[block].rows * blocks[block].cols;
                const float *matrix = m + client * m_stride + blocks[block].m_offset;
                const int64_t index = fcm::first_not_finite(context, 1, size, matrix, size).index;
                return fcm::fail(error, FCM_NOT_FINITE, {client, block, index},
                                 "%s: %s, block %" PRId64 " of client %" PRId64, function, words, block, client);
            };
            if (findings.bad != fcm::kNothing) return not_finite(findings.bad, "NaN or Inf in the matrix");
            if (findings.out_of_range != fcm::kNothing) {
                return not_finite(findings.out_of_range, "the coefficients drive the iteration out of range");
            }
            return fcm_status{FCM_OK};
        });
    });
}
