// Newton-Schulz for matrices of any sizes in one call on the CPU: first the small ones, one task per matrix, the most
// expensive first, then the others. A result does not depend on the number of threads.
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>

#include "context.h"
#include "device_functions.h"
#include "failure.h"
#include "large_schulz.h"
#include "pieces.h"
#include "schulz_program.h"

namespace fcm {
namespace {

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

SmallSchulz shape_of(const fcm_matrix_block &block) {
    SmallSchulz shape{};
    shape.side = std::min(block.rows, block.cols);
    shape.width = round_up(shape.side, kSchulzPad);
    shape.length = std::max(block.rows, block.cols);
    shape.pitch = (shape.width / kSchulzPad | 1) * kSchulzPad;
    return shape;
}

int64_t floats_of(const SmallSchulz &s, int32_t precision) {
    return s.width * (s.length + 2 * s.pitch + kSchulzPanel) + (precision == FCM_FP32 ? 0 : kSchulzPairs);
}

double cost_of(const fcm_matrix_block &block) {
    const SmallSchulz s = shape_of(block);
    return static_cast<double>(s.width) * static_cast<double>(s.width) * static_cast<double>(3 * s.length + s.width);
}

// The workspace, in order: the small blocks sorted by cost, one norm per matrix, then one scratch buffer per thread for the
// small blocks, which are done before the others, whose room is the same.
struct Room {
    int64_t order = 0;
    int64_t norms = 0;
    int64_t scratch = 0;  // bytes per thread, a multiple of 64
    int64_t total = 0;
};

Room room_for(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count,
              const fcm_schulz &schulz) {
    Room room;
    int64_t largest = 0;
    for (int64_t i = 0; i < block_count; ++i) {
        if (is_small(blocks[i])) largest = std::max(largest, floats_of(shape_of(blocks[i]), schulz.precision));
    }
    room.order = round_up(block_count * static_cast<int64_t>(sizeof(int64_t)), 64);
    room.norms = round_up(clients * block_count * static_cast<int64_t>(sizeof(double)), 64);
    room.scratch = round_up(largest * static_cast<int64_t>(sizeof(float)), 64);
    room.total = room.order + room.norms +
                 std::max(context->pool.threads() * room.scratch,
                          round_up(large_schulz_bytes(context, clients, blocks, block_count, schulz), 8));
    return room;
}

void lower(std::atomic<int64_t> &smallest, int64_t value) {
    int64_t known = smallest.load(std::memory_order_relaxed);
    while (value < known && !smallest.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
    }
}

// A call, and the parts of its workspace.
struct Call {
    fcm_context *context;
    int64_t clients;
    const fcm_matrix_block *blocks;
    int64_t block_count;
    const fcm_schulz &schulz;
    double eta;
    const float *m;
    int64_t m_stride;
    float *o;
    int64_t o_stride;
    float *w;
    int64_t w_stride;
    int64_t *order;  // of the small blocks
    int64_t small_count;
    double *norms;
    char *room;
    int64_t scratch;

    struct Task {
        int64_t client;
        int64_t block;
    };

