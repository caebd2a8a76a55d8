// What the kernels of small_schulz.h and small_schulz_mma.h have in common: the queue of matrices, where the parts of a matrix are,
// rows that are streamed through shared memory, and how a matrix is loaded, checked and stored.
//
// `Kind` is how a kernel computes:
//
//   Kind::Element                       what Y and the Gram matrix are stored as
//   Kind::kRows                         rows of Y are padded to a multiple of this by zeros
//   Kind::kStreamsAll                   whether it has the level kStreamAll
//   Kind::begin(s, head, block)         sets shape, level and panel_rows
//   Kind::work_of<L>(s, shared)         the parts of the matrix
//   Kind::iterate<L>(s, shared, bad)    all steps; returns whether a value of this thread's is not finite, `bad` without steps
#pragma once

#include "async_copy.h"
#include "bf16.h"
#include "device.h"
#include "schulz.h"
#include "status.h"

namespace fcm {

constexpr int kHead = 12;  // floats at the start of shared memory, for a Head

enum Level : int { kResident = 0, kStreamY = 1, kStreamAll = 2 };

struct Shape {
    int side;        // short side
    int width;       // short side padded to whole vectors and to whole blocks
    int pitch;       // elements from a row to the next
    int64_t length;  // long side
};

// Elements of a number of rows; nothing follows the last one.
__host__ __device__ inline int64_t rows_elements(const Shape &s, int64_t rows) { return rows * s.pitch - (s.pitch - s.width); }

struct Schulz {
    SchulzOperands of;
    const int64_t *order;      // blocks by descending cost
    int64_t order_count;
    unsigned long long *next;  // the next matrix in the queue; 0 before and after a launch
    void *stream;              // stream_stride elements for each block of the grid
    int64_t stream_stride;
    int64_t available;         // elements of shared memory for a matrix
    Check bad;                 // for NaN and Inf in m
    Check out_of_range;        // with the next ticket
};

// The matrix that a block works on, stored at the start of its shared memory. Every phase reads it again, because keeping
// the values would occupy registers that the sums need.
struct Head {
    unsigned long long task;
    Shape shape;
    Level level;
    int panel_rows;
    int steps;  // 0 for a matrix of zeros
};
static_assert(sizeof(Head) <= kHead * sizeof(float), "the head has room");

// The parts of a matrix; the level determines which of them exist.
template <class Element>
struct Parts {
    Shape shape;
    Element *gram;
    Element *y;      // all of it, or the rows of kStreamAll that are updated
    Element *panel;  // the first of two, panel_elements apart
    int panel_rows;
    int panel_elements;
    Element *far_y;     // rows of `width` elements
    Element *far_gram;  // rows of `pitch` elements
};

__device__ __forceinline__ int minimum(int64_t a, int64_t b) { return static_cast<int>(a < b ? a : b); }

// N neighbouring floats in the longest vectors that their alignment allows, which is that of N.
template <int N>
__device__ __forceinline__ void load_near(const float *from, float (&value)[N]) {
    if constexpr (N % 4 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            const float4 four = *reinterpret_cast<const float4 *>(from + i);
            value[i] = four.x;
            value[i + 1] = four.y;
            value[i + 2] = four.z;
            value[i + 3] = four.w;
        }
    } else if constexpr (N % 2 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            const float2 two = *reinterpret_cast<const float2 *>(from + i);
            value[i] = two.x;
            value[i + 1] = two.y;
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) value[i] = from[i];
    }
}

template <int N>
__device__ __forceinline__ void store_near(float *to, const float (&value)[N]) {
    if constexpr (N % 4 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            *reinterpret_cast<float4 *>(to + i) = make_float4(value[i], value[i + 1], value[i + 2], value[i + 3]);
        }
    } else if constexpr (N % 2 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 2) *reinterpret_cast<float2 *>(to + i) = make_float2(value[i], value[i + 1]);
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) to[i] = value[i];
    }
}

// Elements of a vector of 16 bytes, and a vector of them as floats, in shared memory.
template <class Element>
constexpr int kVector = 16 / static_cast<int>(sizeof(Element));

