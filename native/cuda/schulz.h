// The parts of Newton-Schulz that newton_schulz.cu puts together, and what they are launched with. Tables that a part needs on
// the device are made on the host once, when a workspace is prepared; where they are in the workspace is the caller's business.
#pragma once

#include <cstdint>
#include <vector>

#include "fedcomuon.h"
#include "status.h"

struct fcm_context;

namespace fcm {

// The matrices of all clients. All addresses are on the device, `blocks` and `coefficients` too; o and w may be null.
struct SchulzOperands {
    int64_t clients;
    int64_t block_count;
    const fcm_matrix_block *blocks;
    const double *norms;  // of matrix `client * block_count + block`
    double divisor;
    double eta;
    const float *coefficients;  // three for each step
    int64_t steps;
    const float *m;
    int64_t m_stride;
    float *o;
    int64_t o_stride;
    float *w;
    int64_t w_stride;
};

// ---- schulz_norms.cu: the norms of all matrices, of any size, in one launch ----

// A matrix of a client, and where its pieces begin among those of the client.
struct NormEntry {
    int64_t m_offset;
    int64_t n;
    int64_t first_piece;
};

// One entry for each block, in the order of the blocks; returns the pieces of a client.
int64_t schulz_norm_entries(const fcm_matrix_block *blocks, int64_t block_count, std::vector<NormEntry> *entries);

struct SchulzNorms {
    int64_t clients;
    int64_t block_count;
    int64_t pieces;            // of a client
    const NormEntry *entries;  // block_count
    const float *m;
    int64_t m_stride;
    double *sums;      // clients * pieces
    unsigned *counts;  // clients * block_count; zeros before the first launch, and again after each
    double *norms;     // clients * block_count; that of a matrix without elements is not written
};

// NaN and Inf are reported to `bad`; the norms are then undefined.
void launch_schulz_norms(const fcm_context *context, const SchulzNorms &norms, Check bad);

// ---- small_schulz.cu and small_schulz_mma.cu: the whole iteration of matrices with a side of at most FCM_SMALL_SIDE, in one
// launch ----

// The small ones among the blocks in the order of the queue, the most expensive first; those without elements are left out.
std::vector<int64_t> small_schulz_order(const fcm_matrix_block *blocks, int64_t block_count);

// What a launch needs for the small ones among these blocks.
struct SmallSchulzPlan {
    int32_t precision = FCM_FP32;
    int64_t matrices = 0;  // of a client
    int64_t grid = 0;
    int64_t shared_bytes = 0;
    int64_t stream_stride = 0;  // elements for each block of the grid
    int64_t stream_bytes = 0;   // aligned to 16 bytes
};
SmallSchulzPlan small_schulz_plan(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                  int64_t block_count, int32_t precision);

// Once for each context and precision, before the first launch.
void prepare_small_schulz(const fcm_context *context, int32_t precision);

// The blocks `order` of the operands. `next` is 0 before the first launch, and again after each. Nothing is done once `bad`,
// for NaN and Inf in m, or a check before it has been answered; matrices that leave the range of float are reported to
// `out_of_range`, which has the next ticket, and are not stored.
void launch_small_schulz(const fcm_context *context, const SchulzOperands &operands, const SmallSchulzPlan &plan,
                         const int64_t *order, int64_t order_count, unsigned long long *next, void *stream, Check bad,
                         Check out_of_range);

}  // namespace fcm
