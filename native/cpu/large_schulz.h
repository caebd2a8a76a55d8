// Newton-Schulz of matrices that are too large for the kernel of small ones, or in Gram form, on the CPU: one product after
// the other, some clients at a time, so that the workspace stays small.
#pragma once

#include "context.h"
#include "fedcomuon.h"

namespace fcm {

// The bytes that the blocks which are not small need together; they take turns.
int64_t large_schulz_bytes(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count,
                           const fcm_schulz &schulz);

struct LargeSchulz {
    const fcm_matrix_block &block;
    const fcm_schulz &schulz;
    int64_t clients;
    double eta;
    const float *m;
    int64_t m_stride;
    float *o;  // may be null
    int64_t o_stride;
    float *w;  // may be null
    int64_t w_stride;
    const double *norms;  // of this block, norm_stride apart
    int64_t norm_stride;
    void *workspace;
};

// Returns the first client whose matrix left the range of float, and which was not stored; -1 if there is none.
int64_t large_schulz(fcm_context *context, const LargeSchulz &work);

}  // namespace fcm
