// Norms, and the rules that need one. Sums are in double and in one order, whatever the grid and the alignment: each
// client is cut into pieces, a piece is a block's, and element j of a piece is thread (j / 4) mod kThreads's.
#include <cmath>

#include "arguments.h"
#include "checks.h"
#include "context.h"
#include "device.h"

namespace fcm {

// A piece's sum takes one place of the workspace. Small enough that a vector of a million occupies every multiprocessor.
constexpr int64_t kSumPiece = 4 * kChunk;

struct Square {
    const float *x;
    int64_t stride;

    template <int W>
    __device__ __forceinline__ void at(int64_t client, int64_t j, float (&value)[W]) const {
        load<W>(x + client * stride + j, value);
    }
};

struct Storm {
    float keep;
    const float *g_new;
    int64_t g_new_stride;
    const float *g_old;
    int64_t g_old_stride;
    float *h;
    int64_t h_stride;

    template <int W>
    __device__ __forceinline__ void at(int64_t client, int64_t j, float (&value)[W]) const {
        float fresh[W], old[W];
        load<W>(g_new + client * g_new_stride + j, fresh);
        load<W>(g_old + client * g_old_stride + j, old);
        float *to = h + client * h_stride + j;
        load<W>(to, value);
#pragma unroll
        for (int i = 0; i < W; ++i) value[i] = fresh[i] + keep * (value[i] - old[i]);
        store<W>(to, value);
    }
};

// The square of a float is exact in double, so fusing it into the sum rounds as often as not fusing it.
template <int W>
__device__ __forceinline__ double add_squares(double sum, const float (&value)[W]) {
#pragma unroll
    for (int i = 0; i < W; ++i) sum = fma(static_cast<double>(value[i]), static_cast<double>(value[i]), sum);
    return sum;
}

// sums[client * pieces + piece] = the squares of what op.at gives for the piece's elements.
template <class Op>
__device__ __forceinline__ void sum_pieces(int64_t clients, int64_t n, bool vectors, const Op &op, double *sums,
                                           double *partial) {
    const int64_t pieces = parts_of(n, kSumPiece);
    for (int64_t task = blockIdx.x; task < clients * pieces; task += gridDim.x) {
        const int64_t client = task / pieces;
        const int64_t start = (task - client * pieces) * kSumPiece;
        double sum = 0.0;
        for (int64_t chunk = start; chunk < start + kSumPiece && chunk < n; chunk += kChunk) {
            const int64_t first = chunk + 4 * static_cast<int64_t>(threadIdx.x);
            if (vectors && first + 4 <= n) {
                float value[4];
                op.template at<4>(client, first, value);
                sum = add_squares<4>(sum, value);
            } else {
                for (int64_t j = first; j < first + 4 && j < n; ++j) {
                    float value[1];
                    op.template at<1>(client, j, value);
                    sum = add_squares<1>(sum, value);
                }
            }
        }
        const double total = block_sum(sum, partial);
        if (threadIdx.x == 0) sums[task] = total;
    }
}

// What a factor does to m: a step of w, or x scaled.
struct Step {
    int32_t normalized;  // else the factor is eta
    double eta;
    const float *m;
    int64_t m_stride;
    float *w;
    int64_t w_stride;
    const double *norms;
    int64_t norm_stride;

    struct By {
        bool any;  // a zero m makes no step
        double step;
    };
    __device__ __forceinline__ By of(int64_t client) const {
        if (normalized == 0) return {true, eta};
        const double norm = norms[client * norm_stride];
        if (norm == 0.0) return {false, 0.0};
        return {true, eta / norm};
    }

    template <int W>
    __device__ __forceinline__ void at(const By &size, int64_t client, int64_t j) const {
        if (!size.any) return;
        float by[W], value[W];
        load<W>(m + client * m_stride + j, by);
        float *to = w + client * w_stride + j;
        load<W>(to, value);
#pragma unroll
        for (int i = 0; i < W; ++i) value[i] -= static_cast<float>(size.step * static_cast<double>(by[i]));
        store<W>(to, value);
    }
};

struct Normalize {
    double divisor;
    const float *x;
    int64_t x_stride;
    float *y;
    int64_t y_stride;
    const double *norms;
    int64_t norm_stride;

    __device__ __forceinline__ double of(int64_t client) const {
        const double norm = norms[client * norm_stride];
        return norm == 0.0 ? 0.0 : 1.0 / (norm * divisor);
    }

    template <int W>
    __device__ __forceinline__ void at(double factor, int64_t client, int64_t j) const {
        float value[W];
        load<W>(x + client * x_stride + j, value);
#pragma unroll
        for (int i = 0; i < W; ++i) value[i] = static_cast<float>(factor * static_cast<double>(value[i]));
        store<W>(y + client * y_stride + j, value);
    }
};

}  // namespace fcm