    Task task(int64_t i) const { return {i % clients, order[i / clients]}; }
    // Numbers ascend in the order in which faults are reported: by client, then by block.
    int64_t number(const Task &t) const { return t.client * block_count + t.block; }
    Task numbered(int64_t number) const { return {number / block_count, number % block_count}; }
    int64_t size(const Task &t) const { return blocks[t.block].rows * blocks[t.block].cols; }
    const float *matrix(const Task &t) const { return m + t.client * m_stride + blocks[t.block].m_offset; }
    int64_t small_elements() const {
        int64_t elements = 0;
        for (int64_t i = 0; i < small_count; ++i) elements += clients * size({0, order[i]});
        return elements;
    }
};

// The most expensive first.
int64_t sort_small(const fcm_matrix_block *blocks, int64_t block_count, int64_t *order) {
    int64_t count = 0;
    for (int64_t i = 0; i < block_count; ++i) {
        if (is_small(blocks[i])) order[count++] = i;
    }
    std::sort(order, order + count, [&](int64_t a, int64_t b) {
        const double cost_a = cost_of(blocks[a]);
        const double cost_b = cost_of(blocks[b]);
        return cost_a != cost_b ? cost_a > cost_b : a < b;
    });
    return count;
}

// Returns the number of the first matrix whose norm is not finite, INT64_MAX if there is none.
int64_t compute_norms(const Call &call) {
    std::atomic<int64_t> bad{INT64_MAX};
    const Kernels &kernels = call.context->kernels;
    call.context->pool.run(call.clients * call.small_count, call.small_elements(), [&](int64_t i, int) {
        const Call::Task task = call.task(i);
        const double norm = std::sqrt(kernels.sum_of_squares(call.size(task), call.matrix(task)));
        call.norms[call.number(task)] = norm;
        if (!std::isfinite(norm)) lower(bad, call.number(task));
    });
    auto *sums = reinterpret_cast<double *>(call.room);
    for (int64_t i = 0; i < call.block_count; ++i) {
        for (int64_t k = 0; !is_small(call.blocks[i]) && k < call.clients; ++k) {
            const Call::Task task{k, i};
            sum_pieces(call.context, 1, call.size(task), call.matrix(task), 0, sums);
            const double norm = norm_of(sums, 0, pieces_of(call.size(task)));
            call.norms[call.number(task)] = norm;
            if (!std::isfinite(norm)) lower(bad, call.number(task));
        }
    }
    return bad.load();
}

// Both return the number of the first matrix that left the range of float, INT64_MAX if there is none.
int64_t iterate_small(const Call &call) {
    std::atomic<int64_t> bad{INT64_MAX};
    call.context->pool.run(call.clients * call.small_count, call.small_elements(), [&](int64_t i, int thread) {
        const Call::Task task = call.task(i);
        const fcm_matrix_block &block = call.blocks[task.block];
        SmallSchulz work = shape_of(block);
        work.y = reinterpret_cast<float *>(call.room + thread * call.scratch);
        work.gram = work.y + work.length * work.width;
        work.poly = work.gram + work.width * work.pitch;
        work.panel = work.poly + work.width * work.pitch;
        work.pairs = work.panel + work.width * kSchulzPanel;  // none in fp32
        work.precision = call.schulz.precision;
        const double norm = call.norms[call.number(task)];
        const Kernels &kernels = call.context->kernels;
        kernels.schulz_load(work, call.matrix(task), block.rows, block.cols,
                            norm == 0.0 ? 0.0 : 1.0 / (norm * call.schulz.divisor));
        for (int64_t step = 0; step < call.schulz.steps && norm != 0.0; ++step) {
            const double *c = call.schulz.coefficients + 3 * step;
            kernels.schulz_step(work, static_cast<float>(c[0]), static_cast<float>(c[1]), static_cast<float>(c[2]));
        }
        if (kernels.first_not_finite(work.length * work.width, work.y) >= 0) {
            lower(bad, call.number(task));
            return;
        }
        kernels.schulz_store(work, block.rows, block.cols,
                             call.o == nullptr ? nullptr : call.o + task.client * call.o_stride + block.o_offset,
                             call.w == nullptr ? nullptr : call.w + task.client * call.w_stride + block.w_offset,
                             static_cast<float>(call.eta * block.scale));
    });
    return bad.load();
}

int64_t iterate_large(const Call &call) {
    int64_t bad = INT64_MAX;
    for (int64_t i = 0; i < call.block_count; ++i) {
        if (is_small(call.blocks[i]) || call.size({0, i}) == 0) continue;
        const LargeSchulz work{call.blocks[i], call.schulz, call.clients, call.eta,   call.m,         call.m_stride,    call.o,
                               call.o_stride,  call.w,      call.w_stride, call.norms + i, call.block_count, call.room};
        const int64_t client = large_schulz(call.context, work);
        if (client >= 0) bad = std::min(bad, call.number({client, i}));
    }
    return bad;
}

}  // namespace

fcm_status device::newton_schulz_workspace(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                           int64_t block_count, const fcm_schulz *schulz, int64_t *bytes, fcm_error *) {
    *bytes = room_for(context, clients, blocks, block_count, *schulz).total;
    return FCM_OK;
}

// The order of the blocks is sorted in no time, by each call.
fcm_status device::newton_schulz_prepare(fcm_context *, int64_t, const fcm_matrix_block *, int64_t, const fcm_schulz *, void *,
                                         int64_t, fcm_error *) {
    return FCM_OK;
}

fcm_status device::newton_schulz(fcm_context *context, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count,
                                 const fcm_schulz *schulz, double eta, const float *m, int64_t m_stride, float *o,
                                 int64_t o_stride, float *w, int64_t w_stride, void *workspace, int64_t, fcm_error *error) {
    constexpr const char *function = "fcm_newton_schulz";
    const Room room = room_for(context, clients, blocks, block_count, *schulz);
    auto *order = static_cast<int64_t *>(workspace);
    auto *norms = reinterpret_cast<double *>(static_cast<char *>(workspace) + room.order);
    const Call call{context,  clients, blocks,   block_count, *schulz,
                    eta,      m,       m_stride, o,           o_stride,
                    w,        w_stride, order,   sort_small(blocks, block_count, order), norms,
                    static_cast<char *>(workspace) + room.order + room.norms, room.scratch};

    // All norms are computed first, because a NaN in any matrix must leave all outputs unwritten.
    int64_t bad = compute_norms(call);
    if (bad != INT64_MAX) {
        const Call::Task task = call.numbered(bad);
        const float *matrix = call.matrix(task);
        const int64_t index = context->kernels.first_not_finite(call.size(task), matrix);
        return fail_not_finite(function, "m", {task.client, task.block, index, matrix + index}, error);
    }
    bad = std::min(iterate_small(call), iterate_large(call));
    if (bad != INT64_MAX) {
        const Call::Task task = call.numbered(bad);
        return fail_out_of_range(function, {task.client, task.block, -1, call.matrix(task)}, error);
    }
    return FCM_OK;
}

}  // namespace fcm
