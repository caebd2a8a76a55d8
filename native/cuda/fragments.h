// Products of fragments by the type of their elements in memory: bf16, or float for tf32.
#pragma once

#include "bf16.h"
#include "tensor_cores.h"

#if FCM_TENSOR_CORES
namespace fcm {

__device__ __forceinline__ void multiply_fragments(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Bf16) {
    mma_bf16(c, a, b);
}
__device__ __forceinline__ void multiply_fragments(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], float) {
    mma_tf32(c, a, b);
}

// Rounds what was loaded to what is multiplied.
template <int N>
__device__ __forceinline__ void round_fragment(uint32_t (&r)[N], float) {
#pragma unroll
    for (int i = 0; i < N; ++i) r[i] = to_tf32(__uint_as_float(r[i]));
}
template <int N>
__device__ __forceinline__ void round_fragment(uint32_t (&)[N], Bf16) {}

}  // namespace fcm
#endif  // FCM_TENSOR_CORES
