// Matrix products of any size, and the division by the norm that comes before Newton-Schulz.
#include <algorithm>
#include <cinttypes>
#include <cmath>

#include "arguments.h"
#include "backend.h"
#include "context.h"
#include "pieces.h"

namespace fcm {
namespace {

constexpr int64_t kMostSide = int64_t{1} << 31;

int64_t panels_of(int64_t cols) { return (cols + kProductPanel - 1) / kProductPanel; }
int64_t right_floats(int64_t cols, int64_t depth) {
    return panels_of(cols) * kProductPanel * std::min(depth, kProductDepth);
}
int64_t left_floats(int64_t depth) { return kProductRows * std::min(depth, kProductDepth); }

// With as many clients as threads each thread takes whole clients, without a rendezvous a stretch.
bool client_a_thread(int64_t clients, int threads) { return clients >= threads; }

int64_t workspace_floats(int threads, int64_t clients, int64_t cols, int64_t depth) {
    const int64_t rights = client_a_thread(clients, threads) ? threads : 1;
    return rights * right_floats(cols, depth) + threads * left_floats(depth);
}

// run(count, body) calls body(index, thread) for every index, by whatever threads there are.
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
}  // namespace fcm

using fcm::Arguments;

fcm_status fcm_multiply_workspace(const fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int64_t depth,
                                  int64_t *bytes, fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->multiply_workspace(context->remote, clients, rows, cols, depth, bytes, error);
    }
    Arguments arguments("fcm_multiply_workspace", error);
    arguments.context(context).require(bytes != nullptr, "the place for the answer is null");
    arguments.require(clients >= 0 && rows >= 0 && cols >= 0 && depth >= 0, "a size is negative");
    arguments.require(rows < fcm::kMostSide && cols < fcm::kMostSide && depth < fcm::kMostSide, "a side is over 2^31");
    if (arguments.ok()) {
        *bytes = fcm::workspace_floats(context->pool.threads(), clients, cols, depth) * static_cast<int64_t>(sizeof(float));
    }
    return arguments.status();
}

fcm_status fcm_multiply(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int64_t depth, int32_t symmetric,
                        double product_factor, const float *a, int64_t a_stride, int64_t a_row, int64_t a_col, const float *b,
                        int64_t b_stride, int64_t b_row, int64_t b_col, double base_factor, const float *base,
                        int64_t base_stride, float *out, int64_t out_stride, void *workspace, int64_t workspace_bytes,
                        fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->multiply(context->remote, clients, rows, cols, depth, symmetric, product_factor, a,
                                          a_stride, a_row, a_col, b, b_stride, b_row, b_col, base_factor, base, base_stride,
                                          out, out_stride, workspace, workspace_bytes, error);
    }
    constexpr const char *function = "fcm_multiply";
    return fcm::guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context)
            .require(clients >= 0 && rows >= 0 && cols >= 0, "a size is negative")
            .require(depth >= 1, "depth = %" PRId64 " is less than 1", depth)
            .require(rows < fcm::kMostSide && cols < fcm::kMostSide && depth < fcm::kMostSide, "a side is over 2^31")
            .require(symmetric == 0 || rows == cols, "a symmetric result is not %" PRId64 " x %" PRId64, rows, cols)
            .require(std::isfinite(product_factor) && std::isfinite(base_factor), "a factor is not finite");
        const bool empty = clients <= 0 || rows <= 0 || cols <= 0;
        int64_t needed = 0;
        if (arguments.ok() && !empty) {
            arguments.view("a", a, clients, a_stride, rows, depth, a_row, a_col, sizeof(float), false);
            arguments.view("b", b, clients, b_stride, depth, cols, b_row, b_col, sizeof(float), false);
            if (base != nullptr) arguments.read("base", base, clients, rows * cols, base_stride);
            arguments.write("out", out, clients, rows * cols, out_stride);
            needed = fcm::workspace_floats(context->pool.threads(), clients, cols, depth) *
                     static_cast<int64_t>(sizeof(float));
            arguments.workspace(workspace, workspace_bytes, needed).disjoint();
        }
        if (!arguments.ok() || empty) return arguments.status();
        const auto product_of = [&](int64_t k) {
            return fcm::Product{rows,
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
                                static_cast<float>(product_factor)};
        };
        auto *rights = static_cast<float *>(workspace);
        const int threads = context->pool.threads();
        const int64_t work = rows * cols;
        if (fcm::client_a_thread(clients, threads)) {
            float *lefts = rights + threads * fcm::right_floats(cols, depth);
            context->pool.run(clients, clients * work, [&](int64_t k, int thread) {
                const auto alone = [](int64_t count, auto &&body) {
                    for (int64_t i = 0; i < count; ++i) body(i, 0);
                };
                fcm::multiply(context->kernels, product_of(k), rights + thread * fcm::right_floats(cols, depth),
                              lefts + thread * fcm::left_floats(depth), alone);
            });
        } else {
            float *lefts = rights + fcm::right_floats(cols, depth);
            const auto together = [&](int64_t count, auto &&body) { context->pool.run(count, work, body); };
            for (int64_t k = 0; k < clients; ++k) {
                fcm::multiply(context->kernels, product_of(k), rights, lefts, together);
            }
        }
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_normalize(fcm_context *context, int64_t clients, int64_t n, double divisor, const float *x, int64_t x_stride,
                         float *y, int64_t y_stride, void *workspace, int64_t workspace_bytes, fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->normalize(context->remote, clients, n, divisor, x, x_stride, y, y_stride, workspace,
                                           workspace_bytes, error);
    }
    constexpr const char *function = "fcm_normalize";
    return fcm::guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n);
        arguments.require(divisor > 0.0 && std::isfinite(divisor), "divisor = %g is not a positive number", divisor);
        arguments.mapped("x", x, x_stride, "y", y, y_stride, clients, n);
        arguments.workspace(workspace, workspace_bytes, fcm::sum_bytes(arguments, clients, n)).disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        auto *sums = static_cast<double *>(workspace);
        const fcm_status status = fcm::finite_norms(function, "x", context, clients, n, x, x_stride, sums, error);
        if (status != FCM_OK) return status;
        const int64_t pieces = fcm::pieces_of(n);
        fcm::for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
            const double norm = sums[k * pieces];
            context->kernels.scale(length, norm == 0.0 ? 0.0 : 1.0 / (norm * divisor), x + k * x_stride + start,
                                   y + k * y_stride + start);
        });
        return fcm_status{FCM_OK};
    });
}
