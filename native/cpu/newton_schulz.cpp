// Newton-Schulz of many small matrices in one call: a task a matrix, the dearest first.
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>

#include "arguments.h"
#include "backend.h"
#include "context.h"

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

int64_t floats_of(const SmallSchulz &s) { return s.width * (s.length + 2 * s.pitch + kSchulzPanel); }

double cost_of(const fcm_matrix_block &block) {
    const SmallSchulz s = shape_of(block);
    return static_cast<double>(s.width) * static_cast<double>(s.width) * static_cast<double>(3 * s.length + s.width);
}

// The workspace, in order: the blocks by cost, one norm a matrix, one scratch a thread.
struct Room {
    int64_t order = 0;
    int64_t norms = 0;
    int64_t scratch = 0;  // bytes a thread, a multiple of 64
    int64_t total = 0;
};

void check_blocks(Arguments &arguments, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count) {
    arguments.require(clients >= 0, "clients = %" PRId64 " is negative", clients)
        .require(block_count >= 0, "block_count = %" PRId64 " is negative", block_count)
        .require(block_count == 0 || blocks != nullptr, "the table of blocks is null");
    for (int64_t i = 0; arguments.ok() && i < block_count; ++i) {
        const fcm_matrix_block &b = blocks[i];
        int64_t size = 0;
        arguments.require(b.rows >= 0 && b.cols >= 0, "block %" PRId64 " is %" PRId64 " x %" PRId64, i, b.rows, b.cols)
            .require(std::min(b.rows, b.cols) <= FCM_SMALL_SIDE,
                     "block %" PRId64 ", %" PRId64 " x %" PRId64 ", has a short side over %d", i, b.rows, b.cols,
                     FCM_SMALL_SIDE)
            .require(product(b.rows, b.cols, &size), "block %" PRId64 " does not fit int64", i);
    }
}

Room room_for(Arguments &arguments, int threads, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count) {
    Room room;
    if (!arguments.ok()) return room;
    int64_t largest = 0;
    for (int64_t i = 0; i < block_count; ++i) {
        const SmallSchulz shape = shape_of(blocks[i]);
        // side <= 128, so only the long side can be too long; 2^40 keeps every product below far from overflow
        arguments.require(shape.length < (int64_t{1} << 40), "block %" PRId64 " is too long", i);
        if (!arguments.ok()) return room;
        largest = std::max(largest, floats_of(shape));
    }
    int64_t matrices = 0;
    bool fits = product(clients, block_count, &matrices) && matrices < (int64_t{1} << 40) && block_count < (int64_t{1} << 40);
    arguments.require(fits, "%" PRId64 " clients of %" PRId64 " blocks are too many", clients, block_count);
    if (!arguments.ok()) return room;
    room.order = round_up(block_count * static_cast<int64_t>(sizeof(int64_t)), 64);
    room.norms = round_up(matrices * static_cast<int64_t>(sizeof(double)), 64);
    room.scratch = round_up(largest * static_cast<int64_t>(sizeof(float)), 64);
    room.total = room.order + room.norms + threads * room.scratch;
    return room;
}

struct Operand {
    const char *name;
    const float *base;
    int64_t stride;
    int64_t fcm_matrix_block::*offset;
    bool written;
};

// What one client's blocks span from its base: all of it is treated as one operand of the batch.
void check_operand(Arguments &arguments, const Operand &operand, int64_t clients, const fcm_matrix_block *blocks,
                   int64_t block_count) {
    int64_t reach = 0;
    for (int64_t i = 0; arguments.ok() && i < block_count; ++i) {
        int64_t end = 0;
        arguments.require(blocks[i].*operand.offset >= 0 &&
                              sum(blocks[i].*operand.offset, blocks[i].rows * blocks[i].cols, &end),
                          "the offset of block %" PRId64 " in %s is %" PRId64, i, operand.name, blocks[i].*operand.offset);
        reach = std::max(reach, end);
    }
    arguments.batch(operand.name, operand.base, clients, reach, operand.stride, sizeof(float), operand.written);
    if (!operand.written) return;
    for (int64_t i = 0; arguments.ok() && i < block_count; ++i) {
        for (int64_t j = i + 1; arguments.ok() && j < block_count; ++j) {
            const int64_t a = blocks[i].*operand.offset;
            const int64_t b = blocks[j].*operand.offset;
            const bool apart = a + blocks[i].rows * blocks[i].cols <= b || b + blocks[j].rows * blocks[j].cols <= a;
            arguments.require(apart, "blocks %" PRId64 " and %" PRId64 " overlap in %s", i, j, operand.name);
        }
    }
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
}  // namespace fcm

