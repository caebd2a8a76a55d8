// Operations over long vectors, and their sums, run in pieces of kSumPiece elements. The pieces never depend on the number
// of threads, so that results are bit-identical for any number of them.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>

#include "context.h"
#include "failure.h"

namespace fcm {

inline int64_t pieces_of(int64_t n) { return n / kSumPiece + (n % kSumPiece != 0 ? 1 : 0); }

// Calls body(client, start, length, task) for the pieces of each client, in parallel.
template <class Body>
void for_pieces(fcm_context *context, int64_t clients, int64_t n, Body &&body) {
    const int64_t pieces = pieces_of(n);
    context->pool.run(clients * pieces, clients * n, [&](int64_t task, int) {
        const int64_t start = task % pieces * kSumPiece;
        body(task / pieces, start, n - start < kSumPiece ? n - start : kSumPiece, task);
    });
}

// The norm of a client from the sums of its pieces, added in order.
inline double norm_of(const double *sums, int64_t client, int64_t pieces) {
    double total = 0.0;
    for (int64_t i = 0; i < pieces; ++i) total += sums[client * pieces + i];
    return std::sqrt(total);
}

inline void sum_pieces(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t stride, double *sums) {
    const int64_t pieces = pieces_of(n);
    const int64_t groups = (pieces + kSumsAtOnce - 1) / kSumsAtOnce;
    context->pool.run(clients * groups, clients * n, [&](int64_t task, int) {
        const int64_t k = task / groups;
        int64_t piece = task % groups * kSumsAtOnce;
        const int64_t end = piece + kSumsAtOnce < pieces ? piece + kSumsAtOnce : pieces;
        const float *from = x + k * stride + piece * kSumPiece;
        double *to = sums + k * pieces + piece;
        if ((piece + kSumsAtOnce) * kSumPiece <= n) return context->kernels.sums_of_squares(from, to);
        for (; piece < end; ++piece, from += kSumPiece) {
            const int64_t left = n - piece * kSumPiece;
            *to++ = context->kernels.sum_of_squares(left < kSumPiece ? left : kSumPiece, from);
        }
    });
}

// The first NaN or Inf in client order; an empty place if there is none.
inline Place first_not_finite(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t stride) {
    // The smallest task that finds something determines the result, regardless of which thread finishes first.
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
    const int64_t index = start + context->kernels.first_not_finite(n - start, x + k * stride + start);
    return {k, -1, index, x + k * stride + index};
}

}  // namespace fcm
