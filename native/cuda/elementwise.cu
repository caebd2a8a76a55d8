// The update rules that touch every element once: ema, compose_momentum, project, project_compose_momentum, vector_step,
// adaptive_step and triad. The arithmetic has the same precision and the same roundings as the CPU kernels (float where they use
// float, double where they use double, nothing fused), so results are bit-identical to the CPU.
#include <cmath>

#include "context.h"
#include "device.h"
#include "device_functions.h"
#include "sums.h"

namespace fcm {

struct Ema {
    float a;
    float keep;
    const float *x;
    int64_t x_stride;
    float *y;
    int64_t y_stride;

    template <int W>
    __device__ __forceinline__ void at(int64_t client, int64_t j) const {
        float fresh[W];
        load<W>(x + client * x_stride + j, fresh);
        float *to = y + client * y_stride + j;
        if (keep != 0.0f) {
            float old[W];
            load<W>(to, old);
#pragma unroll
            for (int i = 0; i < W; ++i) fresh[i] = a * fresh[i] + keep * old[i];
        }
        store<W>(to, fresh);
    }
};

// The contraction with H, which is optionally projected into the ball first.
struct Compose {
    int64_t n;
    int64_t d;
    float b;
    float keep;
    float *h;
    int64_t h_stride;
    const float *v;
    int64_t v_stride;
    float *m;
    int64_t m_stride;
    const double *norms;  // null without projection
    double radius;

    template <int W, bool Scaled>
    __device__ __forceinline__ void contract(int64_t client, int64_t j, float scale, float scale_again) const {
        float *block = h + client * h_stride + j;
        const float *weights = v + client * v_stride;
        float sum[W] = {};
        for (int64_t i = 0; i < d; ++i, block += n) {
            const float weight = weights[i];
            float term[W];
            load<W>(block, term);
            if constexpr (Scaled) {
#pragma unroll
                for (int w = 0; w < W; ++w) term[w] = scale_again * (scale * term[w]);
                store<W>(block, term);
            }
#pragma unroll
            for (int w = 0; w < W; ++w) sum[w] = i == 0 ? weight * term[w] : sum[w] + weight * term[w];
        }
        float *to = m + client * m_stride + j;
        float result[W];
        if (keep == 0.0f) {
#pragma unroll
            for (int w = 0; w < W; ++w) result[w] = b * sum[w];
        } else {
            load<W>(to, result);
#pragma unroll
            for (int w = 0; w < W; ++w) result[w] = keep * result[w] + b * sum[w];
        }
        store<W>(to, result);
    }

    struct Scale {
        bool outside;
        float scale;
        float again;
    };

    // A scale below the range of float is applied as two factors within the range.
    __device__ __forceinline__ Scale of(int64_t client) const {
        if (norms == nullptr || !(norms[client] > radius)) return {false, 1.0f, 1.0f};
        constexpr double kSmallest = 1e-30;
        const double scale = radius / norms[client];
        const double again = scale < kSmallest ? kSmallest : 1.0;
        return {true, static_cast<float>(scale / again), static_cast<float>(again)};
    }

    template <int W>
    __device__ __forceinline__ void at(const Scale &scale, int64_t client, int64_t j) const {
        if (scale.outside) {
            contract<W, true>(client, j, scale.scale, scale.again);
        } else {
            contract<W, false>(client, j, 1.0f, 1.0f);
        }
    }
};

struct Project {
    double radius;
    const double *norms;
    float *x;
    int64_t x_stride;

    // 1 for a client inside the ball, which is not written
    __device__ __forceinline__ double of(int64_t client) const {
        return norms[client] <= radius ? 1.0 : radius / norms[client];
    }

    template <int W>
    __device__ __forceinline__ void at(double factor, int64_t client, int64_t j) const {
        if (factor == 1.0) return;
        float value[W];
        load<W>(x + client * x_stride + j, value);
#pragma unroll
        for (int i = 0; i < W; ++i) value[i] = static_cast<float>(factor * static_cast<double>(value[i]));
        store<W>(x + client * x_stride + j, value);
    }
};

struct Step {
    double eta;
    const float *m;
    int64_t m_stride;
    float *w;
    int64_t w_stride;

    template <int W>
    __device__ __forceinline__ void at(int64_t client, int64_t j) const {
        step_along<W>(StepSize{true, eta}, m + client * m_stride + j, w + client * w_stride + j);
    }
};

struct AdaptiveStep {
    int32_t yogi;
    double beta1;
    double beta2;
    double epsilon;
    double eta;
    const float *delta;
    int64_t delta_stride;
    float *m;
    int64_t m_stride;
    float *v;
    int64_t v_stride;
    float *w;
    int64_t w_stride;

