// Newton-Schulz for many small matrices of mixed shapes: norms, then the whole iteration of all of them, in two launches.
#include <cstring>

#include "context.h"
#include "device.h"
#include "device_functions.h"
#include "schulz.h"

namespace fcm {
namespace {

constexpr int64_t kMostSteps = 1000;
constexpr int64_t kLine = 64;
constexpr int64_t kFloat = sizeof(float);

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// The workspace, in order: coefficients, blocks, the queue's order, the entries of the norms, the queue and the counts, which
// are prepared; sums, norms, and what the iteration keeps outside of shared memory.
struct Room {
    SmallSchulzPlan plan;
    int64_t pieces = 0;
    int64_t blocks = 0;
    int64_t order = 0;
    int64_t entries = 0;
    int64_t next = 0;
    int64_t counts = 0;
    int64_t sums = 0;
    int64_t norms = 0;
    int64_t stream = 0;
    int64_t total = 0;
};

Room room_for(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count) {
    Room room;
    const int64_t matrices = clients * block_count;
    if (matrices == 0) return room;
    room.plan = small_schulz_plan(context, clients, blocks, block_count);
    room.pieces = schulz_norm_entries(blocks, block_count, nullptr);
    int64_t end = 0;
    const auto take = [&end](int64_t count, size_t size) {
        const int64_t start = end;
        end += round_up(count * static_cast<int64_t>(size), kLine);
        return start;
    };
    take(3 * kMostSteps, sizeof(float));
    room.blocks = take(block_count, sizeof(fcm_matrix_block));
    room.order = take(block_count, sizeof(int64_t));
    room.entries = take(block_count, sizeof(NormEntry));
    room.next = take(1, sizeof(unsigned long long));
    room.counts = take(matrices, sizeof(unsigned));
    room.sums = take(clients * room.pieces, sizeof(double));
    room.norms = take(matrices, sizeof(double));
    room.stream = take(room.plan.stream_bytes, 1);
    // A workspace is aligned to doubles; one more line allows it to be aligned for vectors.
    room.total = end + kLine;
    return room;
}

// A workspace is aligned to doubles; vectors need more.
char *start_of(void *workspace) {
    const auto address = reinterpret_cast<uintptr_t>(workspace);
    return static_cast<char *>(workspace) + (-address & static_cast<uintptr_t>(kLine - 1));
}

uint64_t digest_of(const fcm_matrix_block *blocks, int64_t block_count, const double *coefficients, int64_t steps) {
    const uint64_t digest = fcm::digest_of(blocks, block_count * static_cast<int64_t>(sizeof(fcm_matrix_block)));
    return fcm::digest_of(coefficients, 3 * steps * static_cast<int64_t>(sizeof(double)), digest);
}

}  // namespace

fcm_status device::newton_schulz_small_workspace(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                                 int64_t block_count, int64_t *bytes, fcm_error *) {
    *bytes = room_for(context, clients, blocks, block_count).total;
    return FCM_OK;
}

fcm_status device::newton_schulz_small_prepare(fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                               int64_t block_count, const double *coefficients, int64_t steps,
                                               void *workspace, int64_t, fcm_error *error) {
    return on_device("fcm_newton_schulz_small_prepare", context, error, [&] {
        const Room room = room_for(context, clients, blocks, block_count);
        std::vector<char> table(static_cast<size_t>(room.sums));  // with zeros for the queue and the counts
        const auto put = [&table](int64_t at, const void *from, size_t bytes) {
            if (bytes > 0) std::memcpy(table.data() + at, from, bytes);
        };
        for (int64_t i = 0; i < 3 * steps; ++i) {
            const auto value = static_cast<float>(coefficients[i]);
            put(i * kFloat, &value, sizeof value);
        }
        put(room.blocks, blocks, static_cast<size_t>(block_count) * sizeof *blocks);
        const std::vector<int64_t> order = small_schulz_order(blocks, block_count);
        put(room.order, order.data(), order.size() * sizeof order[0]);
        std::vector<NormEntry> entries;
        schulz_norm_entries(blocks, block_count, &entries);
        put(room.entries, entries.data(), entries.size() * sizeof entries[0]);
        auto spans = std::make_shared<Spans>();
        for (int64_t i = 0; i < block_count; ++i) {
            spans->push_back({blocks[i].m_offset, blocks[i].rows * blocks[i].cols});
        }
        prepare(context, workspace, start_of(workspace), table,
                {digest_of(blocks, block_count, coefficients, steps), std::move(spans)});
        prepare_small_schulz(context);
    });
}

fcm_status device::newton_schulz_small(fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                       int64_t block_count, const double *coefficients, int64_t steps, double divisor,
                                       double eta, const float *m, int64_t m_stride, float *o, int64_t o_stride, float *w,
                                       int64_t w_stride, void *workspace, int64_t, fcm_error *error) {
    constexpr const char *function = "fcm_newton_schulz_small";
    return on_device(function, context, error, [&] {
        const auto spans =
            prepared_blocks(context, workspace, digest_of(blocks, block_count, coefficients, steps));
        if (spans == nullptr) return fail_unprepared(function, error);
        const Room room = room_for(context, clients, blocks, block_count);
        char *start = start_of(workspace);
        const Check bad = ask(context, Question::about(function, "m", Sought::kNotFinite, clients, m, m_stride, spans));
        const Check out_of_range =
            ask(context, Question::about(function, "m", Sought::kOutOfRange, clients, m, m_stride, spans));
        auto *norms = reinterpret_cast<double *>(start + room.norms);
        // The norms of all matrices are computed before the iteration, because a NaN in any matrix must leave all outputs
        // unwritten.
        launch_schulz_norms(context,
                            {clients, block_count, room.pieces, reinterpret_cast<const NormEntry *>(start + room.entries), m,
                             m_stride, reinterpret_cast<double *>(start + room.sums),
                             reinterpret_cast<unsigned *>(start + room.counts), norms},
                            bad);
        int64_t order_count = 0;
        for (int64_t i = 0; i < block_count; ++i) order_count += blocks[i].rows > 0 && blocks[i].cols > 0 ? 1 : 0;
        launch_small_schulz(context,
                            {clients, block_count, reinterpret_cast<const fcm_matrix_block *>(start + room.blocks), norms,
                             divisor, eta, reinterpret_cast<const float *>(start), steps, m, m_stride, o, o_stride, w, w_stride},
                            room.plan, reinterpret_cast<const int64_t *>(start + room.order), order_count,
                            reinterpret_cast<unsigned long long *>(start + room.next),
                            reinterpret_cast<float *>(start + room.stream), bad, out_of_range);
        return fcm_status{FCM_OK};
    });
}

}  // namespace fcm
