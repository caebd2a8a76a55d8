// The update rules of the paper on the CPU: one kernel call per piece, distributed over clients and pieces.
#include <algorithm>
#include <cinttypes>
#include <cmath>

#include "device_functions.h"
#include "pieces.h"

namespace fcm {
namespace {

void norms_of(const double *sums, int64_t clients, int64_t n, double *norms) {
    for (int64_t k = 0; k < clients; ++k) norms[k] = norm_of(sums, k, pieces_of(n));
}

// A client whose norm is not finite cannot be projected into the ball; then no client is.
fcm_status check_norms(const char *function, int64_t clients, const double *norms, fcm_error *error) {
    for (int64_t k = 0; k < clients; ++k) {
        if (!std::isfinite(norms[k])) {
            return fail_norm(function, {k, -1, -1, norms + k}, error);
        }
    }
    return FCM_OK;
}

}  // namespace

const int64_t device::sum_piece = kSumPiece;

fcm_status device::ema(fcm_context *context, int64_t clients, int64_t n, double a, const float *x, int64_t x_stride, float *y,
                       int64_t y_stride, fcm_error *) {
    const auto fresh = static_cast<float>(a);
    const auto keep = static_cast<float>(1.0 - a);
    for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
        const float *from = x + k * x_stride + start;
        float *to = y + k * y_stride + start;
        if (keep == 0.0f) {
            std::copy(from, from + length, to);
        } else {
            context->kernels.ema(length, fresh, keep, from, to);
        }
    });
    return FCM_OK;
}

fcm_status device::compose_momentum(fcm_context *context, int64_t clients, int64_t n, int64_t d, double b, const float *h,
                                    int64_t h_stride, const float *v, int64_t v_stride, float *m, int64_t m_stride,
                                    fcm_error *) {
    const auto fresh = static_cast<float>(b);
    const auto keep = static_cast<float>(1.0 - b);
    for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
        context->kernels.compose(length, d, n, fresh, keep, h + k * h_stride + start, v + k * v_stride,
                                 m + k * m_stride + start);
    });
    return FCM_OK;
}

fcm_status device::storm(fcm_context *context, int64_t clients, int64_t n, double g, const float *g_new, int64_t g_new_stride,
                         const float *g_old, int64_t g_old_stride, float *h, int64_t h_stride, double *norms, void *workspace,
                         int64_t, fcm_error *) {
    auto *sums = static_cast<double *>(workspace);
    const auto keep = static_cast<float>(1.0 - g);
    for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t task) {
        sums[task] = context->kernels.storm(length, keep, g_new + k * g_new_stride + start, g_old + k * g_old_stride + start,
                                            h + k * h_stride + start);
    });
    norms_of(sums, clients, n, norms);
    return FCM_OK;
}

fcm_status device::project_compose_momentum(fcm_context *context, int64_t clients, int64_t n, int64_t d, double radius,
                                            const double *norms, double b, float *h, int64_t h_stride, const float *v,
                                            int64_t v_stride, float *m, int64_t m_stride, fcm_error *error) {
    const fcm_status status = check_norms("fcm_project_compose_momentum", clients, norms, error);
    if (status != FCM_OK) return status;
    const auto fresh = static_cast<float>(b);
    const auto keep = static_cast<float>(1.0 - b);
    for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
        float *block = h + k * h_stride + start;
        float *out = m + k * m_stride + start;
        const float *weights = v + k * v_stride;
        if (norms[k] > radius) {
            context->kernels.scale_compose(length, d, n, radius / norms[k], fresh, keep, block, weights, out);
        } else {
            context->kernels.compose(length, d, n, fresh, keep, block, weights, out);
        }
    });
    return FCM_OK;
}

fcm_status device::project(fcm_context *context, int64_t clients, int64_t n, double radius, const double *norms, float *x,
                           int64_t x_stride, fcm_error *error) {
    const fcm_status status = check_norms("fcm_project", clients, norms, error);
    if (status != FCM_OK) return status;
    for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
        if (norms[k] <= radius) return;
        float *piece = x + k * x_stride + start;
        context->kernels.scale(length, radius / norms[k], piece, piece);
    });
    return FCM_OK;
}