    template <int W>
    __device__ __forceinline__ void at(int64_t client, int64_t j) const {
        const double fresh1 = 1.0 - beta1;
        const double fresh2 = 1.0 - beta2;
        float change[W], first[W], second[W], weight[W];
        load<W>(delta + client * delta_stride + j, change);
        load<W>(m + client * m_stride + j, first);
        load<W>(v + client * v_stride + j, second);
        load<W>(w + client * w_stride + j, weight);
#pragma unroll
        for (int i = 0; i < W; ++i) {
            const double by = static_cast<double>(change[i]);
            const double old = static_cast<double>(second[i]);
            const double square = by * by;
            const double momentum = beta1 * static_cast<double>(first[i]) + fresh1 * by;
            double spread;
            if (yogi != 0) {
                const double sign = old > square ? 1.0 : old < square ? -1.0 : 0.0;
                spread = old - fresh2 * square * sign;
            } else {
                spread = beta2 * old + fresh2 * square;
            }
            first[i] = static_cast<float>(momentum);
            second[i] = static_cast<float>(spread);
            weight[i] = static_cast<float>(static_cast<double>(weight[i]) + eta * momentum / (sqrt(spread) + epsilon));
        }
        store<W>(m + client * m_stride + j, first);
        store<W>(v + client * v_stride + j, second);
        store<W>(w + client * w_stride + j, weight);
    }
};

struct Triad {
    float s;
    const float *b;
    const float *c;
    float *a;

    template <int W>
    __device__ __forceinline__ void at(int64_t, int64_t j) const {
        float left[W], right[W];
        load<W>(b + j, left);
        load<W>(c + j, right);
#pragma unroll
        for (int i = 0; i < W; ++i) left[i] = left[i] + s * right[i];
        store<W>(a + j, left);
    }
};

}  // namespace fcm

