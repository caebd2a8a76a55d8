// The device side: attributes, indices, barriers, warp primitives, atomics, and the functions of CUDA that C++ does not have
// under the same name.
#pragma once

#include <math.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "types.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

// The source location of a barrier or a warp primitive: threads must meet at the same one.
#define CUDASIM_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace cudasim {

// ---- Indices: set before a thread runs, and again whenever it continues ----
#define CUDASIM_INDEX extern CUDASIM_API __attribute__((tls_model("initial-exec"))) __thread
CUDASIM_INDEX uint3 threadIdx;
CUDASIM_INDEX uint3 blockIdx;
CUDASIM_INDEX uint3 blockDim;
CUDASIM_INDEX uint3 gridDim;
#undef CUDASIM_INDEX

// ---- Implementation ----
// In a separate namespace, so that only CUDA's own names are visible to a kernel source in the global one.
namespace detail {

CUDASIM_API void *shared_static(const void *site, const char *name, size_t bytes, size_t alignment);
CUDASIM_API void *shared_dynamic();

template <class Array>
Array &shared_array(const void *site, const char *name) {
    return *static_cast<Array *>(shared_static(site, name, sizeof(Array), alignof(Array)));
}

enum class BarrierKind { sync, count, both, either };
CUDASIM_API int barrier(BarrierKind kind, int predicate, const char *file, int line);

enum class WarpKind { sync, shuffle, shuffle_up, shuffle_down, shuffle_xor, ballot, any, all, gather };
CUDASIM_API uint64_t warp_meet(WarpKind kind, unsigned mask, uint64_t value, int operand, int width, const char *file,
                               int line);

// All lanes of the warp bring `Count` words and get those of all lanes, as they were when the last one arrived; valid until
// the next warp primitive. CUDA has no such function: tensor_cores.h makes the instructions from it that read the registers of
// other lanes, which would take dozens of shuffles.
constexpr int kMostGathered = 6;
using Gathered = uint32_t[kMostGathered];
template <int Count>
const Gathered *gather(const uint32_t (&words)[Count], const char *file, int line) {
    static_assert(Count <= kMostGathered, "the registers of one instruction");
    const auto address = reinterpret_cast<uint64_t>(&words[0]);
    return reinterpret_cast<const Gathered *>(warp_meet(WarpKind::gather, 0xffffffffu, address, Count, warpSize, file, line));
}

// Ends the kernel because a thread gives an instruction an address that is not a multiple of `bytes`.
[[noreturn]] CUDASIM_API void not_aligned(const char *instruction, const void *address, int bytes, int line);

template <class T>
T shuffle_value(WarpKind kind, unsigned mask, T value, int operand, int width, const char *file, int line) {
    static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "CUDA shuffles 4 or 8 bytes");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = warp_meet(kind, mask, bits, operand, width, file, line);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T>
constexpr bool is_atomic = std::is_same_v<T, int> || std::is_same_v<T, unsigned> ||
                           std::is_same_v<T, unsigned long long>;

// Excludes the second argument of an atomic from deduction, so that literals convert as in CUDA.
template <class T>
using Same = std::common_type_t<T>;

template <class To, class From>
To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

}  // namespace detail

// ---- Barriers ----
inline void __syncthreads(CUDASIM_SITE) { detail::barrier(detail::BarrierKind::sync, 0, file, line); }
inline int __syncthreads_count(int predicate, CUDASIM_SITE) {
    return detail::barrier(detail::BarrierKind::count, predicate, file, line);
}
inline int __syncthreads_and(int predicate, CUDASIM_SITE) { return detail::barrier(detail::BarrierKind::both, predicate, file, line); }
inline int __syncthreads_or(int predicate, CUDASIM_SITE) { return detail::barrier(detail::BarrierKind::either, predicate, file, line); }

