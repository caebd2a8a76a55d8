#include "large_schulz.h"

#include <algorithm>
#include <cstring>

#include "device_functions.h"
#include "multiply.h"
#include "pieces.h"
#include "schulz_program.h"

namespace fcm {
namespace {

// Elements of a matrix of all clients that are processed at once: enough for any cache and any number of threads.
constexpr int64_t kAtOnce = int64_t{1} << 24;
constexpr int64_t kFloat = sizeof(float);

// The workspace, in order: for each client X, Y and the squares; then the workspace of the products.
struct Room {
    int64_t size;    // of a matrix
    int64_t side;    // of a square
    int64_t client;  // floats
    int64_t clients;
};

Room room_of(int64_t clients, const fcm_matrix_block &block) {
    const int64_t size = block.rows * block.cols;
    const int64_t side = side_of(block);
    return {size, side, kSchulzMatrices * size + squares_of(block) * side * side,
            std::clamp<int64_t>(kAtOnce / std::max<int64_t>(1, size), 1, clients)};
}

int64_t offset_of(const Room &room, SchulzOperand operand) {
    const auto number = static_cast<int64_t>(operand);
    if (number < kSchulzMatrices) return number * room.size;
    return kSchulzMatrices * room.size + (number - kSchulzMatrices) * room.side * room.side;
}

int64_t multiply_bytes(const fcm_context *context, int64_t clients, const fcm_matrix_block &block, const fcm_schulz &schulz) {
    int64_t most = 0;
    visit_products(block, schulz, [&](int64_t, const SchulzProduct &p) {
        const SchulzSides sides = sides_of(block, p);
        int64_t bytes = 0;
        device::multiply_workspace(context, clients, sides.rows, sides.cols, sides.depth, &bytes, nullptr);
        most = std::max(most, bytes);
    });
    return most;
}

}  // namespace

int64_t large_schulz_bytes(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks, int64_t block_count,
                           const fcm_schulz &schulz) {
    int64_t most = 0;
    for (int64_t i = 0; i < block_count; ++i) {
        if (is_small(blocks[i]) || clients == 0) continue;
        const Room room = room_of(clients, blocks[i]);
        // The last clients may be fewer, and fewer clients may need more room for their products.
        const int64_t last = clients % room.clients;
        const int64_t products = std::max(multiply_bytes(context, room.clients, blocks[i], schulz),
                                          multiply_bytes(context, last, blocks[i], schulz));
        most = std::max(most, room.clients * room.client * kFloat + products);
    }
    return most;
}

int64_t large_schulz(fcm_context *context, const LargeSchulz &work) {
    const fcm_matrix_block &block = work.block;
    const Room room = room_of(work.clients, block);
    const Kernels &kernels = context->kernels;
    auto *rooms = static_cast<float *>(work.workspace);
    float *products = rooms + room.clients * room.client;
    int64_t bad = -1;
    for (int64_t first = 0; first < work.clients; first += room.clients) {
        const int64_t clients = std::min(room.clients, work.clients - first);
        const auto at = [&](SchulzOperand operand) { return rooms + offset_of(room, operand); };
        const float *m = work.m + first * work.m_stride + block.m_offset;
        for_pieces(context, clients, room.size, [&](int64_t k, int64_t start, int64_t length, int64_t) {
            const double norm = work.norms[(first + k) * work.norm_stride];
            float *x = at(SchulzOperand::kX) + k * room.client + start;
            kernels.scale(length, norm == 0.0 ? 0.0 : 1.0 / (norm * work.schulz.divisor), m + k * work.m_stride + start, x);
            if (work.schulz.precision == FCM_BF16) kernels.round_to_bf16(length, x);
        });
        const auto multiply = [&](int64_t, const SchulzProduct &p) {
            const SchulzSides sides = sides_of(block, p);
            const int64_t a_width = is_matrix(p.a) ? block.cols : room.side;
            const int64_t b_width = is_matrix(p.b) ? block.cols : room.side;
            const Product product{sides.rows,
                                  sides.cols,
                                  sides.depth,
                                  p.symmetric,
                                  at(p.a),
                                  p.a_transposed ? 1 : a_width,
                                  p.a_transposed ? a_width : 1,
                                  at(p.b),
                                  p.b_transposed ? 1 : b_width,
                                  p.b_transposed ? b_width : 1,
                                  p.base == SchulzOperand::kNone ? nullptr : at(p.base),
                                  at(p.out),
                                  static_cast<float>(p.base_factor),
                                  static_cast<float>(p.product_factor),
                                  work.schulz.precision};
            multiply_all(context, clients, product, {room.client, room.client, room.client, room.client}, products);
            if (p.also == SchulzOperand::kNone) return;
            const int64_t side = room.side;
            context->pool.run(clients, clients * side * side, [&](int64_t k, int) {
                float *also = at(p.also) + k * room.client;
                std::memcpy(also, at(p.out) + k * room.client, static_cast<size_t>(side * side) * sizeof(float));
                for (int64_t i = 0; i < side; ++i) {
                    float &element = also[i * (side + 1)];
                    element += static_cast<float>(p.diagonal);
                    if (work.schulz.precision == FCM_BF16) kernels.round_to_bf16(1, &element);
                }
            });
        };
        const float *x = at(visit_products(block, work.schulz, multiply));
        for (int64_t k = 0; k < clients; ++k) {
            if (first_not_finite(context, 1, room.size, x + k * room.client, room.client).client >= 0) {
                if (bad < 0) bad = first + k;
                continue;
            }
            for_pieces(context, 1, room.size, [&](int64_t, int64_t start, int64_t length, int64_t) {
                const float *from = x + k * room.client + start;
                if (work.w != nullptr) {
                    kernels.step(length, work.eta * block.scale, from,
                                 work.w + (first + k) * work.w_stride + block.w_offset + start);
                }
                if (work.o != nullptr) {
                    std::memcpy(work.o + (first + k) * work.o_stride + block.o_offset + start, from,
                                static_cast<size_t>(length) * sizeof(float));
                }
            });
        }
    }
    return bad;
}

}  // namespace fcm
