// The kernels of small_schulz_mma.h, for sm_80 and later.
#include "small_schulz_mma.h"

#include "context.h"

using fcm::kThreads;

// At most 128 registers, so that two blocks of threads share a multiprocessor, as in small_schulz.cu.
extern "C" __global__ void __launch_bounds__(kThreads, 2) fcm_k_newton_schulz_bf16(fcm::Schulz s) {
#if FCM_TENSOR_CORES
    SHARED_DYN(float, shared);
    fcm::for_matrices<fcm::InMma<fcm::Bf16>>(s, shared);
#else
    (void)s;
#endif
}

extern "C" __global__ void __launch_bounds__(kThreads, 2) fcm_k_newton_schulz_tf32(fcm::Schulz s) {
#if FCM_TENSOR_CORES
    SHARED_DYN(float, shared);
    fcm::for_matrices<fcm::InMma<float>>(s, shared);
#else
    (void)s;
#endif
}

namespace fcm {
namespace {

template <class Element>
SmallNeeds needs_of(const fcm_matrix_block &block, int64_t shared_bytes) {
    const int64_t available = shared_elements<Element>(shared_bytes);
    const Shape shape = mma_shape_of<Element>(block);
    return {kHead * static_cast<int64_t>(sizeof(float)) + mma_shared(shape, available) * static_cast<int64_t>(sizeof(Element)),
            mma_stream(shape, available)};
}

}  // namespace

SmallNeeds small_mma_needs(const fcm_matrix_block &block, int32_t precision, int64_t shared_bytes) {
    return precision == FCM_BF16 ? needs_of<Bf16>(block, shared_bytes) : needs_of<float>(block, shared_bytes);
}

void prepare_small_mma(const fcm_context *context, int32_t precision) {
    check(cudaFuncSetAttribute(precision == FCM_BF16 ? fcm_k_newton_schulz_bf16 : fcm_k_newton_schulz_tf32,
                               cudaFuncAttributeMaxDynamicSharedMemorySize, context->shared_bytes),
          "cudaFuncSetAttribute", context->shared_bytes);
}

void launch_small_mma(const fcm_context *context, const Schulz &schulz, const SmallSchulzPlan &plan) {
    const auto grid = static_cast<unsigned>(plan.grid);
    const auto shared = static_cast<size_t>(plan.shared_bytes);
    if (plan.precision == FCM_BF16) {
        LAUNCH(fcm_k_newton_schulz_bf16, grid, kThreads, shared, context->stream, schulz);
        launched("fcm_k_newton_schulz_bf16", schulz.of.clients, schulz.order_count);
    } else {
        LAUNCH(fcm_k_newton_schulz_tf32, grid, kThreads, shared, context->stream, schulz);
        launched("fcm_k_newton_schulz_tf32", schulz.of.clients, schulz.order_count);
    }
}

}  // namespace fcm
