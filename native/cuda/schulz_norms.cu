// The norms of all matrices of all clients in one pass over them. A piece belongs to a block of threads, whatever matrix it is
// of; the block that finishes the last piece of a matrix adds up its pieces. The order of the sums is that of sums.h, so that it
// does not matter which block that is.
#include "context.h"
#include "device.h"
#include "schulz.h"
#include "sums.h"

using fcm::kThreads;
using fcm::kWarps;

// Four blocks of threads a multiprocessor, which memory needs to be busy, leave 64 registers; without a number, nvcc aims at more
// blocks for sm_90 and stores a register to memory.
extern "C" __global__ void __launch_bounds__(kThreads, 4) fcm_k_schulz_norms(fcm::SchulzNorms s, fcm::Check bad) {
    SHARED(double, partial, [kWarps]);
    SHARED(int, is_last, [1]);
    for (int64_t task = blockIdx.x; task < s.clients * s.pieces; task += gridDim.x) {
        const int64_t client = task / s.pieces;
        const int64_t piece = task - client * s.pieces;
        const int64_t number = fcm::entry_at(s.entries, s.block_count, &fcm::NormEntry::first_piece, piece);
        const fcm::NormEntry &entry = s.entries[number];
        const float *x = s.m + client * s.m_stride + entry.m_offset;
        const double sum = fcm::checked_squares((piece - entry.first_piece) * fcm::kSumPiece, entry.n,
                                                fcm::is_vector_aligned(x), x, bad);
        const double total = fcm::block_sum(sum, partial);
        const int64_t pieces = fcm::parts_of(entry.n, fcm::kSumPiece);
        double *norm = s.norms + client * s.block_count + number;
        if (pieces == 1) {
            if (threadIdx.x == 0) *norm = sqrt(total);
            continue;
        }
        unsigned *count = s.counts + client * s.block_count + number;
        if (threadIdx.x == 0) {
            s.sums[task] = total;
            // Between the two fences, the atomic hands this sum on to the last block, and all others to this one if it is.
            __threadfence();
            is_last[0] = atomicAdd(count, 1u) == static_cast<unsigned>(pieces) - 1 ? 1 : 0;
            __threadfence();
        }
        __syncthreads();
        if (is_last[0] == 0) continue;
        const double length = fcm::norm_of(s.sums + client * s.pieces + entry.first_piece, pieces, partial);
        if (threadIdx.x == 0) {
            *norm = length;
            atomicExch(count, 0u);  // for the next launch
        }
    }
}

namespace fcm {

int64_t schulz_norm_entries(const fcm_matrix_block *blocks, int64_t block_count, std::vector<NormEntry> *entries) {
    int64_t pieces = 0;
    for (int64_t i = 0; i < block_count; ++i) {
        const int64_t n = blocks[i].rows * blocks[i].cols;
        if (entries != nullptr) entries->push_back({blocks[i].m_offset, n, pieces});
        pieces += pieces_of(n);
    }
    return pieces;
}

void launch_schulz_norms(const fcm_context *context, const SchulzNorms &norms, Check bad) {
    const int64_t tasks = norms.clients * norms.pieces;
    if (tasks == 0) return;
    LAUNCH(fcm_k_schulz_norms, blocks_for(tasks), kThreads, 0, context->stream, norms, bad);
    launched("fcm_k_schulz_norms", norms.clients, norms.pieces);
}

}  // namespace fcm
