// Shared device code: how threads divide the elements of a batch, vector loads, and sums in a fixed order.
#pragma once

#include <cstdint>

#include "portable.h"

// Marks a kernel parameter that is indexed; without it nvcc first copies the parameter to the local memory of every thread.
#ifdef FCM_CUDASIM
#define FCM_GRID_CONSTANT
#else
#define FCM_GRID_CONSTANT __grid_constant__
#endif

namespace fcm {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kWholeWarp = 0xffffffffu;

// The elements of one client that a block processes at a time: four per thread, one vector load, unless a kernel says otherwise.
constexpr int64_t kChunk = 4 * kThreads;

__host__ __device__ inline int64_t parts_of(int64_t n, int64_t part) { return n / part + (n % part != 0 ? 1 : 0); }

// The index of the thread, read again wherever it is used: otherwise nvcc derives from it, at the beginning, what every phase of
// a kernel needs, and keeps all that in registers that sums need.
__device__ __forceinline__ int thread_index() {
#if defined(__CUDA_ARCH__)
    int index;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
    return index;
#else
    return static_cast<int>(threadIdx.x);
#endif
}

// Keeps a number in its register: otherwise nvcc may compute it again in every turn of a loop.
__device__ __forceinline__ void keep(int &value) {
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+r"(value));
#else
    (void)value;
#endif
}

// The same for others, of which nvcc may otherwise keep what it has computed from them.
__device__ __forceinline__ void keep(int64_t &value) {
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+l"(value));
#else
    (void)value;
#endif
}
__device__ __forceinline__ void keep(float &value) {
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+f"(value));
#else
    (void)value;
#endif
}

template <int W>
__device__ __forceinline__ void load(const float *from, float (&value)[W]) {
    static_assert(W == 1 || W == 2 || W == 4, "one element, or a vector of two or four");
    if constexpr (W == 4) {
        const float4 four = *reinterpret_cast<const float4 *>(from);
        value[0] = four.x;
        value[1] = four.y;
        value[2] = four.z;
        value[3] = four.w;
    } else if constexpr (W == 2) {
        const float2 two = *reinterpret_cast<const float2 *>(from);
        value[0] = two.x;
        value[1] = two.y;
    } else {
        value[0] = from[0];
    }
}

template <int W>
__device__ __forceinline__ void store(float *to, const float (&value)[W]) {
    if constexpr (W == 4) {
        *reinterpret_cast<float4 *>(to) = make_float4(value[0], value[1], value[2], value[3]);
    } else if constexpr (W == 2) {
        *reinterpret_cast<float2 *>(to) = make_float2(value[0], value[1]);
    } else {
        to[0] = value[0];
    }
}

// As store, but only to global memory: nvcc splits a vector that is stored in a loop into elements, which touch four times the
// sectors, unless the store is an intrinsic function.
template <int W>
__device__ __forceinline__ void store_whole(float *to, const float (&value)[W]) {
#if defined(__CUDA_ARCH__)
    if constexpr (W == 4) {
        __stwb(reinterpret_cast<float4 *>(to), make_float4(value[0], value[1], value[2], value[3]));
    } else if constexpr (W == 2) {
        __stwb(reinterpret_cast<float2 *>(to), make_float2(value[0], value[1]));
    } else {
        store<W>(to, value);
    }
#else
    store<W>(to, value);
#endif
}

// Calls op.at<W>(factor, client, j) for every element j of every client, V elements at a time if `vectors` allows it;
// factor = op.of(client) is computed once per chunk. Tasks are the chunks of all clients in one sequence, so neither many
// clients nor long ones exceed the limits of a grid.
template <int V = 4, class Op>
__device__ __forceinline__ void for_scaled(int64_t clients, int64_t n, bool vectors, const Op &op) {
    constexpr int64_t kElements = int64_t{V} * kThreads;
    const int64_t chunks = parts_of(n, kElements);
    for (int64_t task = blockIdx.x; task < clients * chunks; task += gridDim.x) {
        const int64_t client = task / chunks;
        const int64_t start = (task - client * chunks) * kElements;
        const auto factor = op.of(client);
        if (vectors) {
            const int64_t first = start + V * static_cast<int64_t>(threadIdx.x);
            if (first + V <= n) {
                op.template at<V>(factor, client, first);
            } else {
                for (int64_t j = first; j < n; ++j) op.template at<1>(factor, client, j);
            }
        } else {
            const int64_t end = n - start < kElements ? n : start + kElements;
            for (int64_t j = start + threadIdx.x; j < end; j += kThreads) op.template at<1>(factor, client, j);
        }
    }
}

template <class Op>
struct Unscaled {
    const Op &op;

    struct Nothing {};
    __device__ __forceinline__ Nothing of(int64_t) const { return {}; }
    template <int W>
    __device__ __forceinline__ void at(Nothing, int64_t client, int64_t j) const {
        op.template at<W>(client, j);
    }
};

// Calls op.at<W>(client, j), for operations without a factor per client.
template <int V = 4, class Op>
__device__ __forceinline__ void for_elements(int64_t clients, int64_t n, bool vectors, const Op &op) {
    for_scaled<V>(clients, n, vectors, Unscaled<Op>{op});
}

// The sum of all threads' values, returned to thread 0: a tree within each warp, then the warps in order. `partial` is in
// shared memory and can be reused on return.
__device__ __forceinline__ double block_sum(double value, double *partial) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(kWholeWarp, value, distance);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (threadIdx.x % 32 == 0) partial[warp] = value;
    __syncthreads();
    double total = 0.0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < kWarps; ++i) total += partial[i];
    }
    __syncthreads();
    return total;
}

__device__ __forceinline__ bool not_finite(float value) { return (__float_as_uint(value) & 0x7f800000u) == 0x7f800000u; }
__device__ __forceinline__ bool not_finite(double value) {
    constexpr long long kExponent = 0x7ff0000000000000ll;
    return (__double_as_longlong(value) & kExponent) == kExponent;
}

// ---- Host side ----

// Whether the piece of every client can be read four floats at a time.
inline bool vector_aligned(const void *base, int64_t clients, int64_t stride) {
    return reinterpret_cast<uintptr_t>(base) % 16 == 0 && (clients == 1 || stride % 4 == 0);
}

}  // namespace fcm