// ---- Warp primitives ----
inline void __syncwarp(unsigned mask = 0xffffffffu, CUDASIM_SITE) {
    detail::warp_meet(detail::WarpKind::sync, mask, 0, 0, warpSize, file, line);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize, CUDASIM_SITE) {
    return detail::shuffle_value(detail::WarpKind::shuffle, mask, value, lane, width, file, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize, CUDASIM_SITE) {
    return detail::shuffle_value(detail::WarpKind::shuffle_up, mask, value, static_cast<int>(delta), width, file, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize, CUDASIM_SITE) {
    return detail::shuffle_value(detail::WarpKind::shuffle_down, mask, value, static_cast<int>(delta), width, file, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize, CUDASIM_SITE) {
    return detail::shuffle_value(detail::WarpKind::shuffle_xor, mask, value, lanes, width, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDASIM_SITE) {
    return static_cast<unsigned>(detail::warp_meet(detail::WarpKind::ballot, mask, predicate != 0, 0, warpSize, file, line));
}
inline int __any_sync(unsigned mask, int predicate, CUDASIM_SITE) {
    return static_cast<int>(detail::warp_meet(detail::WarpKind::any, mask, predicate != 0, 0, warpSize, file, line));
}
inline int __all_sync(unsigned mask, int predicate, CUDASIM_SITE) {
    return static_cast<int>(detail::warp_meet(detail::WarpKind::all, mask, predicate != 0, 0, warpSize, file, line));
}

// ---- Atomics: integers only, because a sum of floats by atomics has no defined order ----
template <class T>
T atomicAdd(T *address, detail::Same<T> value) {
    static_assert(detail::is_atomic<T>, "atomics on int, unsigned and unsigned long long only");
    return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
}
template <class T>
T atomicOr(T *address, detail::Same<T> value) {
    static_assert(detail::is_atomic<T>, "atomics on int, unsigned and unsigned long long only");
    return __atomic_fetch_or(address, value, __ATOMIC_SEQ_CST);
}
template <class T>
T atomicExch(T *address, detail::Same<T> value) {
    static_assert(detail::is_atomic<T>, "atomics on int, unsigned and unsigned long long only");
    return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);
}
template <class T>
T atomicCAS(T *address, detail::Same<T> expected, detail::Same<T> value) {
    static_assert(detail::is_atomic<T>, "atomics on int, unsigned and unsigned long long only");
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}
template <class T>
T atomicMin(T *address, detail::Same<T> value) {
    static_assert(detail::is_atomic<T>, "atomics on int, unsigned and unsigned long long only");
    T old = __atomic_load_n(address, __ATOMIC_SEQ_CST);
    while (value < old && !__atomic_compare_exchange_n(address, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return old;
}
template <class T>
T atomicMax(T *address, detail::Same<T> value) {
    static_assert(detail::is_atomic<T>, "atomics on int, unsigned and unsigned long long only");
    T old = __atomic_load_n(address, __ATOMIC_SEQ_CST);
    while (old < value && !__atomic_compare_exchange_n(address, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return old;
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// ---- Loads, bits and numbers ----
template <class T>
T __ldg(const T *address) {
    return *address;
}

inline unsigned __float_as_uint(float value) { return detail::same_bits<unsigned>(value); }
inline int __float_as_int(float value) { return detail::same_bits<int>(value); }
inline float __uint_as_float(unsigned bits) { return detail::same_bits<float>(bits); }
inline float __int_as_float(int bits) { return detail::same_bits<float>(bits); }
inline long long __double_as_longlong(double value) { return detail::same_bits<long long>(value); }
inline double __longlong_as_double(long long bits) { return detail::same_bits<double>(bits); }
// To the nearest, ties to even; what is out of range becomes the bound, and NaN the lower one, as in CUDA.
inline long long __double2ll_rn(double value) {
    constexpr double kBound = 0x1p63;
    if (!(value >= -kBound)) return INT64_MIN;
    return value >= kBound ? INT64_MAX : static_cast<long long>(::nearbyint(value));
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)); }

#define CUDASIM_MIN_MAX(type)                                             \
    inline constexpr type min(type a, type b) { return b < a ? b : a; }   \
    inline constexpr type max(type a, type b) { return a < b ? b : a; }
CUDASIM_MIN_MAX(int)
CUDASIM_MIN_MAX(unsigned)
CUDASIM_MIN_MAX(long)
CUDASIM_MIN_MAX(unsigned long)
CUDASIM_MIN_MAX(long long)
CUDASIM_MIN_MAX(unsigned long long)
#undef CUDASIM_MIN_MAX
inline float min(float a, float b) { return ::fminf(a, b); }
inline float max(float a, float b) { return ::fmaxf(a, b); }
inline double min(double a, double b) { return ::fmin(a, b); }
inline double max(double a, double b) { return ::fmax(a, b); }

}  // namespace cudasim