fcm_status device::norm(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride, double *norms,
                        void *workspace, int64_t, fcm_error *) {
    auto *sums = static_cast<double *>(workspace);
    sum_pieces(context, clients, n, x, x_stride, sums);
    norms_of(sums, clients, n, norms);
    return FCM_OK;
}

fcm_status device::vector_step(fcm_context *context, int64_t clients, int64_t n, double eta, const float *m, int64_t m_stride,
                               float *w, int64_t w_stride, fcm_error *) {
    for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
        context->kernels.step(length, eta, m + k * m_stride + start, w + k * w_stride + start);
    });
    return FCM_OK;
}

fcm_status device::normalize(fcm_context *context, int64_t clients, int64_t n, double divisor, const float *x,
                             int64_t x_stride, float *y, int64_t y_stride, void *workspace, int64_t, fcm_error *error) {
    auto *sums = static_cast<double *>(workspace);
    sum_pieces(context, clients, n, x, x_stride, sums);
    const int64_t pieces = pieces_of(n);
    for (int64_t k = 0; k < clients; ++k) {
        const double norm = norm_of(sums, k, pieces);
        if (!std::isfinite(norm)) {
            const float *first = x + k * x_stride;
            const int64_t index = context->kernels.first_not_finite(n, first);
            return fail_not_finite("fcm_normalize", "x", {k, -1, index, first + index}, error);
        }
        sums[k * pieces] = norm;
    }
    for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
        const double norm = sums[k * pieces];
        context->kernels.scale(length, norm == 0.0 ? 0.0 : 1.0 / (norm * divisor), x + k * x_stride + start,
                               y + k * y_stride + start);
    });
    return FCM_OK;
}

fcm_status device::adaptive_step(fcm_context *context, int64_t clients, int64_t n, int32_t rule, double beta1, double beta2,
                                 double epsilon, double eta, const float *delta, int64_t delta_stride, float *m,
                                 int64_t m_stride, float *v, int64_t v_stride, float *w, int64_t w_stride, fcm_error *) {
    const AdaptiveStep step{rule == FCM_YOGI, beta1, beta2, epsilon, eta};
    for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
        context->kernels.adaptive_step(length, step, delta + k * delta_stride + start, m + k * m_stride + start,
                                       v + k * v_stride + start, w + k * w_stride + start);
    });
    return FCM_OK;
}

namespace {

// Runs body(start, length) for stretches of n elements of means of so many rows: long ones, because a stretch fetches its next
// elements while it computes, but several for each thread.
template <class Body>
void for_stretches(fcm_context *context, int64_t rows, int64_t n, Body &&body) {
    constexpr int64_t kLeast = 4096;
    constexpr int64_t kMost = 32768;
    const int64_t share = n / (8 * context->pool.threads()) / kLeast * kLeast;
    const int64_t stretch = std::min(std::max(share, kLeast), kMost);
    const int64_t stretches = (n + stretch - 1) / stretch;
    context->pool.run(stretches, rows * n, [&](int64_t i, int) {
        const int64_t start = i * stretch;
        body(start, std::min(stretch, n - start));
    });
}

// Rows that are only read.
Rows rows_of(const float *x, int64_t stride) { return {nullptr, const_cast<float *>(x), stride}; }

}  // namespace

fcm_status device::average(fcm_context *context, int64_t clients, int64_t n, const double *weights, int64_t terms, float *x,
                           int64_t x_stride, fcm_error *) {
    const Rows rows{nullptr, x, x_stride};
    const MeanTerms mean{clients, weights, term_bits(terms), rows};
    const double total = total_weight(clients, weights);
    for_stretches(context, clients, n, [&](int64_t start, int64_t length) {
        context->kernels.average(mean, start, length, total, clients, rows);
    });
    return FCM_OK;
}