__device__ __forceinline__ void load_vector(const float *from, float (&value)[4]) { load_near<4>(from, value); }
__device__ __forceinline__ void load_vector(const Bf16 *from, float (&value)[8]) {
    const uint4 pairs = *reinterpret_cast<const uint4 *>(from);
    const unsigned words[4] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        value[2 * i] = __uint_as_float(words[i] << 16);
        value[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}
__device__ __forceinline__ void store_words(void *to, const unsigned (&words)[4]) {
#if defined(__CUDA_ARCH__)
    // nvcc divides a vector that was computed word by word into words, which conflict in the banks.
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
#else
    *static_cast<uint4 *>(to) = make_uint4(words[0], words[1], words[2], words[3]);
#endif
}
__device__ __forceinline__ void store_vector(float *to, const float (&value)[4]) {
    const unsigned words[4] = {__float_as_uint(value[0]), __float_as_uint(value[1]), __float_as_uint(value[2]),
                               __float_as_uint(value[3])};
    store_words(to, words);
}
__device__ __forceinline__ void store_vector(Bf16 *to, const float (&value)[8]) {
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        words[i] = rounded_to<Bf16>(value[2 * i]).bits | static_cast<unsigned>(rounded_to<Bf16>(value[2 * i + 1]).bits) << 16;
    }
    store_words(to, words);
}

// ---- Streams ----

// Calls copy(row, col) for all vectors of `count` rows, neighbouring ones by neighbouring threads; col is their first column.
template <class Element, class Copy>
__device__ __forceinline__ void for_vectors(int width, int count, const Copy &copy) {
    const int vectors = width / kVector<Element>;
    const int rows = kThreads / vectors;
    const int rest = kThreads - rows * vectors;
    int row = thread_index() / vectors;
    int vector = thread_index() - row * vectors;
#pragma unroll 1
    while (row < count) {
        copy(row, kVector<Element> * vector);
        row += rows;
        vector += rest;
        if (vector >= vectors) {
            vector -= vectors;
            ++row;
        }
    }
}

// Begins to copy rows of the workspace to shared memory.
template <class Element>
__device__ __forceinline__ void fetch(Element *to, const Shape &shape, const Element *from, int from_pitch, int count) {
    for_vectors<Element>(shape.width, count, [&](int row, int col) {
        copy_async16(to + row * shape.pitch + col, from + row * from_pitch + col);
    });
    commit_copies();
}

// Calls use(panel, first, rows) for all `total` rows of `far`, in order. While a panel is used, the next one is copied. On
// return, some threads may still use the last one.
template <class Element, class Use>
__device__ __forceinline__ void for_panels(const Parts<Element> &work, const Element *far, int far_pitch, int64_t total,
                                           const Use &use) {
    const int rows = work.panel_rows;
    const auto begin = [&](int64_t first, int buffer) {
        fetch(work.panel + buffer * work.panel_elements, work.shape, far + first * far_pitch, far_pitch,
              minimum(rows, total - first));
    };
    begin(0, 0);
    int buffer = 0;
#pragma unroll 1
    for (int64_t first = 0; first < total; first += rows) {
        wait_copies<0>();
        __syncthreads();  // this panel is there, and nobody uses the other one any more
        if (first + rows < total) begin(first + rows, 1 - buffer);
        use(work.panel + buffer * work.panel_elements, first, minimum(rows, total - first));
        buffer = 1 - buffer;
    }
}

// Copies the rows of a panel to those of Y in the workspace from `first` on.
template <class Element>
__device__ __forceinline__ void store_panel(const Parts<Element> &work, const Element *panel, int64_t first, int count) {
    Element *to = work.far_y + first * work.shape.width;
    for_vectors<Element>(work.shape.width, count, [&](int row, int col) {
        *reinterpret_cast<float4 *>(to + row * work.shape.width + col) =
            *reinterpret_cast<const float4 *>(panel + row * work.shape.pitch + col);
    });
}

// ---- Loading and storing ----

