// The update rules of the paper: checked arguments, then one kernel a piece, spread over clients and pieces.
#include <algorithm>
#include <cinttypes>
#include <cmath>

#include "arguments.h"
#include "backend.h"
#include "context.h"
#include "pieces.h"

namespace fcm {
namespace {

constexpr int64_t kDouble = sizeof(double);

void norms_of(const double *sums, int64_t clients, int64_t n, double *norms) {
    for (int64_t k = 0; k < clients && n > 0; ++k) norms[k] = norm_of(sums, k, pieces_of(n));
}

// The contraction needs d * n elements of H a client.
int64_t jacobian_length(Arguments &arguments, int64_t n, int64_t d) {
    int64_t length = 0;
    arguments.require(d >= 1, "d = %" PRId64 " is less than 1", d);
    if (arguments.ok()) {
        arguments.require(product(n, d, &length), "n * d = %" PRId64 " * %" PRId64 " does not fit int64", n, d);
    }
    return length;
}

// What a projection asks for: a radius, and the norms of all clients that have elements.
Arguments &projection(Arguments &arguments, int64_t clients, int64_t n, double radius, const double *norms) {
    const int64_t used = n > 0 ? clients : 0;
    return arguments.require(radius > 0.0, "radius = %g is not positive", radius)
        .batch("norms", norms, 1, used, used, kDouble, false);
}

// A client whose norm is no number cannot be brought into the ball, and nobody is then.
fcm_status check_norms(const char *function, int64_t clients, int64_t n, const double *norms, fcm_error *error) {
    for (int64_t k = 0; k < clients && n > 0; ++k) {
        if (!std::isfinite(norms[k])) {
            return fail(error, FCM_NOT_FINITE, {k, -1, -1}, "%s: the norm of client %" PRId64 " is %g", function, k, norms[k]);
        }
    }
    return FCM_OK;
}

}  // namespace
}  // namespace fcm

using fcm::Arguments;
using fcm::guarded;

fcm_status fcm_ema(fcm_context *context, int64_t clients, int64_t n, double a, const float *x, int64_t x_stride, float *y,
                   int64_t y_stride, fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->ema(context->remote, clients, n, a, x, x_stride, y, y_stride, error);
    }
    constexpr const char *function = "fcm_ema";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).fraction("a", a);
        arguments.read("x", x, clients, n, x_stride).write("y", y, clients, n, y_stride).disjoint();
        if (!arguments.ok()) return arguments.status();
        const auto fresh = static_cast<float>(a);
        const auto keep = static_cast<float>(1.0 - a);
        fcm::for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
            const float *from = x + k * x_stride + start;
            float *to = y + k * y_stride + start;
            if (keep == 0.0f) {
                std::copy(from, from + length, to);
            } else {
                context->kernels.ema(length, fresh, keep, from, to);
            }
        });
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_compose_momentum(fcm_context *context, int64_t clients, int64_t n, int64_t d, double b, const float *h,
                                int64_t h_stride, const float *v, int64_t v_stride, float *m, int64_t m_stride,
                                fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->compose_momentum(context->remote, clients, n, d, b, h, h_stride, v, v_stride, m, m_stride,
                                                  error);
    }
    constexpr const char *function = "fcm_compose_momentum";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).fraction("b", b);
        const int64_t length_h = fcm::jacobian_length(arguments, n, d);
        arguments.read("h", h, clients, length_h, h_stride)
            .read("v", v, n > 0 ? clients : 0, d, v_stride)
            .write("m", m, clients, n, m_stride)
            .disjoint();
        if (!arguments.ok()) return arguments.status();
        const auto fresh = static_cast<float>(b);
        const auto keep = static_cast<float>(1.0 - b);
        fcm::for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
            context->kernels.compose(length, d, n, fresh, keep, h + k * h_stride + start, v + k * v_stride,
                                     m + k * m_stride + start);
        });
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_sum_workspace(const fcm_context *context, int64_t clients, int64_t n, int64_t *bytes, fcm_error *error) {
    if (fcm::is_remote(context)) return context->backend->sum_workspace(context->remote, clients, n, bytes, error);
    Arguments arguments("fcm_sum_workspace", error);
    arguments.context(context).sizes(clients, n).require(bytes != nullptr, "the place for the answer is null");
    const int64_t needed = fcm::sum_bytes(arguments, clients, n);
    if (arguments.ok()) *bytes = needed;
    return arguments.status();
}

