// What orthogonal factors from eigenvectors need besides vendor libraries: conversions, the choice of directions, and inverse roots.
#include "context.h"
#include "device.h"
#include "device_functions.h"

namespace fcm {

// One element per thread at a time: a vector of floats is half a vector of doubles.
template <class From, class To>
struct Convert {
    const From *x;
    int64_t x_stride;
    To *y;
    int64_t y_stride;

    template <int W>
    __device__ __forceinline__ void at(int64_t client, int64_t j) const {
        static_assert(W == 1, "not vectors");
        y[client * y_stride + j] = static_cast<To>(x[client * x_stride + j]);
    }
};

}  // namespace fcm

using fcm::kThreads;
using fcm::kWarps;

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_widen(int64_t clients, int64_t n, fcm::Convert<float, double> op, const fcm::Status *status) {
    if (!fcm::stopped(status)) fcm::for_elements<1>(clients, n, false, op);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_narrow(int64_t clients, int64_t n, fcm::Convert<double, float> op, const fcm::Status *status) {
    if (!fcm::stopped(status)) fcm::for_elements<1>(clients, n, false, op);
}

// Finds the first client whose eigenvectors did not converge.
extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_check_converged(int64_t clients, const int32_t *info, fcm::Check check) {
    for (int64_t k = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; k < clients;
         k += static_cast<int64_t>(gridDim.x) * kThreads) {
        if (info[k] != 0) check.found(info + k);
    }
}

// A block serves an eigenvector; that of the first one counts what is kept.
extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_keep_directions(int64_t clients, int64_t n, double tolerance, const double *values, double *vectors, int64_t *kept,
                          const fcm::Status *status) {
    SHARED(double, partial, [kWarps]);
    if (fcm::stopped(status)) return;
    for (int64_t task = blockIdx.x; task < clients * n; task += gridDim.x) {
        const int64_t client = task / n;
        const int64_t i = task - client * n;
        const double *own = values + client * n;
        const double least = tolerance * tolerance * own[n - 1];
        if (!(own[i] > least)) {
            for (int64_t j = threadIdx.x; j < n; j += kThreads) vectors[task * n + j] = 0.0;
        }
        if (i > 0) continue;
        double count = 0.0;
        for (int64_t j = threadIdx.x; j < n; j += kThreads) count += own[j] > least ? 1.0 : 0.0;
        const double total = fcm::block_sum(count, partial);
        if (threadIdx.x == 0) kept[client] = static_cast<int64_t>(total);
    }
}

// A block serves a row, right of the diagonal, which all of them read. At least three blocks per multiprocessor: otherwise the
// compiler limits registers for more blocks and spills.
extern "C" __global__ void __launch_bounds__(kThreads, 3)
    fcm_k_inverse_roots(int64_t clients, int64_t n, double *gram, const fcm::Status *status) {
    if (fcm::stopped(status)) return;
    for (int64_t task = blockIdx.x; task < clients * n; task += gridDim.x) {
        const int64_t client = task / n;
        const int64_t i = task - client * n;
        double *own = gram + client * n * n;
        const double root = sqrt(own[i * n + i]);
        for (int64_t j = i + 1 + threadIdx.x; j < n; j += kThreads) {
            const double other = sqrt(own[j * n + j]);
            const double here = own[i * n + j];
            own[i * n + j] = root > 0.0 && other > 0.0 ? -here / (root * other * (root + other)) : 0.0;
        }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_inverse_diagonals(int64_t clients, int64_t n, double *gram, const fcm::Status *status) {
    if (fcm::stopped(status)) return;
    for (int64_t task = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; task < clients * n;
         task += static_cast<int64_t>(gridDim.x) * kThreads) {
        double *here = gram + task * n + task % n;
        *here = *here > 0.0 ? 1.0 / sqrt(*here) : 0.0;
    }
}

namespace fcm {

fcm_status device::widen(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride, double *y,
                         fcm_error *error) {
    return on_device("fcm_widen", context, error, [&] {
        LAUNCH(fcm_k_widen, blocks_for(clients * parts_of(n, kThreads)), kThreads, 0, context->stream, clients, n,
               Convert<float, double>{x, x_stride, y, n}, context->status);
        launched("fcm_k_widen", clients, n);
    });
}

fcm_status device::narrow(fcm_context *context, int64_t clients, int64_t n, const double *x, float *y, int64_t y_stride,
                          fcm_error *error) {
    return on_device("fcm_narrow", context, error, [&] {
        LAUNCH(fcm_k_narrow, blocks_for(clients * parts_of(n, kThreads)), kThreads, 0, context->stream, clients, n,
               Convert<double, float>{x, n, y, y_stride}, context->status);
        launched("fcm_k_narrow", clients, n);
    });
}

fcm_status device::keep_directions(fcm_context *context, int64_t clients, int64_t n, double tolerance, const int32_t *info,
                                   const double *values, double *vectors, int64_t *kept, fcm_error *error) {
    constexpr const char *function = "fcm_keep_directions";
    return on_device(function, context, error, [&] {
        LAUNCH(fcm_k_check_converged, blocks_for(parts_of(clients, kThreads)), kThreads, 0, context->stream, clients, info,
               ask(context, Question::about(function, "info", Sought::kConverged, clients, info, 1)));
        launched("fcm_k_check_converged", clients, 1);
        LAUNCH(fcm_k_keep_directions, blocks_for(clients * n), kThreads, 0, context->stream, clients, n, tolerance, values,
               vectors, kept, context->status);
        launched("fcm_k_keep_directions", clients, n * n);
    });
}

fcm_status device::inverse_roots(fcm_context *context, int64_t clients, int64_t n, double *gram, fcm_error *error) {
    return on_device("fcm_inverse_roots", context, error, [&] {
        LAUNCH(fcm_k_inverse_roots, blocks_for(clients * n), kThreads, 0, context->stream, clients, n, gram, context->status);
        launched("fcm_k_inverse_roots", clients, n * n);
        LAUNCH(fcm_k_inverse_diagonals, blocks_for(parts_of(clients * n, kThreads)), kThreads, 0, context->stream, clients, n,
               gram, context->status);
        launched("fcm_k_inverse_diagonals", clients, n);
    });
}

}  // namespace fcm
