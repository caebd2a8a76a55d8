// The update rules that touch every element once. The arithmetic is that of the CPU's kernels, rounding by rounding, so
// that both give the same bits: floats where they have floats, doubles where they have doubles, nothing fused.
#include <cmath>

#include "arguments.h"
#include "checks.h"
#include "context.h"
#include "device.h"

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

// The contraction, of H as it is or of H brought into the ball first.
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
    const double *norms;  // null where nothing is projected
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

    // A scale below the range of float is applied in two factors that are not.
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

// The weights of a few clients travel with the launch; those of many are put where `listed` says.
constexpr int64_t kFewWeights = 256;
struct Weights {
    const double *listed;  // null: those in `few`, or all 1 when `uniform`
    int32_t uniform;
    double few[kFewWeights];
};

struct Average {
    int64_t clients;
    double total;
    float *x;
    int64_t x_stride;
    const Weights *weights;

    template <int W>
    __device__ __forceinline__ void at(int64_t, int64_t j) const {
        double sum[W];
#pragma unroll
        for (int i = 0; i < W; ++i) sum[i] = 0.0;
        for (int64_t k = 0; k < clients; ++k) {
            const double weight = weights->uniform != 0         ? 1.0
                                  : weights->listed != nullptr ? weights->listed[k]
                                                               : weights->few[k];
            if (weight == 0.0) continue;
            float value[W];
            load<W>(x + k * x_stride + j, value);
#pragma unroll
            for (int i = 0; i < W; ++i) sum[i] += weight * static_cast<double>(value[i]);
        }
        float mean[W];
#pragma unroll
        for (int i = 0; i < W; ++i) mean[i] = static_cast<float>(sum[i] / total);
        for (int64_t k = 0; k < clients; ++k) store<W>(x + k * x_stride + j, mean);
    }
};

}  // namespace fcm

// Kernels have C names without a namespace, so that what nvcc makes of them can be found by these names.
using fcm::kNothing;
using fcm::kThreads;

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_ema(int64_t clients, int64_t n, int32_t vectors, fcm::Ema op) {
    fcm::for_elements(clients, n, vectors != 0, op);
}

extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_compose(int64_t clients, int32_t vectors, fcm::Compose op) {
    fcm::for_scaled(clients, op.n, vectors != 0, op);
}

// The same, unless a norm was found that is no number.
extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_project_compose(int64_t clients, int32_t vectors, fcm::Compose op, const fcm::Findings *findings) {
    if (findings->bad == kNothing) fcm::for_scaled(clients, op.n, vectors != 0, op);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_project(int64_t clients, int64_t n, int32_t vectors, fcm::Project op, const fcm::Findings *findings) {
    if (findings->bad == kNothing) fcm::for_scaled(clients, n, vectors != 0, op);
}

// Three blocks a multiprocessor, here and below: left alone, the compiler saves registers for more and spills them.
extern "C" __global__ void __launch_bounds__(kThreads, 3)
    fcm_k_adaptive_step(int64_t clients, int64_t n, int32_t vectors, fcm::AdaptiveStep op) {
    fcm::for_elements(clients, n, vectors != 0, op);
}

extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_triad(int64_t n, int32_t vectors, fcm::Triad op) {
    fcm::for_elements(1, n, vectors != 0, op);
}

extern "C" __global__ void __launch_bounds__(kThreads, 3)
    fcm_k_average(int64_t n, int32_t vectors, int64_t clients, double total, float *x, int64_t x_stride,
                  FCM_GRID_CONSTANT const fcm::Weights weights) {
    fcm::for_elements(1, n, vectors != 0, fcm::Average{clients, total, x, x_stride, &weights});
}

// The first client whose norm is no number.
extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_check_norms(int64_t clients, const double *norms, fcm::Findings *findings) {
    for (int64_t k = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; k < clients;
         k += static_cast<int64_t>(gridDim.x) * kThreads) {
        if (fcm::not_finite(norms[k])) atomicMin(&findings->bad, static_cast<unsigned long long>(k));
    }
}

namespace fcm {
namespace {

unsigned chunk_blocks(int64_t clients, int64_t n) { return blocks_for(clients * parts_of(n, kChunk)); }

// Clients that may not be projected leave everybody as they were; the kernel that comes next looks at what is found here.
void check_norms(const fcm_context *context, int64_t clients, const double *norms) {
    forget(context);
    LAUNCH(fcm_k_check_norms, blocks_for(parts_of(clients, kThreads)), kThreads, 0, context->stream, clients, norms,
           context->findings);
    launched("fcm_k_check_norms", clients, 1);
}

fcm_status say_bad_norm(const char *function, const fcm_context *context, const double *norms, fcm_error *error) {
    const Findings findings = read_findings(context);
    if (findings.bad == kNothing) return FCM_OK;
    const auto client = static_cast<int64_t>(findings.bad);
    double norm = 0.0;
    check(cudaMemcpyAsync(&norm, norms + client, sizeof norm, cudaMemcpyDeviceToHost, context->stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(context->stream), "cudaStreamSynchronize");
    return fail(error, FCM_NOT_FINITE, {client, -1, -1}, "%s: the norm of client %" PRId64 " is %g", function, client, norm);
}

bool compose_vectors(const Compose &op, int64_t clients) {
    return vector_aligned(op.h, clients, op.h_stride) && vector_aligned(op.m, clients, op.m_stride) &&
           (op.d == 1 || op.n % 4 == 0);
}

}  // namespace
}  // namespace fcm

using fcm::Arguments;
using fcm::guarded;
using fcm::launched;
using fcm::on_device;
using fcm::vector_aligned;

fcm_status fcm_ema(fcm_context *context, int64_t clients, int64_t n, double a, const float *x, int64_t x_stride, float *y,
                   int64_t y_stride, fcm_error *error) {
    constexpr const char *function = "fcm_ema";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).fraction("a", a);
        arguments.read("x", x, clients, n, x_stride).write("y", y, clients, n, y_stride).disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        return on_device(function, context, error, [&] {
            const fcm::Ema op{static_cast<float>(a), static_cast<float>(1.0 - a), x, x_stride, y, y_stride};
            const bool vectors = vector_aligned(x, clients, x_stride) && vector_aligned(y, clients, y_stride);
            LAUNCH(fcm_k_ema, fcm::chunk_blocks(clients, n), kThreads, 0, context->stream, clients, n, vectors, op);
            launched("fcm_k_ema", clients, n);
            return fcm_status{FCM_OK};
        });
    });
}

