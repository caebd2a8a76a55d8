// Finds the first NaN or Inf in client order. The result is deterministic: an atomic minimum over positions.
#include "context.h"
#include "device.h"
#include "device_functions.h"

namespace fcm {

struct FirstNotFinite {
    int64_t n;
    const float *x;
    int64_t stride;
    unsigned long long *first;

    // The smallest position in client order is the result, regardless of which thread finds it first.
    template <int W>
    __device__ __forceinline__ void at(int64_t client, int64_t j) const {
        float value[W];
        load<W>(x + client * stride + j, value);
        int found = W;
#pragma unroll
        for (int i = W - 1; i >= 0; --i) {
            if (not_finite(value[i])) found = i;
        }
        if (found < W) atomicMin(first, static_cast<unsigned long long>(client * n + j + found));
    }
};

}  // namespace fcm

extern "C" __global__ void __launch_bounds__(fcm::kThreads)
    fcm_k_first_not_finite(int64_t clients, int32_t vectors, fcm::FirstNotFinite op) {
    fcm::for_elements(clients, op.n, vectors != 0, op);
}

namespace fcm {

Place first_not_finite(const fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t stride) {
    if (clients == 0 || n == 0) return {};
    // All clients share one vector, so checking the first client is enough.
    const int64_t different = stride == 0 ? 1 : clients;
    forget(context);
    LAUNCH(fcm_k_first_not_finite, blocks_for(different * parts_of(n, kChunk)), kThreads, 0, context->stream, different,
           vector_aligned(x, different, stride), FirstNotFinite{n, x, stride, &context->findings->bad});
    launched("fcm_k_first_not_finite", different, n);
    const Findings findings = read_findings(context);
    if (findings.bad == kNothing) return {};
    const auto at = static_cast<int64_t>(findings.bad);
    return {at / n, -1, at % n};
}

fcm_status device::all_finite(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride,
                              int64_t *client, int64_t *index, fcm_error *error) {
    return on_device("fcm_all_finite", context, error, [&] {
        const Place place = first_not_finite(context, clients, n, x, x_stride);
        *client = place.client;
        *index = place.index;
    });
}

}  // namespace fcm
