// Matrix products of any size on the CPU. The order of each sum does not depend on the number of threads.
#include <algorithm>

#include "context.h"
#include "device_functions.h"

namespace fcm {
namespace {

int64_t panels_of(int64_t cols) { return (cols + kProductPanel - 1) / kProductPanel; }
int64_t right_floats(int64_t cols, int64_t depth) {
    return panels_of(cols) * kProductPanel * std::min(depth, kProductDepth);
}
int64_t left_floats(int64_t depth) { return kProductRows * std::min(depth, kProductDepth); }

// With at least as many clients as threads, each thread takes whole clients, so no synchronization per stretch is needed.
bool client_a_thread(int64_t clients, int threads) { return clients >= threads; }

int64_t workspace_floats(int threads, int64_t clients, int64_t cols, int64_t depth) {
    const int64_t rights = client_a_thread(clients, threads) ? threads : 1;
    return rights * right_floats(cols, depth) + threads * left_floats(depth);
}

// run(count, body) calls body(index, thread) for every index, on the threads that it chooses.
template <class Run>
void multiply(const Kernels &kernels, const Product &p, float *right, float *lefts, Run &&run) {
    const int64_t blocks = (p.rows + kProductRows - 1) / kProductRows;
    const auto height = [&](int64_t block) { return std::min(kProductRows, p.rows - block * kProductRows); };
    for (int64_t k = 0; k < p.depth; k += kProductDepth) {
        const int64_t depth = std::min(kProductDepth, p.depth - k);
        run(panels_of(p.cols), [&](int64_t panel, int) {
            kernels.product_pack_right(p, panel * kProductPanel, k, depth, right + panel * kProductPanel * depth);
        });
        run(blocks, [&](int64_t block, int thread) {
            float *left = lefts + thread * left_floats(p.depth);
            kernels.product_pack_left(p, block * kProductRows, height(block), k, depth, left);
            kernels.product_rows(p, block * kProductRows, height(block), k, depth, left, right);
        });
    }
    if (p.symmetric) {
        run(blocks, [&](int64_t block, int) { kernels.product_mirror(p, block * kProductRows, height(block)); });
    }
}

}  // namespace

fcm_status device::multiply_workspace(const fcm_context *context, int64_t clients, int64_t, int64_t cols, int64_t depth,
                                      int64_t *bytes, fcm_error *) {
    *bytes = workspace_floats(context->pool.threads(), clients, cols, depth) * static_cast<int64_t>(sizeof(float));
    return FCM_OK;
}

fcm_status device::multiply(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int64_t depth,
                            int32_t symmetric, double product_factor, const float *a, int64_t a_stride, int64_t a_row,
                            int64_t a_col, const float *b, int64_t b_stride, int64_t b_row, int64_t b_col,
                            double base_factor, const float *base, int64_t base_stride, float *out, int64_t out_stride,
                            void *workspace, int64_t, fcm_error *) {
    const auto product_of = [&](int64_t k) {
        return Product{rows,
                       cols,
                       depth,
                       symmetric != 0,
                       a + k * a_stride,
                       a_row,
                       a_col,
                       b + k * b_stride,
                       b_row,
                       b_col,
                       base == nullptr ? nullptr : base + k * base_stride,
                       out + k * out_stride,
                       static_cast<float>(base_factor),
                       static_cast<float>(product_factor),
                       FCM_FP32};
    };
    auto *rights = static_cast<float *>(workspace);
    const int threads = context->pool.threads();
    const int64_t work = rows * cols;
    if (client_a_thread(clients, threads)) {
        float *lefts = rights + threads * right_floats(cols, depth);
        context->pool.run(clients, clients * work, [&](int64_t k, int thread) {
            const auto alone = [](int64_t count, auto &&body) {
                for (int64_t i = 0; i < count; ++i) body(i, 0);
            };
            fcm::multiply(context->kernels, product_of(k), rights + thread * right_floats(cols, depth),
                          lefts + thread * left_floats(depth), alone);
        });
    } else {
        float *lefts = rights + right_floats(cols, depth);
        const auto together = [&](int64_t count, auto &&body) { context->pool.run(count, work, body); };
        for (int64_t k = 0; k < clients; ++k) fcm::multiply(context->kernels, product_of(k), rights, lefts, together);
    }
    return FCM_OK;
}

}  // namespace fcm