using fcm::Arguments;

fcm_status fcm_newton_schulz_small_workspace(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                             int64_t block_count, int64_t *bytes, fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->newton_schulz_small_workspace(context->remote, clients, blocks, block_count, bytes, error);
    }
    Arguments arguments("fcm_newton_schulz_small_workspace", error);
    arguments.context(context).require(bytes != nullptr, "the place for the answer is null");
    fcm::check_blocks(arguments, clients, blocks, block_count);
    const fcm::Room room = fcm::room_for(arguments, context == nullptr ? 1 : context->pool.threads(), clients, blocks, block_count);
    if (arguments.ok()) *bytes = room.total;
    return arguments.status();
}

fcm_status fcm_newton_schulz_small(fcm_context *context, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count,
                                   const double *coefficients, int64_t steps, double divisor, double eta, const float *m,
                                   int64_t m_stride, float *o, int64_t o_stride, float *w, int64_t w_stride, void *workspace,
                                   int64_t workspace_bytes, fcm_error *error) {
    if (fcm::is_remote(context)) {
        return context->backend->newton_schulz_small(context->remote, clients, blocks, block_count, coefficients, steps,
                                                     divisor, eta, m, m_stride, o, o_stride, w, w_stride, workspace,
                                                     workspace_bytes, error);
    }
    constexpr const char *function = "fcm_newton_schulz_small";
    return fcm::guarded(function, error, [&] {
        Arguments arguments(function, error);
        arguments.context(context)
            .require(steps >= 0 && steps <= 1000, "steps = %" PRId64 " is outside [0, 1000]", steps)
            .require(steps == 0 || coefficients != nullptr, "the coefficients are null")
            .require(divisor > 0.0 && std::isfinite(divisor), "divisor = %g is not a positive number", divisor)
            .require(std::isfinite(eta), "eta = %g is not finite", eta)
            .require(o != nullptr || w != nullptr, "neither o nor w is given");
        fcm::check_blocks(arguments, clients, blocks, block_count);
        for (int64_t i = 0; arguments.ok() && i < 3 * steps; ++i) {
            arguments.require(std::isfinite(coefficients[i]), "coefficient %" PRId64 " is %g", i, coefficients[i]);
        }
        const bool in_place = o == m;
        fcm::check_operand(arguments, {"m", m, m_stride, &fcm_matrix_block::m_offset, in_place}, clients, blocks, block_count);
        if (o != nullptr && in_place) {
            arguments.require(o_stride == m_stride, "o is m but has another stride");
            for (int64_t i = 0; arguments.ok() && i < block_count; ++i) {
                arguments.require(blocks[i].m_offset == blocks[i].o_offset,
                                  "o is m but block %" PRId64 " has another offset", i);
            }
        } else if (o != nullptr) {
            fcm::check_operand(arguments, {"o", o, o_stride, &fcm_matrix_block::o_offset, true}, clients, blocks, block_count);
        }
        if (w != nullptr) {
            for (int64_t i = 0; arguments.ok() && i < block_count; ++i) {
                arguments.require(std::isfinite(blocks[i].scale), "the scale of block %" PRId64 " is %g", i, blocks[i].scale);
            }
            fcm::check_operand(arguments, {"w", w, w_stride, &fcm_matrix_block::w_offset, true}, clients, blocks, block_count);
        }
        const fcm::Room room =
            fcm::room_for(arguments, context == nullptr ? 1 : context->pool.threads(), clients, blocks, block_count);
        arguments.workspace(workspace, workspace_bytes, room.total).disjoint();
        if (!arguments.ok() || clients == 0 || block_count == 0) return arguments.status();

        auto *order = static_cast<int64_t *>(workspace);
        auto *norms = reinterpret_cast<double *>(static_cast<char *>(workspace) + room.order);
        char *scratch = static_cast<char *>(workspace) + room.order + room.norms;
        for (int64_t i = 0; i < block_count; ++i) order[i] = i;
        std::sort(order, order + block_count, [&](int64_t a, int64_t b) {
            const double cost_a = fcm::cost_of(blocks[a]);
            const double cost_b = fcm::cost_of(blocks[b]);
            return cost_a != cost_b ? cost_a > cost_b : a < b;
        });
        int64_t elements = 0;
        for (int64_t i = 0; i < block_count; ++i) elements += clients * blocks[i].rows * blocks[i].cols;
        const auto task_of = [&](int64_t i) { return fcm::Task{i % clients, order[i / clients]}; };
        const auto number_of = [&](const fcm::Task &task) { return task.client * block_count + task.block; };
        const auto matrix_of = [&](const fcm::Task &task) { return m + task.client * m_stride + blocks[task.block].m_offset; };

        // Norms first, for all of them: a NaN anywhere must leave everything unwritten.
        std::atomic<int64_t> bad{INT64_MAX};
        context->pool.run(clients * block_count, elements, [&](int64_t i, int) {
            const fcm::Task task = task_of(i);
            const int64_t size = blocks[task.block].rows * blocks[task.block].cols;
            const double norm = std::sqrt(context->kernels.sum_of_squares(size, matrix_of(task)));
            norms[number_of(task)] = norm;
            if (!std::isfinite(norm)) fcm::lower(bad, number_of(task));
        });
        const auto not_finite = [&](const char *words) {
            const fcm::Task task{bad.load() / block_count, bad.load() % block_count};
            const int64_t size = blocks[task.block].rows * blocks[task.block].cols;
            const int64_t index = context->kernels.first_not_finite(size, matrix_of(task));
            return fcm::fail(error, FCM_NOT_FINITE, {task.client, task.block, index},
                             "%s: %s, block %" PRId64 " of client %" PRId64, function, words, task.block, task.client);
        };
        if (bad.load() != INT64_MAX) return not_finite("NaN or Inf in the matrix");

        context->pool.run(clients * block_count, elements, [&](int64_t i, int thread) {
            const fcm::Task task = task_of(i);
            const fcm_matrix_block &block = blocks[task.block];
            fcm::SmallSchulz work = fcm::shape_of(block);
            work.y = reinterpret_cast<float *>(scratch + thread * room.scratch);
            work.gram = work.y + work.length * work.width;
            work.poly = work.gram + work.width * work.pitch;
            work.panel = work.poly + work.width * work.pitch;
            const double norm = norms[number_of(task)];
            const auto &kernels = context->kernels;
            kernels.schulz_load(work, matrix_of(task), block.rows, block.cols, norm == 0.0 ? 0.0 : 1.0 / (norm * divisor));
            for (int64_t step = 0; step < steps && norm != 0.0; ++step) {
                const double *c = coefficients + 3 * step;
                kernels.schulz_step(work, static_cast<float>(c[0]), static_cast<float>(c[1]), static_cast<float>(c[2]));
            }
            if (kernels.first_not_finite(work.length * work.width, work.y) >= 0) {
                fcm::lower(bad, number_of(task));
                return;
            }
            kernels.schulz_store(work, block.rows, block.cols,
                                 o == nullptr ? nullptr : o + task.client * o_stride + block.o_offset,
                                 w == nullptr ? nullptr : w + task.client * w_stride + block.w_offset,
                                 static_cast<float>(eta * block.scale));
        });
        if (bad.load() != INT64_MAX) return not_finite("the coefficients drive the iteration out of range");
        return fcm_status{FCM_OK};
    });
}