// Y = X^T factor, computed in double and rounded to float, then to an element, for `count` rows of Y from `first` on.
template <class Element>
__device__ __forceinline__ bool load_rows(Element *to, const Shape &shape, const fcm_matrix_block &block, const float *m,
                                          int64_t first, int count, double factor) {
    const int thread = thread_index();
    const int pitch = shape.pitch;
    bool bad = false;
    const auto scaled = [&](const float *from) {
        const auto value = static_cast<float>(static_cast<double>(*from) * factor);
        bad = bad || not_finite(to_float(rounded_to<Element>(value)));
        return value;
    };
    if (block.rows > block.cols) {
        // Both have the same rows.
        const float *from = m + first * shape.side;
#pragma unroll 1
        for (int e = thread; e < count * shape.side; e += kThreads) {
            const int row = e / shape.side;
            to[row * pitch + e - row * shape.side] = rounded_to<Element>(scaled(from + e));
        }
        const int padding = shape.width - shape.side;
#pragma unroll 1
        for (int e = thread; e < count * padding; e += kThreads) {
            const int row = e / padding;
            to[row * pitch + shape.side + e - row * padding] = Element{};
        }
    } else {
        // A warp reads 32 neighbouring elements of a few rows of X, and stores a vector of 32 rows of Y.
        constexpr int V = kVector<Element>;
        const int stretches = (count + 31) / 32;
#pragma unroll 1
        for (int task = thread / 32; task < shape.width / V * stretches; task += kWarps) {
            const int col = task / stretches * V;
            const int row = (task - col / V * stretches) * 32 + thread % 32;
            if (row >= count) continue;
            const float *from = m + col * block.cols + first + row;
            float value[V];
#pragma unroll
            for (int i = 0; i < V; ++i) value[i] = col + i < shape.side ? scaled(from + i * block.cols) : 0.0f;
            store_vector(to + row * pitch + col, value);
        }
    }
    return bad;
}

// Zeros in the rows [from, to) of Y.
template <class Element>
__device__ __forceinline__ void clear_rows(Element *y, const Shape &shape, int from, int to) {
    for_vectors<Element>(shape.width, to - from, [&](int row, int col) {
        *reinterpret_cast<uint4 *>(y + (from + row) * shape.pitch + col) = make_uint4(0, 0, 0, 0);
    });
}

__host__ __device__ inline int64_t padded_to(int64_t rows, int unit) { return (rows + unit - 1) / unit * unit; }

// o = X and w -= step X, either of which may be null, for the same rows.
template <class Element>
__device__ __forceinline__ void store_rows(const Element *from, const Shape &shape, const fcm_matrix_block &block, float *o,
                                           float *w, int64_t first, int count, float step) {
    const int thread = thread_index();
    const int pitch = shape.pitch;
    const auto put = [&](int64_t at, float value) {
        if (w != nullptr) w[at] -= step * value;
        if (o != nullptr) o[at] = value;
    };
    if (block.rows > block.cols) {
#pragma unroll 1
        for (int e = thread; e < count * shape.side; e += kThreads) {
            const int row = e / shape.side;
            put(first * shape.side + e, to_float(from[row * pitch + e - row * shape.side]));
        }
    } else {
        constexpr int V = kVector<Element>;
        const int stretches = (count + 31) / 32;
#pragma unroll 1
        for (int task = thread / 32; task < shape.width / V * stretches; task += kWarps) {
            const int col = task / stretches * V;
            const int row = (task - col / V * stretches) * 32 + thread % 32;
            if (row >= count) continue;
            float value[V];
            load_vector(from + row * pitch + col, value);
#pragma unroll
            for (int i = 0; i < V; ++i) {
                if (col + i < shape.side) put((col + i) * block.cols + first + row, value[i]);
            }
        }
    }
}

// With the rows of zeros that follow the last one.
template <class Kind>
__device__ __forceinline__ bool load_padded(typename Kind::Element *to, const Shape &shape, const fcm_matrix_block &block,
                                            const float *m, int64_t first, int count, double factor) {
    if constexpr (Kind::kRows > 1) clear_rows(to, shape, count, static_cast<int>(padded_to(count, Kind::kRows)));
    return load_rows(to, shape, block, m, first, count, factor);
}

template <class Kind, Level L>
__device__ __forceinline__ bool load_matrix(const Parts<typename Kind::Element> &work, const fcm_matrix_block &block,
                                            const float *m, double factor) {
    using Element = typename Kind::Element;
    bool bad = false;
    if constexpr (L == kResident) {
        bad = load_padded<Kind>(work.y, work.shape, block, m, 0, static_cast<int>(work.shape.length), factor);
    } else {
        // Through both panels in turn, so that one is filled while some still copy the other.
        int buffer = 0;
#pragma unroll 1
        for (int64_t first = 0; first < work.shape.length; first += work.panel_rows) {
            const int count = minimum(work.panel_rows, work.shape.length - first);
            Element *panel = work.panel + buffer * work.panel_elements;
            bad = load_padded<Kind>(panel, work.shape, block, m, first, count, factor) || bad;
            __syncthreads();
            store_panel(work, panel, first, static_cast<int>(padded_to(count, Kind::kRows)));
            buffer = 1 - buffer;
        }
    }
    __syncthreads();
    return bad;
}