using fcm::kNothing;
using fcm::kThreads;
using fcm::kWarps;

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_squares(int64_t clients, int64_t n, int32_t vectors, fcm::Square op, double *sums) {
    SHARED(double, partial, [kWarps]);
    fcm::sum_pieces(clients, n, vectors != 0, op, sums, partial);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_storm(int64_t clients, int64_t n, int32_t vectors, fcm::Storm op, double *sums) {
    SHARED(double, partial, [kWarps]);
    fcm::sum_pieces(clients, n, vectors != 0, op, sums, partial);
}

// norms[client * norm_stride] from the client's sums, which may lie there; `findings`, if given, learns of the first that is
// no number.
extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_norms(int64_t clients, int64_t pieces, const double *sums, double *norms, int64_t norm_stride,
                fcm::Findings *findings) {
    SHARED(double, partial, [kWarps]);
    for (int64_t client = blockIdx.x; client < clients; client += gridDim.x) {
        double sum = 0.0;
        for (int64_t i = threadIdx.x; i < pieces; i += kThreads) sum += sums[client * pieces + i];
        const double total = fcm::block_sum(sum, partial);
        if (threadIdx.x == 0) {
            const double norm = sqrt(total);
            norms[client * norm_stride] = norm;
            if (findings != nullptr && fcm::not_finite(norm)) {
                atomicMin(&findings->bad, static_cast<unsigned long long>(client));
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_step(int64_t clients, int64_t n, int32_t vectors, fcm::Step op, const fcm::Findings *findings) {
    if (findings == nullptr || findings->bad == kNothing) fcm::for_scaled(clients, n, vectors != 0, op);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_normalize(int64_t clients, int64_t n, int32_t vectors, fcm::Normalize op, const fcm::Findings *findings) {
    if (findings->bad == kNothing) fcm::for_scaled(clients, n, vectors != 0, op);
}

namespace fcm {
namespace {

int64_t pieces_of(int64_t n) { return parts_of(n, kSumPiece); }

// Room for one sum a piece.
int64_t sum_bytes(Arguments &arguments, int64_t clients, int64_t n) {
    int64_t bytes = 0;
    if (arguments.ok()) {
        arguments.require(product(clients, pieces_of(n), &bytes) && product(bytes, kDouble, &bytes),
                          "the workspace does not fit int64");
    }
    return arguments.ok() ? bytes : 0;
}

unsigned piece_blocks(int64_t clients, int64_t n) { return blocks_for(clients * pieces_of(n)); }
unsigned chunk_blocks(int64_t clients, int64_t n) { return blocks_for(clients * parts_of(n, kChunk)); }

void norms_from_sums(const fcm_context *context, int64_t clients, int64_t n, const double *sums, double *norms,
                     int64_t norm_stride, Findings *findings) {
    LAUNCH(fcm_k_norms, blocks_for(clients), kThreads, 0, context->stream, clients, pieces_of(n), sums, norms, norm_stride,
           findings);
    launched("fcm_k_norms", clients, pieces_of(n));
}

void sum_squares(const fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t stride, double *sums) {
    LAUNCH(fcm_k_squares, piece_blocks(clients, n), kThreads, 0, context->stream, clients, n,
           vector_aligned(x, clients, stride), Square{x, stride}, sums);
    launched("fcm_k_squares", clients, n);
}

// Leaves client k's norm in its first sum, sums[k * pieces_of(n)], and the first that is no number in the findings.
void finite_norms(const fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t stride, double *sums) {
    forget(context);
    sum_squares(context, clients, n, x, stride, sums);
    norms_from_sums(context, clients, n, sums, sums, pieces_of(n), context->findings);
}

// Waits for what used those norms, and if one was no number says where what is called `name` is not finite.
fcm_status say_not_finite(const char *function, const char *name, const fcm_context *context, int64_t n, const float *x,
                          int64_t stride, fcm_error *error) {
    const Findings findings = read_findings(context);
    if (findings.bad == kNothing) return FCM_OK;
    const auto client = static_cast<int64_t>(findings.bad);
    const Place place = first_not_finite(context, 1, n, x + client * stride, n);
    return fail_not_finite(function, name, {client, -1, place.index}, error);
}

}  // namespace
}  // namespace fcm

using fcm::Arguments;
using fcm::guarded;
using fcm::launched;
using fcm::on_device;
using fcm::vector_aligned;

fcm_status fcm_sum_workspace(const fcm_context *context, int64_t clients, int64_t n, int64_t *bytes, fcm_error *error) {
    Arguments arguments("fcm_sum_workspace", error);
    arguments.context(context).sizes(clients, n).require(bytes != nullptr, "the place for the answer is null");
    const int64_t needed = fcm::sum_bytes(arguments, clients, n);
    if (arguments.ok()) *bytes = needed;
    return arguments.status();
}

fcm_status fcm_storm(fcm_context *context, int64_t clients, int64_t n, double g, const float *g_new, int64_t g_new_stride,
                     const float *g_old, int64_t g_old_stride, float *h, int64_t h_stride, double *norms, void *workspace,
                     int64_t workspace_bytes, fcm_error *error) {
    constexpr const char *function = "fcm_storm";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).fraction("g", g);
        arguments.read("g_new", g_new, clients, n, g_new_stride)
            .read("g_old", g_old, clients, n, g_old_stride)
            .write("h", h, clients, n, h_stride)
            .batch("norms", norms, 1, n > 0 ? clients : 0, clients, fcm::kDouble, true);
        const int64_t needed = fcm::sum_bytes(arguments, clients, n);
        arguments.workspace(workspace, workspace_bytes, needed).disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        return on_device(function, context, error, [&] {
            auto *sums = static_cast<double *>(workspace);
            const bool vectors = vector_aligned(g_new, clients, g_new_stride) &&
                                 vector_aligned(g_old, clients, g_old_stride) && vector_aligned(h, clients, h_stride);
            LAUNCH(fcm_k_storm, fcm::piece_blocks(clients, n), kThreads, 0, context->stream, clients, n, vectors,
                   fcm::Storm{static_cast<float>(1.0 - g), g_new, g_new_stride, g_old, g_old_stride, h, h_stride}, sums);
            launched("fcm_k_storm", clients, n);
            fcm::norms_from_sums(context, clients, n, sums, norms, 1, nullptr);
            return fcm_status{FCM_OK};
        });
    });
}

fcm_status fcm_norm(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride, double *norms,
                    void *workspace, int64_t workspace_bytes, fcm_error *error) {
    constexpr const char *function = "fcm_norm";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n).read("x", x, clients, n, x_stride);
        arguments.batch("norms", norms, 1, n > 0 ? clients : 0, clients, fcm::kDouble, true);
        const int64_t needed = fcm::sum_bytes(arguments, clients, n);
        arguments.workspace(workspace, workspace_bytes, needed).disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        return on_device(function, context, error, [&] {
            auto *sums = static_cast<double *>(workspace);
            fcm::sum_squares(context, clients, n, x, x_stride, sums);
            fcm::norms_from_sums(context, clients, n, sums, norms, 1, nullptr);
            return fcm_status{FCM_OK};
        });
    });
}