fcm_status fcm_compose_momentum(fcm_context *context, int64_t clients, int64_t n, int64_t d, double b, const float *h,
                                int64_t h_stride, const float *v, int64_t v_stride, float *m, int64_t m_stride,
                                fcm_error *error) {
    constexpr const char *function = "fcm_compose_momentum";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).fraction("b", b);
        const int64_t length_h = fcm::jacobian_length(arguments, n, d);
        arguments.read("h", h, clients, length_h, h_stride)
            .read("v", v, n > 0 ? clients : 0, d, v_stride)
            .write("m", m, clients, n, m_stride)
            .disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        return on_device(function, context, error, [&] {
            // Without norms h is only read.
            const fcm::Compose op{n, d, static_cast<float>(b), static_cast<float>(1.0 - b), const_cast<float *>(h), h_stride,
                                  v, v_stride, m, m_stride, nullptr, 0.0};
            LAUNCH(fcm_k_compose, fcm::chunk_blocks(clients, n), kThreads, 0, context->stream, clients,
                   fcm::compose_vectors(op, clients), op);
            launched("fcm_k_compose", clients, n);
            return fcm_status{FCM_OK};
        });
    });
}

fcm_status fcm_project_compose_momentum(fcm_context *context, int64_t clients, int64_t n, int64_t d, double radius,
                                        const double *norms, double b, float *h, int64_t h_stride, const float *v,
                                        int64_t v_stride, float *m, int64_t m_stride, fcm_error *error) {
    constexpr const char *function = "fcm_project_compose_momentum";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).fraction("b", b);
        const int64_t length_h = fcm::jacobian_length(arguments, n, d);
        arguments.write("h", h, clients, length_h, h_stride)
            .read("v", v, n > 0 ? clients : 0, d, v_stride)
            .write("m", m, clients, n, m_stride);
        fcm::projection(arguments, clients, n, radius, norms).disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        return on_device(function, context, error, [&] {
            fcm::check_norms(context, clients, norms);
            const fcm::Compose op{n, d, static_cast<float>(b), static_cast<float>(1.0 - b), h, h_stride, v, v_stride, m,
                                  m_stride, norms, radius};
            LAUNCH(fcm_k_project_compose, fcm::chunk_blocks(clients, n), kThreads, 0, context->stream, clients,
                   fcm::compose_vectors(op, clients), op, context->findings);
            launched("fcm_k_project_compose", clients, n);
            return fcm::say_bad_norm(function, context, norms, error);
        });
    });
}

