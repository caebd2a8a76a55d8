// Top-k on the CPU: keeps the k elements of largest magnitude of every client. The smallest magnitude that is kept is found
// by a radix search, digit by digit; then all other elements are set to zero. The result is deterministic: of equal
// magnitudes, lower indices are kept.
#include <algorithm>
#include <atomic>

#include "device_functions.h"
#include "pieces.h"

namespace fcm {
namespace {

// The elements that are kept: magnitudes above `bits`, and those equal to it before the index `end`.
struct Cut {
    uint32_t bits;
    int64_t end;
};

// `run` has the signature of the pool's. Counts are integers, so the order of the additions does not matter.
template <class Run>
Cut find_cut(const Kernels &kernels, Run &&run, int64_t n, int64_t k, const float *x) {
    Cut cut{0, n};
    // `alike` elements share the digits of `bits` found so far, and `wanted` of them are kept. If all of them are, the
    // remaining digits are zero.
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

fcm_status device::top_k(fcm_context *context, int64_t clients, int64_t n, int64_t k, const float *x, int64_t x_stride,
                         float *y, int64_t y_stride, fcm_error *error) {
    const Place bad = first_not_finite(context, clients, n, x, x_stride);
    if (bad.client >= 0) return fail_not_finite("fcm_top_k", "x", bad, error);
    const Kernels &kernels = context->kernels;
    // One task per client; if there are too few clients, the pieces of each client are distributed over the threads instead.
    if (clients >= context->pool.threads()) {
        const auto alone = [](int64_t count, int64_t, auto &&body) {
            for (int64_t i = 0; i < count; ++i) body(i, 0);
        };
        context->pool.run(clients, clients * n, [&](int64_t client, int) {
            fcm::top_k(kernels, alone, n, k, x + client * x_stride, y + client * y_stride);
        });
    } else {
        const auto together = [&](int64_t count, int64_t elements, auto &&body) { context->pool.run(count, elements, body); };
        for (int64_t client = 0; client < clients; ++client) {
            fcm::top_k(kernels, together, n, k, x + client * x_stride, y + client * y_stride);
        }
    }
    return FCM_OK;
}

}  // namespace fcm
