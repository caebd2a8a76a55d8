// Matrix products of any size on the CPU. The order of each sum does not depend on the number of threads.
#include "multiply.h"

#include <algorithm>

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

void multiply_all(fcm_context *context, int64_t clients, const Product &first, const ProductStrides &strides, void *workspace) {
    const auto product_of = [&](int64_t k) {
        Product p = first;
        p.a += k * strides.a;
        p.b += k * strides.b;
        if (p.base != nullptr) p.base += k * strides.base;
        p.out += k * strides.out;
        return p;
    };
    auto *rights = static_cast<float *>(workspace);
    const int threads = context->pool.threads();
    const int64_t work = first.rows * first.cols;
    const int64_t right = right_floats(first.cols, first.depth);
    const int64_t left = left_floats(first.depth);
    if (client_a_thread(clients, threads)) {
        float *lefts = rights + threads * right;
        context->pool.run(clients, clients * work, [&](int64_t k, int thread) {
            const auto alone = [](int64_t count, auto &&body) {
                for (int64_t i = 0; i < count; ++i) body(i, 0);
            };
            multiply(context->kernels, product_of(k), rights + thread * right, lefts + thread * left, alone);
        });
    } else {
        float *lefts = rights + right;
        const auto together = [&](int64_t count, auto &&body) { context->pool.run(count, work, body); };
        for (int64_t k = 0; k < clients; ++k) multiply(context->kernels, product_of(k), rights, lefts, together);
    }
}

fcm_status device::multiply(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int64_t depth,
                            int32_t symmetric, double product_factor, const float *a, int64_t a_stride, int64_t a_row,
                            int64_t a_col, const float *b, int64_t b_stride, int64_t b_row, int64_t b_col,
                            double base_factor, const float *base, int64_t base_stride, float *out, int64_t out_stride,
                            void *workspace, int64_t, fcm_error *) {
    const Product first{rows,  cols,  depth, symmetric != 0, a,   a_row, a_col, b, b_row, b_col, base, out, static_cast<float>(base_factor),
                        static_cast<float>(product_factor), FCM_FP32};
    multiply_all(context, clients, first, {a_stride, b_stride, base_stride, out_stride}, workspace);
    return FCM_OK;
}

}  // namespace fcm
