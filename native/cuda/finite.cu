// Finds the first NaN or Inf in client order. The result is deterministic: an atomic minimum over addresses.
#include "context.h"
#include "device.h"
#include "device_functions.h"

namespace fcm {

struct NotFinite {
    const float *x;
    int64_t stride;
    const float *of;  // what x was computed from; null for x itself
    int64_t of_stride;
    Check check;

    template <int W>
    __device__ __forceinline__ void at(int64_t client, int64_t j) const {
        float value[W];
        const float *first = x + client * stride + j;
        load<W>(first, value);
        int found = W;
#pragma unroll
        for (int i = W - 1; i >= 0; --i) {
            if (not_finite(value[i])) found = i;
        }
        if (found < W) check.found(of == nullptr ? first + found : of + client * of_stride);
    }
};

}  // namespace fcm

extern "C" __global__ void __launch_bounds__(fcm::kThreads)
    fcm_k_look_for_not_finite(int64_t clients, int64_t n, int32_t vectors, fcm::NotFinite op) {
    fcm::for_elements(clients, n, vectors != 0, op);
}

namespace fcm {

void look_for_not_finite(const fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t stride,
                         const float *of, int64_t of_stride, Check check) {
    // If all clients share one vector, checking the first client is enough.
    const int64_t different = stride == 0 ? 1 : clients;
    LAUNCH(fcm_k_look_for_not_finite, blocks_for(different * parts_of(n, kChunk)), kThreads, 0, context->stream, different, n,
           vector_aligned(x, different, stride), NotFinite{x, stride, of, of_stride, check});
    launched("fcm_k_look_for_not_finite", different, n);
}

fcm_status device::all_finite(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride,
                              int64_t *client, int64_t *index, fcm_error *error) {
    return on_device("fcm_all_finite", context, error, [&] {
        Status *own = context->status + 1;
        Status *answer = context->seen + 1;
        look_for_not_finite(context, clients, n, x, x_stride, nullptr, 0, Check{own, 1});
        check(cudaMemcpyAsync(answer, own, sizeof(Status), cudaMemcpyDeviceToHost, context->stream), "cudaMemcpyAsync");
        const fcm_status before = settle(context, error);
        *client = *index = -1;
        if (answer->ticket != kNothing) {
            const auto offset = static_cast<int64_t>((answer->address - reinterpret_cast<uintptr_t>(x)) / sizeof(float));
            *client = clients == 1 || x_stride == 0 ? 0 : offset / x_stride;
            *index = offset - *client * x_stride;
            check(cudaMemsetAsync(own, 0xff, sizeof(Status), context->stream), "cudaMemsetAsync");
        }
        return before;
    });
}

fcm_status device::require_finite(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride,
                                  const float *of, int64_t of_stride, fcm_error *error) {
    constexpr const char *function = "fcm_require_finite";
    return on_device(function, context, error, [&] {
        const Check check = of == nullptr
                                ? ask(context, Question::about(function, "x", Sought::kNotFinite, clients, x, x_stride))
                                : ask(context, Question::about(function, "of", Sought::kComputed, clients, of, of_stride));
        look_for_not_finite(context, clients, n, x, x_stride, of, of_stride, check);
    });
}

}  // namespace fcm
