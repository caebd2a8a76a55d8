// The largest elements of every client: the least magnitude that stays is searched digit by digit, then all others
// become zero.
#include <algorithm>
#include <atomic>
#include <cinttypes>

#include "arguments.h"
#include "backend.h"
#include "context.h"
#include "pieces.h"

namespace fcm {
namespace {

// What stays: magnitudes above `bits`, and those equal to it before the index `end`.
struct Cut {
    uint32_t bits;
    int64_t end;
};

// `run` is called like the pool's. Counts are whole numbers: who adds them first does not matter.
template <class Run>
Cut find_cut(const Kernels &kernels, Run &&run, int64_t n, int64_t k, const float *x) {
    Cut cut{0, n};
    // Elements that have the digits of `bits` so far, and how many of those stay. Once all of them do, the digits
    // below are zero.
    int64_t alike = n;
    int64_t wanted = k;
    for (const Digit digit : kMagnitudeDigits) {
        if (wanted == alike) return cut;
        std::atomic<int64_t> counts[kDigitValues] = {};
        run(pieces_of(n), n, [&](int64_t piece, int) {
            const int64_t start = piece * kSumPiece;
            uint32_t own[kDigitValues] = {};
            kernels.count_digits(std::min(n - start, kSumPiece), digit, cut.bits >> (digit.shift + digit.width), x + start,
                                 own);
            for (int64_t i = 0; i < kDigitValues; ++i) {
                if (own[i] != 0) counts[i].fetch_add(own[i], std::memory_order_relaxed);
            }
        });
        int64_t value = (int64_t{1} << digit.width) - 1;
        while ((alike = counts[value].load(std::memory_order_relaxed)) < wanted) {
            wanted -= alike;
            --value;
        }
        cut.bits |= static_cast<uint32_t>(value) << digit.shift;
    }
    if (wanted < alike) cut.end = kernels.find_magnitude(n, cut.bits, wanted, x) + 1;
    return cut;
}

template <class Run>
void top_k(const Kernels &kernels, Run &&run, int64_t n, int64_t k, const float *x, float *y) {
    const Cut cut = find_cut(kernels, run, n, k, x);
    run(pieces_of(n), n, [&](int64_t piece, int) {
        const int64_t start = piece * kSumPiece;
        const int64_t length = std::min(n - start, kSumPiece);
        const int64_t before = std::clamp(cut.end - start, int64_t{0}, length);
        kernels.keep_magnitudes(before, cut.bits, x + start, y + start);
        kernels.keep_magnitudes(length - before, cut.bits + 1, x + start + before, y + start + before);
    });
}

}  // namespace
}  // namespace fcm

using fcm::Arguments;

fcm_status fcm_top_k(fcm_context *context, int64_t clients, int64_t n, int64_t k, const float *x, int64_t x_stride, float *y,
                     int64_t y_stride, fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->top_k(context->remote, clients, n, k, x, x_stride, y, y_stride, error);
    }
    constexpr const char *function = "fcm_top_k";
    return fcm::guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n);
        arguments.require(k >= 0 && k <= n, "k = %" PRId64 " is outside [0, %" PRId64 "]", k, n)
            .mapped("x", x, x_stride, "y", y, y_stride, clients, n)
            .disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        const fcm::Place bad = fcm::first_not_finite(context, clients, n, x, x_stride);
        if (bad.client >= 0) return fcm::fail_not_finite(function, "x", bad, error);
        const fcm::Kernels &kernels = context->kernels;
        // Clients are spread over the threads, a client a task; where there are too few of them, their pieces are.
        if (clients >= context->pool.threads()) {
            const auto alone = [](int64_t count, int64_t, auto &&body) {
                for (int64_t i = 0; i < count; ++i) body(i, 0);
            };
            context->pool.run(clients, clients * n, [&](int64_t client, int) {
                fcm::top_k(kernels, alone, n, k, x + client * x_stride, y + client * y_stride);
            });
        } else {
            const auto together = [&](int64_t count, int64_t elements, auto &&body) {
                context->pool.run(count, elements, body);
            };
            for (int64_t client = 0; client < clients; ++client) {
                fcm::top_k(kernels, together, n, k, x + client * x_stride, y + client * y_stride);
            }
        }
        return fcm_status{FCM_OK};
    });
}