fcm_status fcm_project(fcm_context *context, int64_t clients, int64_t n, double radius, const double *norms, float *x,
                       int64_t x_stride, fcm_error *error) {
    constexpr const char *function = "fcm_project";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).write("x", x, clients, n, x_stride);
        fcm::projection(arguments, clients, n, radius, norms).disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        return on_device(function, context, error, [&] {
            fcm::check_norms(context, clients, norms);
            LAUNCH(fcm_k_project, fcm::chunk_blocks(clients, n), kThreads, 0, context->stream, clients, n,
                   vector_aligned(x, clients, x_stride), fcm::Project{radius, norms, x, x_stride}, context->findings);
            launched("fcm_k_project", clients, n);
            return fcm::say_bad_norm(function, context, norms, error);
        });
    });
}

fcm_status fcm_adaptive_step(fcm_context *context, int64_t clients, int64_t n, int32_t rule, double beta1, double beta2,
                             double epsilon, double eta, const float *delta, int64_t delta_stride, float *m, int64_t m_stride,
                             float *v, int64_t v_stride, float *w, int64_t w_stride, fcm_error *error) {
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
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        return on_device(function, context, error, [&] {
            const fcm::AdaptiveStep op{rule == FCM_YOGI, beta1, beta2, epsilon,  eta, delta,   delta_stride, m,
                                       m_stride,         v,     v_stride, w, w_stride};
            const bool vectors = vector_aligned(delta, clients, delta_stride) && vector_aligned(m, clients, m_stride) &&
                                 vector_aligned(v, clients, v_stride) && vector_aligned(w, clients, w_stride);
            LAUNCH(fcm_k_adaptive_step, fcm::chunk_blocks(clients, n), kThreads, 0, context->stream, clients, n,
                   vectors, op);
            launched("fcm_k_adaptive_step", clients, n);
            return fcm_status{FCM_OK};
        });
    });
}

fcm_status fcm_average(fcm_context *context, int64_t clients, int64_t n, const double *weights, float *x, int64_t x_stride,
                       fcm_error *error) {
    constexpr const char *function = "fcm_average";
    return guarded(function, error, [&] {
        constexpr int64_t kMostWeights = fcm::kScratchBytes / fcm::kDouble;
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).write("x", x, clients, n, x_stride);
        if (weights != nullptr) arguments.batch("weights", weights, 1, clients, clients, fcm::kDouble, false);
        arguments.disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        auto total = static_cast<double>(clients);
        fcm::Weights carried{};
        carried.uniform = weights == nullptr;
        if (weights != nullptr) {
            total = 0.0;
            for (int64_t k = 0; k < clients; ++k) {
                arguments.require(std::isfinite(weights[k]) && weights[k] >= 0.0,
                                  "weight %" PRId64 " is %g, not a number >= 0", k, weights[k]);
                total += weights[k];
                if (clients <= fcm::kFewWeights) carried.few[k] = weights[k];
            }
            arguments.require(total > 0.0 && std::isfinite(total), "the weights sum to %g", total);
            if (!arguments.ok()) return arguments.status();
            if (clients > kMostWeights) {
                return fcm::fail(error, FCM_UNSUPPORTED, {}, "%s: %" PRId64 " weights; a GPU takes %" PRId64 " at most",
                                 function, clients, kMostWeights);
            }
        }
        return on_device(function, context, error, [&] {
            if (weights != nullptr && clients > fcm::kFewWeights) {
                // From pageable memory: the call returns when the weights have been read, so they are the caller's again.
                fcm::check(cudaMemcpyAsync(context->scratch, weights, static_cast<size_t>(clients) * sizeof(double),
                                           cudaMemcpyHostToDevice, context->stream),
                           "cudaMemcpyAsync", clients * fcm::kDouble);
                carried.listed = static_cast<const double *>(context->scratch);
            }
            LAUNCH(fcm_k_average, fcm::chunk_blocks(1, n), kThreads, 0, context->stream, n,
                   vector_aligned(x, clients, x_stride), clients, total, x, x_stride, carried);
            launched("fcm_k_average", clients, n);
            return fcm_status{FCM_OK};
        });
    });
}

// A GPU writes whole sectors past its caches anyway, so non_temporal changes nothing here.
fcm_status fcm_triad(fcm_context *context, int64_t n, float s, const float *b, const float *c, float *a, int32_t,
                     fcm_error *error) {
    constexpr const char *function = "fcm_triad";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(1, n);
        arguments.read("b", b, 1, n, n).read("c", c, 1, n, n).write("a", a, 1, n, n).disjoint();
        if (!arguments.ok() || n == 0) return arguments.status();
        return on_device(function, context, error, [&] {
            const bool vectors = vector_aligned(a, 1, n) && vector_aligned(b, 1, n) && vector_aligned(c, 1, n);
            LAUNCH(fcm_k_triad, fcm::chunk_blocks(1, n), kThreads, 0, context->stream, n, vectors,
                   fcm::Triad{s, b, c, a});
            launched("fcm_k_triad", 1, n);
            return fcm_status{FCM_OK};
        });
    });
}
