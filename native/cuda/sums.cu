// Norms, and the rules that need one: storm, norm, vector_step and normalize. Sums are in double and in a fixed order that
// depends neither on the grid nor on the alignment: each client is cut into pieces, a piece belongs to a block, and element
// j of a piece belongs to thread (j / 4) mod kThreads.
#include <cmath>

#include "context.h"
#include "device.h"
#include "device_functions.h"

namespace fcm {

// The sum of a piece occupies one double of the workspace. Pieces are small, so that a vector of a million elements occupies
// every multiprocessor.
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

// The square of a float is exact in double, so fusing it into the sum does not change the rounding.
template <int W>
__device__ __forceinline__ double add_squares(double sum, const float (&value)[W]) {
#pragma unroll
    for (int i = 0; i < W; ++i) sum = fma(static_cast<double>(value[i]), static_cast<double>(value[i]), sum);
    return sum;
}

// sums[client * pieces + piece] = the sum of squares of the values op.at() returns for the elements of the piece.
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

// Step moves w along m, and Normalize scales x; of(client) computes the factor of a client.
struct Step {
    int32_t normalized;  // otherwise the factor is eta
    double eta;
    const float *m;
    int64_t m_stride;
    float *w;
    int64_t w_stride;
    const double *norms;
    int64_t norm_stride;

    struct By {
        bool any;  // false for a zero m, which makes no step
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

// norms[client * norm_stride] from the sums of the client, which may be stored at the same place. If `findings` is given,
// the first norm that is not finite is recorded there.
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

// Stores the norm of client k in its first sum, sums[k * pieces_of(n)], and records the first that is not finite.
void finite_norms(const fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t stride, double *sums) {
    forget(context);
    sum_squares(context, clients, n, x, stride, sums);
    norms_from_sums(context, clients, n, sums, sums, pieces_of(n), context->findings);
}

// Waits for the kernels that used those norms. If one was not finite, reports the first NaN or Inf of the operand called
// `name`.
fcm_status say_not_finite(const char *function, const char *name, const fcm_context *context, int64_t n, const float *x,
                          int64_t stride, fcm_error *error) {
    const Findings findings = read_findings(context);
    if (findings.bad == kNothing) return FCM_OK;
    const auto client = static_cast<int64_t>(findings.bad);
    const Place place = first_not_finite(context, 1, n, x + client * stride, n);
    return fail_not_finite(function, name, {client, -1, place.index}, error);
}

}  // namespace

const int64_t device::sum_piece = kSumPiece;

fcm_status device::storm(fcm_context *context, int64_t clients, int64_t n, double g, const float *g_new,
                         int64_t g_new_stride, const float *g_old, int64_t g_old_stride, float *h, int64_t h_stride,
                         double *norms, void *workspace, int64_t, fcm_error *error) {
    return on_device("fcm_storm", context, error, [&] {
        auto *sums = static_cast<double *>(workspace);
        const bool vectors = vector_aligned(g_new, clients, g_new_stride) &&
                             vector_aligned(g_old, clients, g_old_stride) && vector_aligned(h, clients, h_stride);
        LAUNCH(fcm_k_storm, piece_blocks(clients, n), kThreads, 0, context->stream, clients, n, vectors,
               Storm{static_cast<float>(1.0 - g), g_new, g_new_stride, g_old, g_old_stride, h, h_stride}, sums);
        launched("fcm_k_storm", clients, n);
        norms_from_sums(context, clients, n, sums, norms, 1, nullptr);
    });
}

fcm_status device::norm(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride, double *norms,
                        void *workspace, int64_t, fcm_error *error) {
    return on_device("fcm_norm", context, error, [&] {
        auto *sums = static_cast<double *>(workspace);
        sum_squares(context, clients, n, x, x_stride, sums);
        norms_from_sums(context, clients, n, sums, norms, 1, nullptr);
    });
}

fcm_status device::vector_step(fcm_context *context, int64_t clients, int64_t n, int32_t rule, double eta, const float *m,
                               int64_t m_stride, float *w, int64_t w_stride, void *workspace, int64_t, fcm_error *error) {
    return on_device("fcm_vector_step", context, error, [&] {
        auto *sums = static_cast<double *>(workspace);
        const bool normalized = rule == FCM_STEP_NORMALIZED;
        if (normalized) finite_norms(context, clients, n, m, m_stride, sums);
        const bool vectors = vector_aligned(m, clients, m_stride) && vector_aligned(w, clients, w_stride);
        LAUNCH(fcm_k_step, chunk_blocks(clients, n), kThreads, 0, context->stream, clients, n, vectors,
               Step{normalized, eta, m, m_stride, w, w_stride, sums, pieces_of(n)},
               normalized ? context->findings : nullptr);
        launched("fcm_k_step", clients, n);
        if (!normalized) return fcm_status{FCM_OK};
        return say_not_finite("fcm_vector_step", "m", context, n, m, m_stride, error);
    });
}

fcm_status device::normalize(fcm_context *context, int64_t clients, int64_t n, double divisor, const float *x,
                             int64_t x_stride, float *y, int64_t y_stride, void *workspace, int64_t, fcm_error *error) {
    return on_device("fcm_normalize", context, error, [&] {
        auto *sums = static_cast<double *>(workspace);
        finite_norms(context, clients, n, x, x_stride, sums);
        const bool vectors = vector_aligned(x, clients, x_stride) && vector_aligned(y, clients, y_stride);
        LAUNCH(fcm_k_normalize, chunk_blocks(clients, n), kThreads, 0, context->stream, clients, n, vectors,
               Normalize{divisor, x, x_stride, y, y_stride, sums, pieces_of(n)}, context->findings);
        launched("fcm_k_normalize", clients, n);
        return say_not_finite("fcm_normalize", "x", context, n, x, x_stride, error);
    });
}

}  // namespace fcm
