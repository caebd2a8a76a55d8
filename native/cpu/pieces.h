// Operations over long vectors run in pieces of kSumPiece elements, and so do their sums: never a function of threads.
#pragma once

#include <atomic>
#include <cinttypes>
#include <cmath>
#include <cstdint>

#include "arguments.h"
#include "context.h"

namespace fcm {

inline int64_t pieces_of(int64_t n) { return n / kSumPiece + (n % kSumPiece != 0 ? 1 : 0); }

// body(client, start, length, task) for the pieces of each client, in parallel.
template <class Body>
void for_pieces(fcm_context *context, int64_t clients, int64_t n, Body &&body) {
    const int64_t pieces = pieces_of(n);
    context->pool.run(clients * pieces, clients * n, [&](int64_t task, int) {
        const int64_t start = task % pieces * kSumPiece;
        body(task / pieces, start, n - start < kSumPiece ? n - start : kSumPiece, task);
    });
}

// Room for one sum a piece.
inline int64_t sum_bytes(Arguments &arguments, int64_t clients, int64_t n) {
    int64_t bytes = 0;
    if (arguments.ok()) {
        arguments.require(product(clients, pieces_of(n), &bytes) && product(bytes, sizeof(double), &bytes),
                          "the workspace does not fit int64");
    }
    return arguments.ok() ? bytes : 0;
}

// The norm of client k from its piece sums, added in order.
inline double norm_of(const double *sums, int64_t client, int64_t pieces) {
    double total = 0.0;
    for (int64_t i = 0; i < pieces; ++i) total += sums[client * pieces + i];
    return std::sqrt(total);
}

inline void sum_pieces(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t stride, double *sums) {
    for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t task) {
        sums[task] = context->kernels.sum_of_squares(length, x + k * stride + start);
    });
}

// The first NaN or Inf in client order; no place when there is none.
inline Place first_not_finite(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t stride) {
    // The smallest task that finds something wins, whoever finishes first.
    std::atomic<int64_t> first{INT64_MAX};
    for_pieces(context, clients, n, [&](int64_t k, int64_t start, int64_t length, int64_t task) {
        int64_t known = first.load(std::memory_order_relaxed);
        if (task > known || context->kernels.first_not_finite(length, x + k * stride + start) < 0) return;
        while (task < known && !first.compare_exchange_weak(known, task, std::memory_order_relaxed)) {
        }
    });
    const int64_t task = first.load();
    if (task == INT64_MAX) return {};
    const int64_t k = task / pieces_of(n);
    const int64_t start = task % pieces_of(n) * kSumPiece;
    return {k, -1, start + context->kernels.first_not_finite(n - start, x + k * stride + start)};
}

inline fcm_status fail_not_finite(const char *function, const char *name, Place place, fcm_error *error) {
    return fail(error, FCM_NOT_FINITE, place, "%s: %s of client %" PRId64 " is not finite at element %" PRId64, function,
                name, place.client, place.index);
}

// Leaves client k's norm in its first sum, sums[k * pieces_of(n)], if all of them are finite; otherwise says where
// what is called `name` is not.
inline fcm_status finite_norms(const char *function, const char *name, fcm_context *context, int64_t clients, int64_t n,
                               const float *x, int64_t stride, double *sums, fcm_error *error) {
    const int64_t pieces = pieces_of(n);
    sum_pieces(context, clients, n, x, stride, sums);
    for (int64_t k = 0; k < clients && n > 0; ++k) {
        const double norm = norm_of(sums, k, pieces);
        if (!std::isfinite(norm)) {
            const int64_t index = context->kernels.first_not_finite(n, x + k * stride);
            return fail_not_finite(function, name, {k, -1, index}, error);
        }
        sums[k * pieces] = norm;
    }
    return FCM_OK;
}

}  // namespace fcm
