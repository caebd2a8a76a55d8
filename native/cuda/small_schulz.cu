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
    auto &head = *reinterpret_cast<fcm::Head *>(shared);
    const auto matrices = static_cast<unsigned long long>(s.of.clients * s.order_count);
    // Nothing is done after a fault, except that a matrix out of range does not keep the others from being stepped. Blocks
    // report those while others begin, so the status is read by an atomic operation, which leaves it as it is.
    if (threadIdx.x == 0) head.task = atomicMin(&s.bad.status->ticket, fcm::kNothing) <= s.bad.ticket ? matrices : 0;
    __syncthreads();
    if (head.task >= matrices) return;
    __syncthreads();
    for (;;) {
        if (threadIdx.x == 0) {
            head.task = atomicAdd(s.next, 1ull);
            // Each block is told once that nothing is left; the last one that is leaves the queue as it was.
            if (head.task == matrices + gridDim.x - 1) atomicExch(s.next, 0ull);
            if (head.task < matrices) fcm::begin_matrix(s, head, shared);
        }
        __syncthreads();
        if (head.task >= matrices) return;
        switch (head.level) {
            case fcm::kResident: fcm::one_matrix<fcm::kResident>(s, shared); break;
            case fcm::kStreamY: fcm::one_matrix<fcm::kStreamY>(s, shared); break;
            default: fcm::one_matrix<fcm::kStreamAll>(s, shared); break;
        }
        __syncthreads();  // everybody is done with this one and its place
    }
}

namespace fcm {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kLineFloats = 16;

int64_t shared_floats_of(const fcm_context *context) { return context->shared_bytes / kFloat - kHead; }

// Whether the queue has such a matrix.
bool is_queued(const fcm_matrix_block &block) { return is_small(block) && block.rows > 0 && block.cols > 0; }

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
                                  int64_t block_count) {
    SmallSchulzPlan plan;
    for (int64_t i = 0; i < block_count; ++i) {
        if (!is_queued(blocks[i])) continue;
        ++plan.matrices;
        const Shape shape = shape_of(blocks[i]);
        const Level level = level_of(shape, shared_floats_of(context));
        plan.stream_stride =
            std::max(plan.stream_stride, parts_of(stream_floats(shape, level), kLineFloats) * kLineFloats);
        const int64_t floats = kHead + shared_floats(shape, level, shared_floats_of(context));
        plan.shared_bytes = std::max(plan.shared_bytes, floats * kFloat);
    }
    // The registers allow two blocks of threads per multiprocessor.
    plan.grid = std::min(clients * plan.matrices, int64_t{2} * context->multiprocessors);
    plan.stream_bytes = plan.grid * plan.stream_stride * kFloat;
    return plan;
}

void prepare_small_schulz(const fcm_context *context) {
    // Always the maximum, because another context of this device may be launching at the same time.
    check(cudaFuncSetAttribute(fcm_k_newton_schulz, cudaFuncAttributeMaxDynamicSharedMemorySize, context->shared_bytes),
          "cudaFuncSetAttribute", context->shared_bytes);
}

void launch_small_schulz(const fcm_context *context, const SchulzOperands &operands, const SmallSchulzPlan &plan,
                         const int64_t *order, int64_t order_count, unsigned long long *next, float *stream, Check bad,
                         Check out_of_range) {
    if (plan.grid == 0) return;
    const Schulz s{operands,          order, order_count, next, stream, plan.stream_stride, shared_floats_of(context), bad,
                   out_of_range};
    LAUNCH(fcm_k_newton_schulz, static_cast<unsigned>(plan.grid), kThreads, static_cast<size_t>(plan.shared_bytes),
           context->stream, s);
    launched("fcm_k_newton_schulz", operands.clients, order_count);
}

}  // namespace fcm
