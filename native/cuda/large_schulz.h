// Newton-Schulz of matrices that are too large for the kernel of small ones, or in Gram form: the products of all matrices of
// all clients, stage by stage, one launch each. Host side.
#pragma once

#include <cstdint>
#include <vector>

#include "fedcomuon.h"
#include "schulz.h"
#include "status.h"

struct fcm_context;

namespace fcm {

// What these matrices need of a workspace. Computed by every call, so that nothing is allocated.
struct LargeSchulzSizes {
    int64_t table_bytes = 0;  // prepared; aligned to 8 bytes
    int64_t flags = 0;        // unsigned numbers
    int64_t room_bytes = 0;   // aligned to 64 bytes
};
LargeSchulzSizes large_schulz_sizes(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                    int64_t block_count, const fcm_schulz &schulz);

// Matrices that are processed together, some clients at a time, so that the room is bounded. Tables are bytes from the start of
// all tables.
struct LargePass {
    struct Stage {
        int64_t table;
        int64_t count;
        int64_t tiles;  // of a client
    };

    int64_t table;  // of the matrices
    int64_t count;
    int64_t chunks;   // of a client
    int64_t stride;   // elements from one client's room to the next
    int64_t clients;  // at once
    std::vector<Stage> stages;
};

struct LargeSchulzPlan {
    std::vector<LargePass> passes;
    std::vector<char> tables;
};
LargeSchulzPlan large_schulz_plan(const fcm_context *context, const fcm_matrix_block *blocks, int64_t block_count,
                                  const fcm_schulz &schulz);

// `tables` are on the device. Nothing is done once `bad`, for NaN and Inf in m, or a check before it has been answered; matrices
// that leave the range of float are reported to `out_of_range`, which has the next ticket, and are not stored.
void launch_large_schulz(const fcm_context *context, const SchulzOperands &operands, const LargeSchulzPlan &plan,
                         const char *tables, unsigned *flags, float *room, Check bad, Check out_of_range);

}  // namespace fcm
