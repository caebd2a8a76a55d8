// The steps of all vectors of a model in one call on the CPU. A piece of a vector is a task, as in the other operations, so
// that results do not depend on the number of threads.
#include <cmath>

#include "device_functions.h"
#include "pieces.h"

namespace fcm {
namespace {

int64_t total_pieces(const fcm_vector_block *blocks, int64_t block_count) {
    int64_t pieces = 0;
    for (int64_t i = 0; i < block_count; ++i) pieces += pieces_of(blocks[i].n);
    return pieces;
}

// A piece of a vector: where it starts and how long it is.
struct Piece {
    int64_t client;
    int64_t block;
    int64_t start;
    int64_t length;
    int64_t first;  // the first piece of this vector
};

// The tables are short, so that a linear search costs little compared with the work on a piece.
Piece piece_of(const fcm_vector_block *blocks, int64_t pieces, int64_t task) {
    const int64_t client = task / pieces;
    int64_t rest = task - client * pieces;
    int64_t block = 0;
    for (; rest >= pieces_of(blocks[block].n); ++block) rest -= pieces_of(blocks[block].n);
    const int64_t start = rest * kSumPiece;
    const int64_t left = blocks[block].n - start;
    return {client, block, start, left < kSumPiece ? left : kSumPiece, task - rest};
}

}  // namespace

fcm_status device::vector_steps_workspace(const fcm_context *, int64_t clients, const fcm_vector_block *blocks,
                                          int64_t block_count, int64_t *bytes, fcm_error *) {
    *bytes = clients * total_pieces(blocks, block_count) * static_cast<int64_t>(sizeof(double));
    return FCM_OK;
}

fcm_status device::vector_steps_prepare(fcm_context *, int64_t, const fcm_vector_block *, int64_t, void *, int64_t,
                                        fcm_error *) {
    return FCM_OK;
}

fcm_status device::vector_steps(fcm_context *context, int64_t clients, const fcm_vector_block *blocks, int64_t block_count,
                                int32_t rule, double eta, const float *m, int64_t m_stride, float *w, int64_t w_stride,
                                void *workspace, int64_t, fcm_error *error) {
    auto *sums = static_cast<double *>(workspace);
    const bool normalized = rule == FCM_STEP_NORMALIZED;
    const int64_t pieces = total_pieces(blocks, block_count);
    int64_t elements = 0;
    for (int64_t i = 0; i < block_count; ++i) elements += clients * blocks[i].n;
    const auto vector_of = [&](int64_t client, int64_t block) { return m + client * m_stride + blocks[block].m_offset; };

    if (normalized) {
        context->pool.run(clients * pieces, elements, [&](int64_t task, int) {
            const Piece piece = piece_of(blocks, pieces, task);
            sums[task] = context->kernels.sum_of_squares(piece.length, vector_of(piece.client, piece.block) + piece.start);
        });
        for (int64_t k = 0, first = 0; k < clients; ++k) {
            for (int64_t i = 0; i < block_count; ++i) {
                const int64_t count = pieces_of(blocks[i].n);
                const double norm = norm_of(sums + first, 0, count);
                if (!std::isfinite(norm)) {
                    const int64_t index = context->kernels.first_not_finite(blocks[i].n, vector_of(k, i));
                    return fail_not_finite("fcm_vector_steps", "m", {k, i, index, vector_of(k, i) + index}, error);
                }
                if (count > 0) sums[first] = norm;
                first += count;
            }
        }
    }
    context->pool.run(clients * pieces, elements, [&](int64_t task, int) {
        const Piece piece = piece_of(blocks, pieces, task);
        double step = eta * blocks[piece.block].scale;
        if (normalized) {
            const double norm = sums[piece.first];
            if (norm == 0.0) return;
            step /= norm;
        }
        context->kernels.step(piece.length, step, vector_of(piece.client, piece.block) + piece.start,
                              w + piece.client * w_stride + blocks[piece.block].w_offset + piece.start);
    });
    return FCM_OK;
}

}  // namespace fcm
