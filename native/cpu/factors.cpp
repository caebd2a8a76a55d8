// What orthogonal factors from eigenvectors need besides a library: conversions, the choice of directions, and inverse roots.
#include <algorithm>
#include <cmath>

#include "device_functions.h"
#include "pieces.h"

namespace fcm {

fcm_status device::widen(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride, double *y,
                         fcm_error *) {
    for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
        const float *from = x + k * x_stride + start;
        std::copy(from, from + length, y + k * n + start);
    });
    return FCM_OK;
}

fcm_status device::narrow(fcm_context *context, int64_t clients, int64_t n, const double *x, float *y, int64_t y_stride,
                          fcm_error *) {
    for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t) {
        const double *from = x + k * n + start;
        std::transform(from, from + length, y + k * y_stride + start,
                       [](double value) { return static_cast<float>(value); });
    });
    return FCM_OK;
}

fcm_status device::keep_directions(fcm_context *context, int64_t clients, int64_t n, double tolerance, const int32_t *info,
                                   const double *values, double *vectors, int64_t *kept, fcm_error *error) {
    for (int64_t k = 0; k < clients; ++k) {
        if (info[k] != 0) return fail_converged("fcm_keep_directions", {k, -1, -1, info + k}, error);
    }
    context->pool.run(clients, clients * n * n, [&](int64_t k, int) {
        const double *own = values + k * n;
        const double least = tolerance * tolerance * own[n - 1];
        const int64_t dropped = std::count_if(own, own + n, [least](double value) { return !(value > least); });
        for (int64_t i = 0; i < n; ++i) {
            double *row = vectors + (k * n + i) * n;
            if (!(own[i] > least)) std::fill(row, row + n, 0.0);
        }
        kept[k] = n - dropped;
    });
    return FCM_OK;
}

fcm_status device::inverse_roots(fcm_context *context, int64_t clients, int64_t n, double *gram, fcm_error *) {
    context->pool.run(clients, clients * n * n, [&](int64_t k, int) {
        double *own = gram + k * n * n;
        for (int64_t i = 0; i < n; ++i) {
            const double root = std::sqrt(own[i * n + i]);
            for (int64_t j = i + 1; j < n; ++j) {
                const double other = std::sqrt(own[j * n + j]);
                double &here = own[i * n + j];
                here = root > 0.0 && other > 0.0 ? -here / (root * other * (root + other)) : 0.0;
            }
        }
        for (int64_t i = 0; i < n; ++i) {
            double &here = own[i * n + i];
            here = here > 0.0 ? 1.0 / std::sqrt(here) : 0.0;
        }
    });
    return FCM_OK;
}

}  // namespace fcm
