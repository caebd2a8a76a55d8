// Newton-Schulz for many small matrices of mixed shapes: the kernel, and how it is planned and launched. small_schulz.h has the
// device code.
#include "small_schulz.h"

#include <algorithm>

#include "context.h"
#include "schulz_program.h"

using fcm::kThreads;

// At most 128 registers: they hold the sums of a thread and the next operands, and two blocks with matrices that are small enough
// share a multiprocessor, so that one computes while the other waits at a barrier or for global memory.
extern "C" __global__ void __launch_bounds__(kThreads, 2) fcm_k_newton_schulz(fcm::Schulz s) {
    SHARED_DYN(float, shared);
    fcm::for_matrices<fcm::InFp32>(s, shared);
}

namespace fcm {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kLineElements = 32;  // begin at multiples of 64 bytes, whatever the elements

// Whether the queue has such a matrix.
bool is_queued(const fcm_matrix_block &block) { return is_small(block) && block.rows > 0 && block.cols > 0; }

SmallNeeds fp32_needs(const fcm_matrix_block &block, int64_t shared_bytes) {
    const int64_t available = shared_elements<float>(shared_bytes);
    const Shape shape = shape_of(block);
    const Level level = level_of(shape, available);
    return {(kHead + shared_floats(shape, level, available)) * kFloat, stream_floats(shape, level)};
}

}  // namespace

std::vector<int64_t> small_schulz_order(const fcm_matrix_block *blocks, int64_t block_count) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < block_count; ++i) {
        if (is_queued(blocks[i])) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return cost_of(blocks[a]) > cost_of(blocks[b]); });
    return order;
}

SmallSchulzPlan small_schulz_plan(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                  int64_t block_count, int32_t precision) {
    SmallSchulzPlan plan;
    plan.precision = precision;
    for (int64_t i = 0; i < block_count; ++i) {
        if (!is_queued(blocks[i])) continue;
        ++plan.matrices;
        const SmallNeeds needs = precision == FCM_FP32 ? fp32_needs(blocks[i], context->shared_bytes)
                                                       : small_mma_needs(blocks[i], precision, context->shared_bytes);
        plan.stream_stride = std::max(plan.stream_stride, parts_of(needs.stream_elements, kLineElements) * kLineElements);
        plan.shared_bytes = std::max(plan.shared_bytes, needs.shared_bytes);
    }
    // The registers allow two blocks of threads per multiprocessor.
    plan.grid = std::min(clients * plan.matrices, int64_t{2} * context->multiprocessors);
    plan.stream_bytes = plan.grid * plan.stream_stride * (precision == FCM_BF16 ? static_cast<int64_t>(sizeof(Bf16)) : kFloat);
    return plan;
}

void prepare_small_schulz(const fcm_context *context, int32_t precision) {
    if (precision != FCM_FP32) return prepare_small_mma(context, precision);
    // Always the maximum, because another context of this device may be launching at the same time.
    check(cudaFuncSetAttribute(fcm_k_newton_schulz, cudaFuncAttributeMaxDynamicSharedMemorySize, context->shared_bytes),
          "cudaFuncSetAttribute", context->shared_bytes);
}

void launch_small_schulz(const fcm_context *context, const SchulzOperands &operands, const SmallSchulzPlan &plan,
                         const int64_t *order, int64_t order_count, unsigned long long *next, void *stream, Check bad,
                         Check out_of_range) {
    if (plan.grid == 0) return;
    const int64_t available = plan.precision == FCM_BF16 ? shared_elements<Bf16>(context->shared_bytes)
                                                         : shared_elements<float>(context->shared_bytes);
    const Schulz s{operands, order, order_count, next, stream, plan.stream_stride, available, bad, out_of_range};
    if (plan.precision != FCM_FP32) return launch_small_mma(context, s, plan);
    LAUNCH(fcm_k_newton_schulz, static_cast<unsigned>(plan.grid), kThreads, static_cast<size_t>(plan.shared_bytes),
           context->stream, s);
    launched("fcm_k_newton_schulz", operands.clients, order_count);
}

}  // namespace fcm
