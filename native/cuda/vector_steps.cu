// The steps of all vectors of all clients, in three launches whatever their number: sums of squares, norms, and the step.
#include <algorithm>
#include <cstring>

#include "context.h"
#include "device.h"
#include "device_functions.h"
#include "sums.h"

namespace fcm {

// A vector of a client, and where its pieces and chunks begin among those of the client.
struct VectorEntry {
    int64_t n;
    int64_t m_offset;
    int64_t w_offset;
    double scale;
    int64_t first_piece;
    int64_t first_chunk;
};

struct Vectors {
    int64_t clients;
    const VectorEntry *entries;
    int64_t count;
    int64_t pieces;  // of a client
    int64_t chunks;  // of a client
    const float *m;
    int64_t m_stride;
    float *w;
    int64_t w_stride;
    double *sums;  // one for each piece of each client; the norm of a vector replaces its first
};

}  // namespace fcm

using fcm::kThreads;
using fcm::kWarps;

extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_vector_squares(fcm::Vectors v, fcm::Check check) {
    SHARED(double, partial, [kWarps]);
    for (int64_t task = blockIdx.x; task < v.clients * v.pieces; task += gridDim.x) {
        const int64_t client = task / v.pieces;
        const int64_t piece = task - client * v.pieces;
        const fcm::VectorEntry &entry =
            v.entries[fcm::entry_at(v.entries, v.count, &fcm::VectorEntry::first_piece, piece)];
        const float *x = v.m + client * v.m_stride + entry.m_offset;
        const double sum = fcm::checked_squares((piece - entry.first_piece) * fcm::kSumPiece, entry.n,
                                                fcm::is_vector_aligned(x), x, check);
        const double total = fcm::block_sum(sum, partial);
        if (threadIdx.x == 0) v.sums[task] = total;
    }
}

extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_vector_norms(fcm::Vectors v, const fcm::Status *status) {
    SHARED(double, partial, [kWarps]);
    if (fcm::stopped(status)) return;
    for (int64_t task = blockIdx.x; task < v.clients * v.count; task += gridDim.x) {
        const int64_t client = task / v.count;
        const fcm::VectorEntry &entry = v.entries[task - client * v.count];
        if (entry.n == 0) continue;
        double *sums = v.sums + client * v.pieces + entry.first_piece;
        const double norm = fcm::norm_of(sums, fcm::parts_of(entry.n, fcm::kSumPiece), partial);
        if (threadIdx.x == 0) *sums = norm;
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    fcm_k_vector_steps(fcm::Vectors v, int32_t normalized, double eta, const fcm::Status *status) {
    if (fcm::stopped(status)) return;
    for (int64_t task = blockIdx.x; task < v.clients * v.chunks; task += gridDim.x) {
        const int64_t client = task / v.chunks;
        const int64_t chunk = task - client * v.chunks;
        const fcm::VectorEntry &entry =
            v.entries[fcm::entry_at(v.entries, v.count, &fcm::VectorEntry::first_chunk, chunk)];
        fcm::StepSize size{true, eta * entry.scale};
        if (normalized != 0) {
            const double norm = v.sums[client * v.pieces + entry.first_piece];
            size.any = norm != 0.0;
            size.step /= norm;
        }
        const float *m = v.m + client * v.m_stride + entry.m_offset;
        float *w = v.w + client * v.w_stride + entry.w_offset;
        const int64_t first = (chunk - entry.first_chunk) * fcm::kChunk + 4 * static_cast<int64_t>(threadIdx.x);
        if (first + 4 <= entry.n && fcm::is_vector_aligned(m) && fcm::is_vector_aligned(w)) {
            fcm::step_along<4>(size, m + first, w + first);
        } else {
            for (int64_t j = first; j < first + 4 && j < entry.n; ++j) fcm::step_along<1>(size, m + j, w + j);
        }
    }
}

namespace fcm {
namespace {

// The workspace: the entries, then the sums.
struct Room {
    int64_t table = 0;
    int64_t pieces = 0;
    int64_t chunks = 0;
    int64_t total = 0;
};

Room room_for(int64_t clients, const fcm_vector_block *blocks, int64_t block_count) {
    Room room;
    for (int64_t i = 0; i < block_count; ++i) {
        room.pieces += pieces_of(blocks[i].n);
        room.chunks += parts_of(blocks[i].n, kChunk);
    }
    room.table = block_count * static_cast<int64_t>(sizeof(VectorEntry));
    room.total = room.table + clients * room.pieces * static_cast<int64_t>(sizeof(double));
    return room;
}

uint64_t digest_of(const fcm_vector_block *blocks, int64_t block_count) {
    return fcm::digest_of(blocks, block_count * static_cast<int64_t>(sizeof(fcm_vector_block)));
}

}  // namespace

fcm_status device::vector_steps_workspace(const fcm_context *, int64_t clients, const fcm_vector_block *blocks,
                                          int64_t block_count, int64_t *bytes, fcm_error *) {
    *bytes = room_for(clients, blocks, block_count).total;
    return FCM_OK;
}

fcm_status device::vector_steps_prepare(fcm_context *context, int64_t, const fcm_vector_block *blocks, int64_t block_count,
                                        void *workspace, int64_t, fcm_error *error) {
    return on_device("fcm_vector_steps_prepare", context, error, [&] {
        std::vector<char> table(static_cast<size_t>(block_count) * sizeof(VectorEntry));
        auto spans = std::make_shared<Spans>();
        VectorEntry entry{};
        for (int64_t i = 0; i < block_count; ++i) {
            const fcm_vector_block &block = blocks[i];
            entry = {block.n, block.m_offset, block.w_offset, block.scale, entry.first_piece, entry.first_chunk};
            std::memcpy(table.data() + static_cast<size_t>(i) * sizeof entry, &entry, sizeof entry);
            spans->push_back({block.m_offset, block.n});
            entry.first_piece += pieces_of(block.n);
            entry.first_chunk += parts_of(block.n, kChunk);
        }
        prepare(context, workspace, workspace, table, {digest_of(blocks, block_count), std::move(spans), nullptr});
    });
}

fcm_status device::vector_steps(fcm_context *context, int64_t clients, const fcm_vector_block *blocks, int64_t block_count,
                                int32_t rule, double eta, const float *m, int64_t m_stride, float *w, int64_t w_stride,
                                void *workspace, int64_t, fcm_error *error) {
    constexpr const char *function = "fcm_vector_steps";
    return on_device(function, context, error, [&] {
        const auto spans = prepared_workspace(context, workspace, digest_of(blocks, block_count)).blocks;
        if (spans == nullptr) return fail_unprepared(function, error);
        const Room room = room_for(clients, blocks, block_count);
        if (room.pieces == 0) return fcm_status{FCM_OK};
        const Vectors v{clients,
                        static_cast<const VectorEntry *>(workspace),
                        block_count,
                        room.pieces,
                        room.chunks,
                        m,
                        m_stride,
                        w,
                        w_stride,
                        reinterpret_cast<double *>(static_cast<char *>(workspace) + room.table)};
        const bool normalized = rule == FCM_STEP_NORMALIZED;
        if (normalized) {
            LAUNCH(fcm_k_vector_squares, blocks_for(clients * room.pieces), kThreads, 0, context->stream, v,
                   ask(context, Question::about(function, "m", Sought::kNotFinite, clients, m, m_stride, spans)));
            launched("fcm_k_vector_squares", clients, room.pieces);
            LAUNCH(fcm_k_vector_norms, blocks_for(clients * block_count), kThreads, 0, context->stream, v, context->status);
            launched("fcm_k_vector_norms", clients, block_count);
        }
        LAUNCH(fcm_k_vector_steps, blocks_for(clients * room.chunks), kThreads, 0, context->stream, v, normalized, eta,
               context->status);
        launched("fcm_k_vector_steps", clients, room.chunks);
        return fcm_status{FCM_OK};
    });
}

}  // namespace fcm