fcm_status fcm_vector_step(fcm_context *context, int64_t clients, int64_t n, int32_t rule, double eta, const float *m,
                           int64_t m_stride, float *w, int64_t w_stride, void *workspace, int64_t workspace_bytes,
                           fcm_error *error) {
    constexpr const char *function = "fcm_vector_step";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n);
        arguments.require(rule == FCM_STEP_PLAIN || rule == FCM_STEP_NORMALIZED, "there is no step rule %d", rule)
            .require(std::isfinite(eta), "eta = %g is not finite", eta)
            .read("m", m, clients, n, m_stride)
            .write("w", w, clients, n, w_stride);
        const bool normalized = rule == FCM_STEP_NORMALIZED;
        if (normalized) arguments.workspace(workspace, workspace_bytes, fcm::sum_bytes(arguments, clients, n));
        arguments.disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        return on_device(function, context, error, [&] {
            auto *sums = static_cast<double *>(workspace);
            if (normalized) fcm::finite_norms(context, clients, n, m, m_stride, sums);
            const bool vectors = vector_aligned(m, clients, m_stride) && vector_aligned(w, clients, w_stride);
            LAUNCH(fcm_k_step, fcm::chunk_blocks(clients, n), kThreads, 0, context->stream, clients, n, vectors,
                   fcm::Step{normalized, eta, m, m_stride, w, w_stride, sums, fcm::pieces_of(n)},
                   normalized ? context->findings : nullptr);
            launched("fcm_k_step", clients, n);
            if (!normalized) return fcm_status{FCM_OK};
            return fcm::say_not_finite(function, "m", context, n, m, m_stride, error);
        });
    });
}

fcm_status fcm_normalize(fcm_context *context, int64_t clients, int64_t n, double divisor, const float *x, int64_t x_stride,
                         float *y, int64_t y_stride, void *workspace, int64_t workspace_bytes, fcm_error *error) {
    constexpr const char *function = "fcm_normalize";
    return guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context).sizes(clients, n);
        arguments.require(divisor > 0.0 && std::isfinite(divisor), "divisor = %g is not a positive number", divisor);
        arguments.mapped("x", x, x_stride, "y", y, y_stride, clients, n);
        arguments.workspace(workspace, workspace_bytes, fcm::sum_bytes(arguments, clients, n)).disjoint();
        if (!arguments.ok() || clients == 0 || n == 0) return arguments.status();
        return on_device(function, context, error, [&] {
            auto *sums = static_cast<double *>(workspace);
            fcm::finite_norms(context, clients, n, x, x_stride, sums);
            const bool vectors = vector_aligned(x, clients, x_stride) && vector_aligned(y, clients, y_stride);
            LAUNCH(fcm_k_normalize, fcm::chunk_blocks(clients, n), kThreads, 0, context->stream, clients, n, vectors,
                   fcm::Normalize{divisor, x, x_stride, y, y_stride, sums, fcm::pieces_of(n)}, context->findings);
            launched("fcm_k_normalize", clients, n);
            return fcm::say_not_finite(function, "x", context, n, x, x_stride, error);
        });
    });
}