template <class Kind, Level L>
__device__ __forceinline__ void store_matrix(const Parts<typename Kind::Element> &work, const fcm_matrix_block &block, float *o,
                                             float *w, float step) {
    if constexpr (L == kResident) {
        store_rows(work.y, work.shape, block, o, w, 0, static_cast<int>(work.shape.length), step);
    } else {
        for_panels(work, work.far_y, work.shape.width, work.shape.length,
                   [&](const typename Kind::Element *panel, int64_t first, int rows) {
                       store_rows(panel, work.shape, block, o, w, first, rows, step);
                   });
    }
}

// ---- A matrix ----

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

template <class Kind, Level L>
__device__ __forceinline__ void one_matrix(const Schulz &s, float *shared) {
    bool bad;
    {
        const Task task = task_of(s, shared);
        const double norm = s.of.norms[task.client * s.of.block_count + task.number];
        bad = load_matrix<Kind, L>(Kind::template work_of<L>(s, shared), task.block,
                             s.of.m + task.client * s.of.m_stride + task.block.m_offset,
                             norm == 0.0 ? 0.0 : 1.0 / (norm * s.of.divisor));
    }
    bad = Kind::template iterate<L>(s, shared, bad);
    const bool in_range = __syncthreads_or(bad ? 1 : 0) == 0;
    const Task task = task_of(s, shared);
    if (in_range) {
        store_matrix<Kind, L>(Kind::template work_of<L>(s, shared), task.block,
                        s.of.o == nullptr ? nullptr : s.of.o + task.client * s.of.o_stride + task.block.o_offset,
                        s.of.w == nullptr ? nullptr : s.of.w + task.client * s.of.w_stride + task.block.w_offset,
                        static_cast<float>(s.of.eta * task.block.scale));
    } else if (threadIdx.x == 0) {
        s.out_of_range.found(s.of.m + task.client * s.of.m_stride + task.block.m_offset);
    }
}

template <class Kind>
__device__ __forceinline__ void begin_matrix(const Schulz &s, Head &head, const float *shared) {
    const Task task = task_of(s, shared);
    Kind::begin(s, head, task.block);
    head.steps = s.of.norms[task.client * s.of.block_count + task.number] == 0.0 ? 0 : static_cast<int>(s.of.steps);
}

// All matrices of the queue. `shared` is the dynamic shared memory of the block.
template <class Kind>
__device__ __forceinline__ void for_matrices(const Schulz &s, float *shared) {
    auto &head = *reinterpret_cast<Head *>(shared);
    const auto matrices = static_cast<unsigned long long>(s.of.clients * s.order_count);
    // Nothing is done after a fault, except that a matrix out of range does not keep the others from being stepped. Blocks
    // report those while others begin, so the status is read by an atomic operation, which leaves it as it is.
    if (threadIdx.x == 0) head.task = atomicMin(&s.bad.status->ticket, kNothing) <= s.bad.ticket ? matrices : 0;
    __syncthreads();
    if (head.task >= matrices) return;
    __syncthreads();
    for (;;) {
        if (threadIdx.x == 0) {
            head.task = atomicAdd(s.next, 1ull);
            // Each block is told once that nothing is left; the last one that is leaves the queue as it was.
            if (head.task == matrices + gridDim.x - 1) atomicExch(s.next, 0ull);
            if (head.task < matrices) begin_matrix<Kind>(s, head, shared);
        }
        __syncthreads();
        if (head.task >= matrices) return;
        if (head.level == kResident) {
            one_matrix<Kind, kResident>(s, shared);
        } else if (!Kind::kStreamsAll || head.level == kStreamY) {
            one_matrix<Kind, kStreamY>(s, shared);
        } else {
            if constexpr (Kind::kStreamsAll) one_matrix<Kind, kStreamAll>(s, shared);
        }
        __syncthreads();  // everybody is done with this one and its place
    }
}

// ---- Host side ----

// What a matrix takes.
struct SmallNeeds {
    int64_t shared_bytes;
    int64_t stream_elements;
};

// Elements of the shared memory of a device, without the head.
template <class Element>
int64_t shared_elements(int64_t bytes) {
    return (bytes - kHead * static_cast<int64_t>(sizeof(float))) / static_cast<int64_t>(sizeof(Element));
}

// small_schulz_mma.cu, with FCM_TF32 or FCM_BF16.
SmallNeeds small_mma_needs(const fcm_matrix_block &block, int32_t precision, int64_t shared_bytes);
void prepare_small_mma(const fcm_context *context, int32_t precision);
void launch_small_mma(const fcm_context *context, const Schulz &schulz, const SmallSchulzPlan &plan);

}  // namespace fcm
