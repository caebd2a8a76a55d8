// Newton-Schulz for many small matrices in one call on the CPU: one task per matrix, the most expensive first. A result does
// not depend on the number of threads.
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>

#include "context.h"
#include "device_functions.h"
#include "failure.h"

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

int64_t floats_of(const SmallSchulz &s) { return s.width * (s.length + 2 * s.pitch + kSchulzPanel) + kSchulzPairs; }

double cost_of(const fcm_matrix_block &block) {
    const SmallSchulz s = shape_of(block);
    return static_cast<double>(s.width) * static_cast<double>(s.width) * static_cast<double>(3 * s.length + s.width);
}

// The workspace, in order: the blocks sorted by cost, one norm per matrix, one scratch buffer per thread.
struct Room {
    int64_t order = 0;
    int64_t norms = 0;
    int64_t scratch = 0;  // bytes per thread, a multiple of 64
    int64_t total = 0;
};

Room room_for(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count) {
    Room room;
    int64_t largest = 0;
    for (int64_t i = 0; i < block_count; ++i) largest = std::max(largest, floats_of(shape_of(blocks[i])));
    room.order = round_up(block_count * static_cast<int64_t>(sizeof(int64_t)), 64);
    room.norms = round_up(clients * block_count * static_cast<int64_t>(sizeof(double)), 64);
    room.scratch = round_up(largest * static_cast<int64_t>(sizeof(float)), 64);
    room.total = room.order + room.norms + context->pool.threads() * room.scratch;
    return room;
}

struct Task {
    int64_t client;
    int64_t block;
};

void lower(std::atomic<int64_t> &smallest, int64_t value) {
    int64_t known = smallest.load(std::memory_order_relaxed);
    while (value < known && !smallest.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
    }
}

}  // namespace

fcm_status device::newton_schulz_small_workspace(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                                 int64_t block_count, int64_t *bytes, fcm_error *) {
    *bytes = room_for(context, clients, blocks, block_count).total;
    return FCM_OK;
}

// The order of the blocks is sorted in no time, by each call.
fcm_status device::newton_schulz_small_prepare(fcm_context *, int64_t, const fcm_matrix_block *, int64_t, const double *,
                                               int64_t, void *, int64_t, fcm_error *) {
    return FCM_OK;
}

fcm_status device::newton_schulz_small(fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                       int64_t block_count, const double *coefficients, int64_t steps, double divisor,
                                       double eta, const float *m, int64_t m_stride, float *o, int64_t o_stride, float *w,
                                       int64_t w_stride, void *workspace, int64_t, fcm_error *error) {
    const Room room = room_for(context, clients, blocks, block_count);
    auto *order = static_cast<int64_t *>(workspace);
    auto *norms = reinterpret_cast<double *>(static_cast<char *>(workspace) + room.order);
    char *scratch = static_cast<char *>(workspace) + room.order + room.norms;
    for (int64_t i = 0; i < block_count; ++i) order[i] = i;
    std::sort(order, order + block_count, [&](int64_t a, int64_t b) {
        const double cost_a = cost_of(blocks[a]);
        const double cost_b = cost_of(blocks[b]);
        return cost_a != cost_b ? cost_a > cost_b : a < b;
    });
    int64_t elements = 0;
    for (int64_t i = 0; i < block_count; ++i) elements += clients * blocks[i].rows * blocks[i].cols;
    const auto task_of = [&](int64_t i) { return Task{i % clients, order[i / clients]}; };
    const auto number_of = [&](const Task &task) { return task.client * block_count + task.block; };
    const auto matrix_of = [&](const Task &task) { return m + task.client * m_stride + blocks[task.block].m_offset; };

    // All norms are computed first, because a NaN in any matrix must leave all outputs unwritten.
    std::atomic<int64_t> bad{INT64_MAX};
    context->pool.run(clients * block_count, elements, [&](int64_t i, int) {
        const Task task = task_of(i);
        const int64_t size = blocks[task.block].rows * blocks[task.block].cols;
        const double norm = std::sqrt(context->kernels.sum_of_squares(size, matrix_of(task)));
        norms[number_of(task)] = norm;
        if (!std::isfinite(norm)) lower(bad, number_of(task));
    });
    constexpr const char *function = "fcm_newton_schulz_small";
    const auto bad_task = [&] { return Task{bad.load() / block_count, bad.load() % block_count}; };
    if (bad.load() != INT64_MAX) {
        const Task task = bad_task();
        const float *matrix = matrix_of(task);
        const int64_t size = blocks[task.block].rows * blocks[task.block].cols;
        const int64_t index = context->kernels.first_not_finite(size, matrix);
        return fail_not_finite(function, "m", {task.client, task.block, index, matrix + index}, error);
    }

    context->pool.run(clients * block_count, elements, [&](int64_t i, int thread) {
        const Task task = task_of(i);
        const fcm_matrix_block &block = blocks[task.block];
        SmallSchulz work = shape_of(block);
        work.y = reinterpret_cast<float *>(scratch + thread * room.scratch);
        work.gram = work.y + work.length * work.width;
        work.poly = work.gram + work.width * work.pitch;
        work.panel = work.poly + work.width * work.pitch;
        work.pairs = work.panel + work.width * kSchulzPanel;
        work.precision = FCM_FP32;
        const double norm = norms[number_of(task)];
        const auto &kernels = context->kernels;
        kernels.schulz_load(work, matrix_of(task), block.rows, block.cols, norm == 0.0 ? 0.0 : 1.0 / (norm * divisor));
        for (int64_t step = 0; step < steps && norm != 0.0; ++step) {
            const double *c = coefficients + 3 * step;
            kernels.schulz_step(work, static_cast<float>(c[0]), static_cast<float>(c[1]), static_cast<float>(c[2]));
        }
        if (kernels.first_not_finite(work.length * work.width, work.y) >= 0) {
            lower(bad, number_of(task));
            return;
        }
        kernels.schulz_store(work, block.rows, block.cols,
                             o == nullptr ? nullptr : o + task.client * o_stride + block.o_offset,
                             w == nullptr ? nullptr : w + task.client * w_stride + block.w_offset,
                             static_cast<float>(eta * block.scale));
    });
    if (bad.load() != INT64_MAX) {
        const Task task = bad_task();
        return fail_out_of_range(function, {task.client, task.block, -1, matrix_of(task)}, error);
    }
    return FCM_OK;
}

}  // namespace fcm
