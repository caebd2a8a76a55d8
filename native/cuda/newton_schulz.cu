// Newton-Schulz of all matrices of all clients: the norms, the whole iteration of the small ones, and the products of the others
// stage by stage. The number of launches depends neither on the number of matrices nor on that of clients.
#include <algorithm>
#include <cstring>

#include "context.h"
#include "device.h"
#include "device_functions.h"
#include "large_schulz.h"
#include "schulz.h"
#include "schulz_program.h"

namespace fcm {
namespace {

constexpr int64_t kMostSteps = 1000;
constexpr int64_t kLine = 64;
constexpr int64_t kFloat = sizeof(float);

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// The workspace, in order: coefficients, blocks, the queue's order, the entries of the norms, the tables of the large matrices,
// the queue and the counts, which are prepared; sums, norms, flags, and what the iterations keep outside of shared memory, one
// after the other.
struct Room {
    SmallSchulzPlan plan;
    LargeSchulzSizes large;
    int64_t pieces = 0;
    int64_t blocks = 0;
    int64_t order = 0;
    int64_t entries = 0;
    int64_t tables = 0;
    int64_t next = 0;
    int64_t counts = 0;
    int64_t sums = 0;
    int64_t norms = 0;
    int64_t flags = 0;
    int64_t stream = 0;
    int64_t total = 0;
};

Room room_for(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count,
              const fcm_schulz &schulz) {
    Room room;
    const int64_t matrices = clients * block_count;
    if (matrices == 0) return room;
    room.plan = small_schulz_plan(context, clients, blocks, block_count, schulz.precision);
    room.large = large_schulz_sizes(context, clients, blocks, block_count, schulz);
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
    room.tables = take(room.large.table_bytes, 1);
    room.next = take(1, sizeof(unsigned long long));
    room.counts = take(matrices, sizeof(unsigned));
    room.sums = take(clients * room.pieces, sizeof(double));
    room.norms = take(matrices, sizeof(double));
    room.flags = take(room.large.flags, sizeof(unsigned));
    room.stream = take(std::max(room.plan.stream_bytes, room.large.room_bytes), 1);
    // A workspace is aligned to doubles; one more line allows it to be aligned for vectors.
    room.total = end + kLine;
    return room;
}

// A workspace is aligned to doubles; vectors need more.
char *start_of(void *workspace) {
    const auto address = reinterpret_cast<uintptr_t>(workspace);
    return static_cast<char *>(workspace) + (-address & static_cast<uintptr_t>(kLine - 1));
}

uint64_t digest_of(const fcm_matrix_block *blocks, int64_t block_count, const fcm_schulz &schulz) {
    const auto bytes = [](int64_t count, size_t size) { return count * static_cast<int64_t>(size); };
    uint64_t digest = fcm::digest_of(blocks, bytes(block_count, sizeof *blocks));
    digest = fcm::digest_of(schulz.coefficients, bytes(3 * schulz.steps, sizeof(double)), digest);
    digest = fcm::digest_of(schulz.restarts, bytes(schulz.restart_count, sizeof(int64_t)), digest);
    return fcm::digest_of(&schulz.precision, sizeof schulz.precision, digest);
}

// Tensor cores that multiply bf16 and tf32 came with this generation.
constexpr int kAmpere = 80;

fcm_status require_precision(const char *function, const fcm_context *context, const fcm_schulz &schulz, fcm_error *error) {
    if (schulz.precision == FCM_FP32 || context->capability >= kAmpere) return FCM_OK;
    return fail(error, FCM_UNSUPPORTED, {}, "%s: %s:%d, of compute capability %d.%d, multiplies in fp32; %s takes 8.0", function,
                kKindName, context->device, context->capability / 10, context->capability % 10,
                schulz.precision == FCM_BF16 ? "bf16" : "tf32");
}

}  // namespace

fcm_status device::newton_schulz_workspace(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                           int64_t block_count, const fcm_schulz *schulz, int64_t *bytes, fcm_error *) {
    *bytes = room_for(context, clients, blocks, block_count, *schulz).total;
    return FCM_OK;
}

fcm_status device::newton_schulz_prepare(fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                         int64_t block_count, const fcm_schulz *schulz, void *workspace, int64_t,
                                         fcm_error *error) {
    constexpr const char *function = "fcm_newton_schulz_prepare";
    const fcm_status supported = require_precision(function, context, *schulz, error);
    if (supported != FCM_OK) return supported;
    return on_device(function, context, error, [&] {
        const Room room = room_for(context, clients, blocks, block_count, *schulz);
        auto plan = std::make_shared<LargeSchulzPlan>(large_schulz_plan(context, blocks, block_count, *schulz));
        std::vector<char> table(static_cast<size_t>(room.sums));  // with zeros for the queue and the counts
        const auto put = [&table](int64_t at, const void *from, size_t bytes) {
            if (bytes > 0) std::memcpy(table.data() + at, from, bytes);
        };
        for (int64_t i = 0; i < 3 * schulz->steps; ++i) {
            const auto value = static_cast<float>(schulz->coefficients[i]);
            put(i * kFloat, &value, sizeof value);
        }
        put(room.blocks, blocks, static_cast<size_t>(block_count) * sizeof *blocks);
        const std::vector<int64_t> order = small_schulz_order(blocks, block_count);
        put(room.order, order.data(), order.size() * sizeof order[0]);
        std::vector<NormEntry> entries;
        schulz_norm_entries(blocks, block_count, &entries);
        put(room.entries, entries.data(), entries.size() * sizeof entries[0]);
        put(room.tables, plan->tables.data(), plan->tables.size());
        auto spans = std::make_shared<Spans>();
        for (int64_t i = 0; i < block_count; ++i) {
            spans->push_back({blocks[i].m_offset, blocks[i].rows * blocks[i].cols});
        }
        prepare(context, workspace, start_of(workspace), table,
                {digest_of(blocks, block_count, *schulz), std::move(spans), std::move(plan), clients});
        prepare_small_schulz(context, schulz->precision);
    });
}

fcm_status device::newton_schulz(fcm_context *context, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count,
                                 const fcm_schulz *schulz, double eta, const float *m, int64_t m_stride, float *o,
                                 int64_t o_stride, float *w, int64_t w_stride, void *workspace, int64_t, fcm_error *error) {
    constexpr const char *function = "fcm_newton_schulz";
    return on_device(function, context, error, [&] {
        const Prepared prepared = prepared_workspace(context, workspace, digest_of(blocks, block_count, *schulz));
        if (prepared.blocks == nullptr || clients > prepared.clients) return fail_unprepared(function, error);
        // Of all clients that were prepared for: where a call of fewer begins its sums must not be where the counts of others are.
        Room room = room_for(context, prepared.clients, blocks, block_count, *schulz);
        room.plan = small_schulz_plan(context, clients, blocks, block_count, schulz->precision);
        char *start = start_of(workspace);
        const Check bad = ask(context, Question::about(function, "m", Sought::kNotFinite, clients, m, m_stride, prepared.blocks));
        const Check out_of_range =
            ask(context, Question::about(function, "m", Sought::kOutOfRange, clients, m, m_stride, prepared.blocks));
        auto *norms = reinterpret_cast<double *>(start + room.norms);
        const SchulzOperands operands{clients,
                                      block_count,
                                      reinterpret_cast<const fcm_matrix_block *>(start + room.blocks),
                                      norms,
                                      schulz->divisor,
                                      eta,
                                      reinterpret_cast<const float *>(start),
                                      schulz->steps,
                                      m,
                                      m_stride,
                                      o,
                                      o_stride,
                                      w,
                                      w_stride};
        // The norms of all matrices are computed before the iteration, because a NaN in any matrix must leave all outputs
        // unwritten.
        launch_schulz_norms(context,
                            {clients, block_count, room.pieces, reinterpret_cast<const NormEntry *>(start + room.entries), m,
                             m_stride, reinterpret_cast<double *>(start + room.sums),
                             reinterpret_cast<unsigned *>(start + room.counts), norms},
                            bad);
        void *stream = start + room.stream;
        launch_small_schulz(context, operands, room.plan, reinterpret_cast<const int64_t *>(start + room.order),
                            room.plan.matrices, reinterpret_cast<unsigned long long *>(start + room.next), stream, bad,
                            out_of_range);
        launch_large_schulz(context, operands, *prepared.schulz, start + room.tables,
                            reinterpret_cast<unsigned *>(start + room.flags), stream, bad, out_of_range);
        return fcm_status{FCM_OK};
    });
}

}  // namespace fcm