fcm_status device::average_rows(fcm_context *context, int64_t clients, int64_t n, const double *weights, int64_t terms,
                                const float *const *rows, int64_t target_count, float *const *targets, fcm_error *) {
    const MeanTerms mean{clients, weights, term_bits(terms), {const_cast<float *const *>(rows), nullptr, 0}};
    const double total = total_weight(clients, weights);
    for_stretches(context, clients, n, [&](int64_t start, int64_t length) {
        context->kernels.average(mean, start, length, total, target_count, {targets, nullptr, 0});
    });
    return FCM_OK;
}

fcm_status device::mean_exponents(fcm_context *context, int64_t clients, int64_t n, const double *weights, const float *x,
                                  int64_t x_stride, uint8_t *exponents, fcm_error *) {
    const MeanTerms mean{clients, weights, 0, rows_of(x, x_stride)};
    for_stretches(context, clients, n, [&](int64_t start, int64_t length) {
        context->kernels.mean_exponents(mean, start, length, exponents);
    });
    return FCM_OK;
}

fcm_status device::mean_sums(fcm_context *context, int64_t clients, int64_t n, const double *weights, int64_t terms,
                             const float *x, int64_t x_stride, const uint8_t *exponents, int64_t *sums, fcm_error *) {
    const MeanTerms mean{clients, weights, term_bits(terms), rows_of(x, x_stride)};
    for_stretches(context, clients, n, [&](int64_t start, int64_t length) {
        context->kernels.mean_sums(mean, start, length, exponents, sums);
    });
    return FCM_OK;
}

fcm_status device::mean_combine(fcm_context *context, int64_t parts, int64_t n, const uint8_t *const *exponents, uint8_t *to,
                                fcm_error *) {
    for_stretches(context, parts, n, [&](int64_t start, int64_t length) {
        context->kernels.mean_combine(parts, start, length, exponents, to);
    });
    return FCM_OK;
}

fcm_status device::mean_finish(fcm_context *context, int64_t parts, int64_t n, int64_t terms, double total,
                               const int64_t *const *sums, const uint8_t *exponents, int64_t target_count,
                               float *const *targets, fcm_error *) {
    const int bits = term_bits(terms);
    for_stretches(context, parts, n, [&](int64_t start, int64_t length) {
        context->kernels.mean_finish(parts, start, length, bits, total, sums, exponents, target_count, {targets, nullptr, 0});
    });
    return FCM_OK;
}

fcm_status device::all_finite(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride,
                              int64_t *client, int64_t *index, fcm_error *) {
    const Place place = first_not_finite(context, clients, n, x, x_stride);
    *client = place.client;
    *index = place.index;
    return FCM_OK;
}

fcm_status device::require_finite(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride,
                                  const float *of, int64_t of_stride, fcm_error *error) {
    constexpr const char *function = "fcm_require_finite";
    const Place place = first_not_finite(context, clients, n, x, x_stride);
    if (place.client < 0) return FCM_OK;
    if (of == nullptr) return fail_not_finite(function, "x", place, error);
    return fail_computed(function, {place.client, -1, -1, of + place.client * of_stride}, error);
}

fcm_status device::dropout_mask(fcm_context *context, int64_t clients, int64_t n, int32_t left, const uint64_t *seeds,
                                uint8_t *mask, int64_t mask_stride, fcm_error *) {
    static_assert(kSumPiece % 4 == 0, "a piece begins with a number of the generator");
    for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
        const uint64_t state = seeds[k] + static_cast<uint64_t>(start / 4) * kSplitMixStep;
        context->kernels.dropout_mask(length, left, state, mask + k * mask_stride + start);
    });
    return FCM_OK;
}

fcm_status device::triad(fcm_context *context, int64_t n, float s, const float *b, const float *c, float *a,
                         int32_t non_temporal, fcm_error *) {
    const auto kernel = non_temporal != 0 ? context->kernels.triad_non_temporal : context->kernels.triad;
    for_pieces(context, 1, n, [&](int64_t, int64_t start, int64_t length, int64_t) {
        kernel(length, s, b + start, c + start, a + start);
    });
    return FCM_OK;
}

}  // namespace fcm