// Kernels have C linkage and no namespace, so that they can be found by these names in the output of nvcc.
using fcm::kThreads;

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_ema(int64_t clients, int64_t n, int32_t vectors, fcm::Ema op, const fcm::Status *status) {
    if (!fcm::stopped(status)) fcm::for_elements(clients, n, vectors != 0, op);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_compose(int64_t clients, int32_t vectors, fcm::Compose op, const fcm::Status *status) {
    if (!fcm::stopped(status)) fcm::for_scaled(clients, op.n, vectors != 0, op);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_project(int64_t clients, int64_t n, int32_t vectors, fcm::Project op, const fcm::Status *status) {
    if (!fcm::stopped(status)) fcm::for_scaled(clients, n, vectors != 0, op);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_step(int64_t clients, int64_t n, int32_t vectors, fcm::Step op, const fcm::Status *status) {
    if (!fcm::stopped(status)) fcm::for_elements(clients, n, vectors != 0, op);
}

// At least three blocks per multiprocessor: otherwise the compiler limits registers for more blocks and
// spills.
extern "C" __global__ void __launch_bounds__(kThreads, 3)
    fcm_k_adaptive_step(int64_t clients, int64_t n, int32_t vectors, fcm::AdaptiveStep op, const fcm::Status *status) {
    if (!fcm::stopped(status)) fcm::for_elements(clients, n, vectors != 0, op);
}

extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_triad(int64_t n, int32_t vectors, fcm::Triad op) {
    fcm::for_elements(1, n, vectors != 0, op);
}

// Finds the first client whose norm is not finite.
extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_check_norms(int64_t clients, const double *norms, fcm::Check check) {
    for (int64_t k = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; k < clients;
         k += static_cast<int64_t>(gridDim.x) * kThreads) {
        if (fcm::not_finite(norms[k])) check.found(norms + k);
    }
}

namespace fcm {
namespace {

unsigned chunk_blocks(int64_t clients, int64_t n) { return blocks_for(clients * parts_of(n, kChunk)); }

// If the norm of any client is not finite, all clients stay unchanged: the kernel launched next tests the status.
void check_norms(const char *function, fcm_context *context, int64_t clients, const double *norms) {
    LAUNCH(fcm_k_check_norms, blocks_for(parts_of(clients, kThreads)), kThreads, 0, context->stream, clients, norms,
           ask(context, Question::about(function, "norms", Sought::kNorm, clients, norms, 1)));
    launched("fcm_k_check_norms", clients, 1);
}

bool compose_vectors(const Compose &op, int64_t clients) {
    return vector_aligned(op.h, clients, op.h_stride) && vector_aligned(op.m, clients, op.m_stride) &&
           (op.d == 1 || op.n % 4 == 0);
}

}  // namespace

fcm_status device::ema(fcm_context *context, int64_t clients, int64_t n, double a, const float *x, int64_t x_stride,
                       float *y, int64_t y_stride, fcm_error *error) {
    return on_device("fcm_ema", context, error, [&] {
        const Ema op{static_cast<float>(a), static_cast<float>(1.0 - a), x, x_stride, y, y_stride};
        const bool vectors = vector_aligned(x, clients, x_stride) && vector_aligned(y, clients, y_stride);
        LAUNCH(fcm_k_ema, chunk_blocks(clients, n), kThreads, 0, context->stream, clients, n, vectors, op,
               context->status);
        launched("fcm_k_ema", clients, n);
    });
}

fcm_status device::compose_momentum(fcm_context *context, int64_t clients, int64_t n, int64_t d, double b, const float *h,
                                    int64_t h_stride, const float *v, int64_t v_stride, float *m, int64_t m_stride,
                                    fcm_error *error) {
    return on_device("fcm_compose_momentum", context, error, [&] {
        // Without norms, h is only read.
        const Compose op{n, d, static_cast<float>(b), static_cast<float>(1.0 - b), const_cast<float *>(h), h_stride, v,
                         v_stride, m, m_stride, nullptr, 0.0};
        LAUNCH(fcm_k_compose, chunk_blocks(clients, n), kThreads, 0, context->stream, clients, compose_vectors(op, clients),
               op, context->status);
        launched("fcm_k_compose", clients, n);
    });
}

fcm_status device::project_compose_momentum(fcm_context *context, int64_t clients, int64_t n, int64_t d, double radius,
                                            const double *norms, double b, float *h, int64_t h_stride, const float *v,
                                            int64_t v_stride, float *m, int64_t m_stride, fcm_error *error) {
    constexpr const char *function = "fcm_project_compose_momentum";
    return on_device(function, context, error, [&] {
        check_norms(function, context, clients, norms);
        const Compose op{n, d, static_cast<float>(b), static_cast<float>(1.0 - b), h, h_stride, v, v_stride, m, m_stride,
                         norms, radius};
        LAUNCH(fcm_k_compose, chunk_blocks(clients, n), kThreads, 0, context->stream, clients, compose_vectors(op, clients),
               op, context->status);
        launched("fcm_k_compose", clients, n);
    });
}

fcm_status device::project(fcm_context *context, int64_t clients, int64_t n, double radius, const double *norms, float *x,
                           int64_t x_stride, fcm_error *error) {
    constexpr const char *function = "fcm_project";
    return on_device(function, context, error, [&] {
        check_norms(function, context, clients, norms);
        LAUNCH(fcm_k_project, chunk_blocks(clients, n), kThreads, 0, context->stream, clients, n,
               vector_aligned(x, clients, x_stride), Project{radius, norms, x, x_stride}, context->status);
        launched("fcm_k_project", clients, n);
    });
}

fcm_status device::vector_step(fcm_context *context, int64_t clients, int64_t n, double eta, const float *m,
                               int64_t m_stride, float *w, int64_t w_stride, fcm_error *error) {
    return on_device("fcm_vector_step", context, error, [&] {
        const bool vectors = vector_aligned(m, clients, m_stride) && vector_aligned(w, clients, w_stride);
        LAUNCH(fcm_k_step, chunk_blocks(clients, n), kThreads, 0, context->stream, clients, n, vectors,
               Step{eta, m, m_stride, w, w_stride}, context->status);
        launched("fcm_k_step", clients, n);
    });
}

fcm_status device::adaptive_step(fcm_context *context, int64_t clients, int64_t n, int32_t rule, double beta1, double beta2,
                                 double epsilon, double eta, const float *delta, int64_t delta_stride, float *m,
                                 int64_t m_stride, float *v, int64_t v_stride, float *w, int64_t w_stride,
                                 fcm_error *error) {
    return on_device("fcm_adaptive_step", context, error, [&] {
        const AdaptiveStep op{rule == FCM_YOGI, beta1, beta2, epsilon, eta, delta, delta_stride, m, m_stride, v, v_stride, w,
                              w_stride};
        const bool vectors = vector_aligned(delta, clients, delta_stride) && vector_aligned(m, clients, m_stride) &&
                             vector_aligned(v, clients, v_stride) && vector_aligned(w, clients, w_stride);
        LAUNCH(fcm_k_adaptive_step, chunk_blocks(clients, n), kThreads, 0, context->stream, clients, n, vectors, op,
               context->status);
        launched("fcm_k_adaptive_step", clients, n);
    });
}

// A GPU writes whole sectors to memory anyway, so non_temporal has no effect here.
fcm_status device::triad(fcm_context *context, int64_t n, float s, const float *b, const float *c, float *a, int32_t,
                         fcm_error *error) {
    return on_device("fcm_triad", context, error, [&] {
        const bool vectors = vector_aligned(a, 1, n) && vector_aligned(b, 1, n) && vector_aligned(c, 1, n);
        LAUNCH(fcm_k_triad, chunk_blocks(1, n), kThreads, 0, context->stream, n, vectors, Triad{s, b, c, a});
        launched("fcm_k_triad", 1, n);
    });
}

}  // namespace fcm
