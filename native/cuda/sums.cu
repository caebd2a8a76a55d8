// Norms, and the rules that need one: storm, norm and normalize.
#include <cmath>

#include "context.h"
#include "device.h"
#include "device_functions.h"
#include "sums.h"

namespace fcm {

struct Storm {
    float keep;
    const float *g_new;
    int64_t g_new_stride;
    const float *g_old;
    int64_t g_old_stride;
    float *h;
    int64_t h_stride;

    struct Client {
        float keep;
        const float *g_new;
        const float *g_old;
        float *h;

        template <int W>
        __device__ __forceinline__ void at(int64_t j, float (&value)[W]) const {
            float fresh[W], old[W];
            load<W>(g_new + j, fresh);
            load<W>(g_old + j, old);
            load<W>(h + j, value);
#pragma unroll
            for (int i = 0; i < W; ++i) value[i] = fresh[i] + keep * (value[i] - old[i]);
            store<W>(h + j, value);
        }
    };

    __device__ __forceinline__ double piece(int64_t client, int64_t start, int64_t n, bool vectors) const {
        return piece_squares(start, n, vectors,
                             Client{keep, g_new + client * g_new_stride, g_old + client * g_old_stride, h + client * h_stride});
    }
};

struct Squares {
    const float *x;
    int64_t stride;

    __device__ __forceinline__ double piece(int64_t client, int64_t start, int64_t n, bool vectors) const {
        return piece_squares(start, n, vectors, Elements{x + client * stride});
    }
};

struct CheckedSquares {
    const float *x;
    int64_t stride;
    Check check;

    __device__ __forceinline__ double piece(int64_t client, int64_t start, int64_t n, bool vectors) const {
        return checked_squares(start, n, vectors, x + client * stride, check);
    }
};

// sums[client * pieces + piece] = the sum over all threads of op.piece(client, ...).
template <class Op>
__device__ __forceinline__ void sum_pieces(int64_t clients, int64_t n, bool vectors, const Op &op, double *sums,
                                           double *partial) {
    const int64_t pieces = parts_of(n, kSumPiece);
    for (int64_t task = blockIdx.x; task < clients * pieces; task += gridDim.x) {
        const int64_t client = task / pieces;
        const double total = block_sum(op.piece(client, (task - client * pieces) * kSumPiece, n, vectors), partial);
        if (threadIdx.x == 0) sums[task] = total;
    }
}

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

using fcm::kThreads;
using fcm::kWarps;

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_squares(int64_t clients, int64_t n, int32_t vectors, fcm::Squares op, double *sums) {
    SHARED(double, partial, [kWarps]);
    fcm::sum_pieces(clients, n, vectors != 0, op, sums, partial);
}

// The same, if every element is finite.
extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_checked_squares(int64_t clients, int64_t n, int32_t vectors, fcm::CheckedSquares op, double *sums) {
    SHARED(double, partial, [kWarps]);
    fcm::sum_pieces(clients, n, vectors != 0, op, sums, partial);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_storm(int64_t clients, int64_t n, int32_t vectors, fcm::Storm op, double *sums, const fcm::Status *status) {
    SHARED(double, partial, [kWarps]);
    if (fcm::stopped(status)) return;
    fcm::sum_pieces(clients, n, vectors != 0, op, sums, partial);
}

// norms[client * norm_stride] from the sums of the client, which may be stored at the same place.
extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_norms(int64_t clients, int64_t pieces, const double *sums, double *norms, int64_t norm_stride,
                const fcm::Status *status) {
    SHARED(double, partial, [kWarps]);
    if (fcm::stopped(status)) return;
    for (int64_t client = blockIdx.x; client < clients; client += gridDim.x) {
        const double norm = fcm::norm_of(sums + client * pieces, pieces, partial);
        if (threadIdx.x == 0) norms[client * norm_stride] = norm;
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_normalize(int64_t clients, int64_t n, int32_t vectors, fcm::Normalize op, const fcm::Status *status) {
    if (!fcm::stopped(status)) fcm::for_scaled(clients, n, vectors != 0, op);
}

namespace fcm {
namespace {

unsigned piece_blocks(int64_t clients, int64_t n) { return blocks_for(clients * pieces_of(n)); }

void norms_from_sums(const fcm_context *context, int64_t clients, int64_t n, const double *sums, double *norms,
                     int64_t norm_stride) {
    LAUNCH(fcm_k_norms, blocks_for(clients), kThreads, 0, context->stream, clients, pieces_of(n), sums, norms, norm_stride,
           context->status);
    launched("fcm_k_norms", clients, pieces_of(n));
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
               Storm{static_cast<float>(1.0 - g), g_new, g_new_stride, g_old, g_old_stride, h, h_stride}, sums,
               context->status);
        launched("fcm_k_storm", clients, n);
        norms_from_sums(context, clients, n, sums, norms, 1);
    });
}

fcm_status device::norm(fcm_context *context, int64_t clients, int64_t n, const float *x, int64_t x_stride, double *norms,
                        void *workspace, int64_t, fcm_error *error) {
    return on_device("fcm_norm", context, error, [&] {
        auto *sums = static_cast<double *>(workspace);
        LAUNCH(fcm_k_squares, piece_blocks(clients, n), kThreads, 0, context->stream, clients, n,
               vector_aligned(x, clients, x_stride), Squares{x, x_stride}, sums);
        launched("fcm_k_squares", clients, n);
        norms_from_sums(context, clients, n, sums, norms, 1);
    });
}

fcm_status device::normalize(fcm_context *context, int64_t clients, int64_t n, double divisor, const float *x,
                             int64_t x_stride, float *y, int64_t y_stride, void *workspace, int64_t, fcm_error *error) {
    constexpr const char *function = "fcm_normalize";
    return on_device(function, context, error, [&] {
        auto *sums = static_cast<double *>(workspace);
        const Check check = ask(context, Question::about(function, "x", Sought::kNotFinite, clients, x, x_stride));
        LAUNCH(fcm_k_checked_squares, piece_blocks(clients, n), kThreads, 0, context->stream, clients, n,
               vector_aligned(x, clients, x_stride), CheckedSquares{x, x_stride, check}, sums);
        launched("fcm_k_checked_squares", clients, n);
        norms_from_sums(context, clients, n, sums, sums, pieces_of(n));
        const bool vectors = vector_aligned(x, clients, x_stride) && vector_aligned(y, clients, y_stride);
        LAUNCH(fcm_k_normalize, blocks_for(clients * parts_of(n, kChunk)), kThreads, 0, context->stream, clients, n, vectors,
               Normalize{divisor, x, x_stride, y, y_stride, sums, pieces_of(n)}, context->status);
        launched("fcm_k_normalize", clients, n);
    });
}

}  // namespace fcm
