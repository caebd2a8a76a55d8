// Copies from global to shared memory that a thread does not wait for. From sm_80 on they bypass the registers; before, and
// where the kernels are simulated, they are ordinary copies.
//
//   copy_async16(to, from), copy_async4(to, from)   begin a copy; 16 bytes are aligned to 16
//   copy_async16(to, from, bytes)                   of the first `bytes`; zeros follow
//   commit_copies()                                 ends a group of copies
//   wait_copies<N>()                                waits until at most N of this thread's groups are not finished; a barrier
//                                                   shows them to the other threads
#pragma once

#include <cstdint>

#include "portable.h"

namespace fcm {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
__device__ __forceinline__ void copy_async16(void *to, const void *from) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void copy_async16(void *to, const void *from, int bytes) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy_async4(void *to, const void *from) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#else
__device__ __forceinline__ void copy_async16(void *to, const void *from) {
    *static_cast<float4 *>(to) = *static_cast<const float4 *>(from);
}
__device__ __forceinline__ void copy_async16(void *to, const void *from, int bytes) {
    if (bytes == 16) return copy_async16(to, from);
    auto *target = static_cast<uint16_t *>(to);
    for (int i = 0; i < 8; ++i) target[i] = 2 * i < bytes ? static_cast<const uint16_t *>(from)[i] : uint16_t{0};
}
__device__ __forceinline__ void copy_async4(void *to, const void *from) {
    *static_cast<float *>(to) = *static_cast<const float *>(from);
}
__device__ __forceinline__ void commit_copies() {}
template <int N>
__device__ __forceinline__ void wait_copies() {}
#endif

}  // namespace fcm