fcm_status fcm_storm(fcm_context *context, int64_t clients, int64_t n, double g, const float *g_new, int64_t g_new_stride,
                     const float *g_old, int64_t g_old_stride, float *h, int64_t h_stride, double *norms, void *workspace,
                     int64_t workspace_bytes, fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->storm(context->remote, clients, n, g, g_new, g_new_stride, g_old, g_old_stride, h, h_stride,
                                       norms, workspace, workspace_bytes, error);
    }
    constexpr const char *function = "fcm_storm";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).fraction("g", g);
        arguments.read("g_new", g_new, clients, n, g_new_stride)
            .read("g_old", g_old, clients, n, g_old_stride)
            .write("h", h, clients, n, h_stride)
            .batch("norms", norms, 1, n > 0 ? clients : 0, clients, fcm::kDouble, true);
        const int64_t needed = fcm::sum_bytes(arguments, clients, n);
        arguments.workspace(workspace, workspace_bytes, needed).disjoint();
        if (!arguments.ok()) return arguments.status();
        auto *sums = static_cast<double *>(workspace);
        const auto keep = static_cast<float>(1.0 - g);
        fcm::for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t task) {
            sums[task] = context->kernels.storm(length, keep, g_new + k * g_new_stride + start,
                                                g_old + k * g_old_stride + start, h + k * h_stride + start);
        });
        fcm::norms_of(sums, clients, n, norms);
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_project_compose_momentum(fcm_context *context, int64_t clients, int64_t n, int64_t d, double radius,
                                        const double *norms, double b, float *h, int64_t h_stride, const float *v,
                                        int64_t v_stride, float *m, int64_t m_stride, fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->project_compose_momentum(context->remote, clients, n, d, radius, norms, b, h, h_stride, v,
                                                          v_stride, m, m_stride, error);
    }
    constexpr const char *function = "fcm_project_compose_momentum";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).fraction("b", b);
        const int64_t length_h = fcm::jacobian_length(arguments, n, d);
        arguments.write("h", h, clients, length_h, h_stride)
            .read("v", v, n > 0 ? clients : 0, d, v_stride)
            .write("m", m, clients, n, m_stride);
        fcm::projection(arguments, clients, n, radius, norms).disjoint();
        if (!arguments.ok()) return arguments.status();
        const fcm_status status = fcm::check_norms(function, clients, n, norms, error);
        if (status != FCM_OK) return status;
        const auto fresh = static_cast<float>(b);
        const auto keep = static_cast<float>(1.0 - b);
        fcm::for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
            float *block = h + k * h_stride + start;
            float *out = m + k * m_stride + start;
            const float *weights = v + k * v_stride;
            if (norms[k] > radius) {
                context->kernels.scale_compose(length, d, n, radius / norms[k], fresh, keep, block, weights, out);
            } else {
                context->kernels.compose(length, d, n, fresh, keep, block, weights, out);
            }
        });
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_project(fcm_context *context, int64_t clients, int64_t n, double radius, const double *norms, float *x,
                       int64_t x_stride, fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->project(context->remote, clients, n, radius, norms, x, x_stride, error);
    }
    constexpr const char *function = "fcm_project";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).write("x", x, clients, n, x_stride);
        fcm::projection(arguments, clients, n, radius, norms).disjoint();
        if (!arguments.ok()) return arguments.status();
        const fcm_status status = fcm::check_norms(function, clients, n, norms, error);
        if (status != FCM_OK) return status;
        fcm::for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
            if (norms[k] <= radius) return;
            float *piece = x + k * x_stride + start;
            context->kernels.scale(length, radius / norms[k], piece, piece);
        });
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_norm(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride, double *norms,
                    void *workspace, int64_t workspace_bytes, fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->norm(context->remote, clients, n, x, x_stride, norms, workspace, workspace_bytes, error);
    }
    constexpr const char *function = "fcm_norm";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).read("x", x, clients, n, x_stride);
        arguments.batch("norms", norms, 1, n > 0 ? clients : 0, clients, fcm::kDouble, true);
        const int64_t needed = fcm::sum_bytes(arguments, clients, n);
        arguments.workspace(workspace, workspace_bytes, needed).disjoint();
        if (!arguments.ok()) return arguments.status();
        auto *sums = static_cast<double *>(workspace);
        fcm::sum_pieces(context, clients, n, x, x_stride, sums);
        fcm::norms_of(sums, clients, n, norms);
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_vector_step(fcm_context *context, int64_t clients, int64_t n, int32_t rule, double eta, const float *m,
                           int64_t m_stride, float *w, int64_t w_stride, void *workspace, int64_t workspace_bytes,
                           fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->vector_step(context->remote, clients, n, rule, eta, m, m_stride, w, w_stride, workspace,
                                             workspace_bytes, error);
    }
    constexpr const char *function = "fcm_vector_step";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n);
        arguments.require(rule == FCM_STEP_PLAIN || rule == FCM_STEP_NORMALIZED, "there is no step rule %d", rule)
            .require(std::isfinite(eta), "eta = %g is not finite", eta)
            .read("m", m, clients, n, m_stride)
            .write("w", w, clients, n, w_stride);
        const bool normalized = rule == FCM_STEP_NORMALIZED;
        if (normalized) arguments.workspace(workspace, workspace_bytes, fcm::sum_bytes(arguments, clients, n));
        arguments.disjoint();
        if (!arguments.ok()) return arguments.status();
        auto *sums = static_cast<double *>(workspace);
        const int64_t pieces = fcm::pieces_of(n);
        if (normalized) {
            const fcm_status status = fcm::finite_norms(function, "m", context, clients, n, m, m_stride, sums, error);
            if (status != FCM_OK) return status;
        }
        fcm::for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
            double step = eta;
            if (normalized) {
                const double norm = sums[k * pieces];
                if (norm == 0.0) return;
                step = eta / norm;
            }
            context->kernels.step(length, step, m + k * m_stride + start, w + k * w_stride + start);
        });
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_adaptive_step(fcm_context *context, int64_t clients, int64_t n, int32_t rule, double beta1, double beta2,
                             double epsilon, double eta, const float *delta, int64_t delta_stride, float *m, int64_t m_stride,
                             float *v, int64_t v_stride, float *w, int64_t w_stride, fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->adaptive_step(context->remote, clients, n, rule, beta1, beta2, epsilon, eta, delta,
                                               delta_stride, m, m_stride, v, v_stride, w, w_stride, error);
    }
    constexpr const char *function = "fcm_adaptive_step";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n);
        arguments.require(rule == FCM_ADAM || rule == FCM_YOGI, "there is no adaptive rule %d", rule)
            .decay("beta1", beta1)
            .decay("beta2", beta2)
            .require(epsilon > 0.0 && std::isfinite(epsilon), "epsilon = %g is not a positive number", epsilon)
            .require(std::isfinite(eta), "eta = %g is not finite", eta)
            .read("delta", delta, clients, n, delta_stride)
            .write("m", m, clients, n, m_stride)
            .write("v", v, clients, n, v_stride)
            .write("w", w, clients, n, w_stride)
            .disjoint();
        if (!arguments.ok()) return arguments.status();
        const fcm::AdaptiveStep step{rule == FCM_YOGI, beta1, beta2, epsilon, eta};
        fcm::for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
            context->kernels.adaptive_step(length, step, delta + k * delta_stride + start, m + k * m_stride + start,
                                           v + k * v_stride + start, w + k * w_stride + start);
        });
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_average(fcm_context *context, int64_t clients, int64_t n, const double *weights, float *x, int64_t x_stride,
                       fcm_error *error) {
    if (fcm::is_remote(context)) return context->backend->average(context->remote, clients, n, weights, x, x_stride, error);
    constexpr const char *function = "fcm_average";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).write("x", x, clients, n, x_stride);
        if (weights != nullptr) arguments.batch("weights", weights, 1, clients, clients, fcm::kDouble, false);
        arguments.disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        auto total = static_cast<double>(clients);
        if (weights != nullptr) {
            total = 0.0;
            for (int64_t k = 0; k < clients; ++k) {
                arguments.require(std::isfinite(weights[k]) && weights[k] >= 0.0,
                                  "weight %" PRId64 " is %g, not a number >= 0", k, weights[k]);
                total += weights[k];
            }
            arguments.require(total > 0.0 && std::isfinite(total), "the weights sum to %g", total);
            if (!arguments.ok()) return arguments.status();
        }
        // Each task sums all clients of its stretch, in order; stretches are short so that a few long vectors
        // still occupy every thread.
        constexpr int64_t kStretch = 4096;
        const int64_t stretches = (n + kStretch - 1) / kStretch;
        context->pool.run(stretches, clients * n, [&](int64_t i, int) {
            const int64_t start = i * kStretch;
            context->kernels.average(clients, n - start < kStretch ? n - start : kStretch, weights, total, x + start,
                                     x_stride);
        });
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_all_finite(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride, int64_t *client,
                          int64_t *index, fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->all_finite(context->remote, clients, n, x, x_stride, client, index, error);
    }
    constexpr const char *function = "fcm_all_finite";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n);
        arguments.require(client != nullptr && index != nullptr, "the place for the answer is null");
        arguments.read("x", x, clients, n, x_stride);
        if (!arguments.ok()) return arguments.status();
        const fcm::Place place = fcm::first_not_finite(context, clients, n, x, x_stride);
        *client = place.client;
        *index = place.index;
        return fcm_status{FCM_OK};
    });
}

fcm_status fcm_triad(fcm_context *context, int64_t n, float s, const float *b, const float *c, float *a, int32_t non_temporal,
                     fcm_error *error) {
    if (fcm::is_remote(context)) return context->backend->triad(context->remote, n, s, b, c, a, non_temporal, error);
    constexpr const char *function = "fcm_triad";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(1, n);
        arguments.read("b", b, 1, n, n).read("c", c, 1, n, n).write("a", a, 1, n, n).disjoint();
        if (!arguments.ok()) return arguments.status();
        const auto kernel = non_temporal != 0 ? context->kernels.triad_non_temporal : context->kernels.triad;
        fcm::for_pieces(context, 1, n, [&](int64_t, int64_t start, int64_t length, int64_t) {
            kernel(length, s, b + start, c + start, a + start);
        });
        return fcm_status{FCM_OK};
    });
}
