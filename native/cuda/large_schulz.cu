// Newton-Schulz by grouped products: X = M / ||M|| of all matrices in one launch, the products of schulz_program.h in one launch
// per stage, and the step along the results in one.
#include "large_schulz.h"

#include <algorithm>
#include <cstring>

#include "context.h"
#include "device.h"
#include "products.h"
#include "schulz_program.h"
#include "sums.h"

namespace fcm {

// A matrix of a pass. Offsets x and result are from the start of a client's room.
struct LargeMatrix {
    int64_t block;
    int64_t n;
    int64_t x;
    int64_t result;
    int64_t first_chunk;  // among the chunks of a client
};

// A launch over the elements of all matrices of a pass.
struct LargeMatrices {
    SchulzOperands of;
    int64_t first_client;
    int64_t clients;
    const LargeMatrix *listed;
    int64_t count;
    int64_t chunks;  // of a client
    float *room;
    int64_t stride;
    unsigned *flags;  // one for each matrix of each client: its result is not finite
    Check bad;
    Check out_of_range;
};

// A chunk of a matrix: the first element of this thread, and how many of its four there are.
struct LargeChunk {
    int64_t client;  // of the pass
    int64_t number;  // of the matrix in the pass
    LargeMatrix matrix;
    int64_t first;
    int count;
};

__device__ __forceinline__ LargeChunk chunk_of(const LargeMatrices &s, int64_t task) {
    const int64_t client = task / s.chunks;
    const int64_t chunk = task - client * s.chunks;
    const int64_t number = entry_at(s.listed, s.count, &LargeMatrix::first_chunk, chunk);
    const LargeMatrix matrix = s.listed[number];
    const int64_t first = (chunk - matrix.first_chunk) * kChunk + 4 * static_cast<int64_t>(threadIdx.x);
    const int64_t left = matrix.n - first;
    return {client, number, matrix, first, left >= 4 ? 4 : left > 0 ? static_cast<int>(left) : 0};
}

template <int W>
__device__ __forceinline__ void load_scaled(double factor, const float *m, float *x) {
    float value[W];
    load<W>(m, value);
#pragma unroll
    for (int i = 0; i < W; ++i) value[i] = static_cast<float>(factor * static_cast<double>(value[i]));
    store<W>(x, value);
}

template <int W>
__device__ __forceinline__ void store_result(const float *x, float *o, float *w, double step) {
    if (w != nullptr) step_along<W>({true, step}, x, w);
    if (o == nullptr) return;
    float value[W];
    load<W>(x, value);
    store<W>(o, value);
}

}  // namespace fcm

using fcm::kThreads;

extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_schulz_load(const FCM_GRID_CONSTANT fcm::LargeMatrices s) {
    if (s.bad.status->ticket <= s.bad.ticket) return;
    for (int64_t task = blockIdx.x; task < s.clients * s.chunks; task += gridDim.x) {
        const fcm::LargeChunk c = fcm::chunk_of(s, task);
        if (c.first == 0) s.flags[c.client * s.count + c.number] = 0;
        const int64_t client = s.first_client + c.client;
        const double norm = s.of.norms[client * s.of.block_count + c.matrix.block];
        const double factor = norm == 0.0 ? 0.0 : 1.0 / (norm * s.of.divisor);
        const float *m = s.of.m + client * s.of.m_stride + s.of.blocks[c.matrix.block].m_offset + c.first;
        float *x = s.room + c.client * s.stride + c.matrix.x + c.first;
        if (c.count == 4 && fcm::is_vector_aligned(m)) {
            fcm::load_scaled<4>(factor, m, x);
        } else {
            for (int i = 0; i < c.count; ++i) fcm::load_scaled<1>(factor, m + i, x + i);
        }
    }
}

extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_schulz_finish(const FCM_GRID_CONSTANT fcm::LargeMatrices s) {
    SHARED(int, stop, [1]);
    // A matrix out of range does not keep the others from being stepped. Blocks report those while others begin, so the status
    // is read by an atomic operation, which leaves it as it is.
    if (threadIdx.x == 0) stop[0] = atomicMin(&s.bad.status->ticket, fcm::kNothing) <= s.bad.ticket ? 1 : 0;
    __syncthreads();
    if (stop[0] != 0) return;
    for (int64_t task = blockIdx.x; task < s.clients * s.chunks; task += gridDim.x) {
        const fcm::LargeChunk c = fcm::chunk_of(s, task);
        const int64_t client = s.first_client + c.client;
        const fcm_matrix_block &block = s.of.blocks[c.matrix.block];
        if (s.flags[c.client * s.count + c.number] != 0) {
            if (c.first == 0) s.out_of_range.found(s.of.m + client * s.of.m_stride + block.m_offset);
            continue;
        }
        const float *x = s.room + c.client * s.stride + c.matrix.result + c.first;
        float *o = s.of.o == nullptr ? nullptr : s.of.o + client * s.of.o_stride + block.o_offset + c.first;
        float *w = s.of.w == nullptr ? nullptr : s.of.w + client * s.of.w_stride + block.w_offset + c.first;
        const double step = s.of.eta * block.scale;
        if (c.count == 4 && fcm::is_vector_aligned(o) && fcm::is_vector_aligned(w)) {
            fcm::store_result<4>(x, o, w, step);
        } else {
            for (int i = 0; i < c.count; ++i) {
                fcm::store_result<1>(x + i, o == nullptr ? nullptr : o + i, w == nullptr ? nullptr : w + i, step);
            }
        }
    }
}

namespace fcm {
namespace {

// Vectors, and whole sectors of memory, begin at multiples of this.
constexpr int64_t kAlignment = 32;
// What a client's room should not exceed: with 16 clients 8 GiB, or an eighth of the memory of the device.
constexpr int64_t kMostElements = int64_t{1} << 27;
constexpr int64_t kUsualClients = 16;

int64_t aligned(int64_t elements) { return parts_of(elements, kAlignment) * kAlignment; }
int64_t side_of(const fcm_matrix_block &block) { return std::min(block.rows, block.cols); }
bool is_matrix(SchulzOperand operand) { return static_cast<int64_t>(operand) < kSchulzMatrices; }
bool is_large(const fcm_matrix_block &block) { return !is_small(block) && block.rows > 0 && block.cols > 0; }

// A matrix in a client's room: X, Y, then the squares.
int64_t offset_of(const fcm_matrix_block &block, SchulzOperand operand) {
    const auto number = static_cast<int64_t>(operand);
    const int64_t matrix = aligned(block.rows * block.cols);
    if (number < kSchulzMatrices) return number * matrix;
    return kSchulzMatrices * matrix + (number - kSchulzMatrices) * aligned(side_of(block) * side_of(block));
}
int64_t elements_of(const fcm_matrix_block &block) {
    return kSchulzMatrices * aligned(block.rows * block.cols) + squares_of(block) * aligned(side_of(block) * side_of(block));
}

int64_t most_elements(const fcm_context *context) {
    return std::min(kMostElements, context->memory_bytes / 8 / static_cast<int64_t>(sizeof(float)) / kUsualClients);
}
int64_t clients_at_once(const fcm_context *context, int64_t stride) {
    return std::max<int64_t>(1, kUsualClients * most_elements(context) / stride);
}

// Calls visit(first, end, stride) for the passes: ranges of blocks, in which those that are not large are skipped.
template <class Visit>
void for_passes(const fcm_context *context, const fcm_matrix_block *blocks, int64_t block_count, Visit &&visit) {
    int64_t first = 0;
    int64_t stride = 0;
    for (int64_t i = 0; i < block_count; ++i) {
        if (!is_large(blocks[i])) continue;
        const int64_t elements = elements_of(blocks[i]);
        if (stride > 0 && stride + elements > most_elements(context)) {
            visit(first, i, stride);
            first = i;
            stride = 0;
        }
        stride += elements;
    }
    if (stride > 0) visit(first, block_count, stride);
}

ProductEntry entry_of(const fcm_matrix_block &block, const SchulzProduct &p, int64_t at) {
    const int64_t side = side_of(block);
    const auto place = [&](SchulzOperand operand) { return operand == SchulzOperand::kNone ? -1 : at + offset_of(block, operand); };
    const auto width = [&](SchulzOperand operand) { return is_matrix(operand) ? block.cols : side; };
    ProductEntry entry{};
    entry.rows = is_matrix(p.out) ? block.rows : side;
    entry.cols = is_matrix(p.out) ? block.cols : side;
    entry.depth = !is_matrix(p.a) ? side : p.a_transposed ? block.rows : block.cols;
    entry.a = place(p.a);
    entry.a_row = p.a_transposed ? 1 : width(p.a);
    entry.a_col = p.a_transposed ? width(p.a) : 1;
    entry.b = place(p.b);
    entry.b_row = p.b_transposed ? 1 : width(p.b);
    entry.b_col = p.b_transposed ? width(p.b) : 1;
    entry.base = place(p.base);
    entry.out = place(p.out);
    entry.also = place(p.also);
    entry.matrix = -1;
    entry.product_factor = static_cast<float>(p.product_factor);
    entry.base_factor = static_cast<float>(p.base_factor);
    entry.diagonal = static_cast<float>(p.diagonal);
    entry.symmetric = p.symmetric ? 1 : 0;
    return entry;
}

template <class T>
int64_t append(std::vector<char> &tables, const std::vector<T> &entries) {
    const auto at = tables.size();
    tables.resize(at + entries.size() * sizeof(T));
    std::memcpy(tables.data() + at, entries.data(), entries.size() * sizeof(T));
    return static_cast<int64_t>(at);
}

LargePass pass_of(const fcm_context *context, const fcm_matrix_block *blocks, int64_t first, int64_t end, int64_t stride,
                  const fcm_schulz &schulz, std::vector<char> &tables) {
    std::vector<LargeMatrix> matrices;
    std::vector<std::vector<ProductEntry>> stages;
    int64_t at = 0;
    int64_t chunks = 0;
    for (int64_t i = first; i < end; ++i) {
        if (!is_large(blocks[i])) continue;
        int64_t last = -1;
        const SchulzOperand result = visit_products(blocks[i], schulz, [&](int64_t stage, const SchulzProduct &p) {
            if (static_cast<int64_t>(stages.size()) <= stage) stages.emplace_back();
            stages[static_cast<size_t>(stage)].push_back(entry_of(blocks[i], p, at));
            last = stage;
        });
        // The last product of a matrix is alone in its stage.
        if (last >= 0) stages[static_cast<size_t>(last)].back().matrix = static_cast<int64_t>(matrices.size());
        const int64_t n = blocks[i].rows * blocks[i].cols;
        matrices.push_back({i, n, at + offset_of(blocks[i], SchulzOperand::kX), at + offset_of(blocks[i], result), chunks});
        chunks += parts_of(n, kChunk);
        at += elements_of(blocks[i]);
    }
    LargePass pass{append(tables, matrices), static_cast<int64_t>(matrices.size()), chunks, stride,
                   clients_at_once(context, stride), {}};
    for (auto &entries : stages) {
        const int64_t tiles = number_tiles(entries);
        const auto count = static_cast<int64_t>(entries.size());
        pass.stages.push_back({append(tables, entries), count, tiles});
    }
    return pass;
}

}  // namespace

LargeSchulzSizes large_schulz_sizes(const fcm_context *context, int64_t clients, const fcm_matrix_block *blocks,
                                    int64_t block_count, const fcm_schulz &schulz) {
    LargeSchulzSizes sizes;
    for_passes(context, blocks, block_count, [&](int64_t first, int64_t end, int64_t stride) {
        int64_t matrices = 0;
        int64_t products = 0;
        for (int64_t i = first; i < end; ++i) {
            if (!is_large(blocks[i])) continue;
            ++matrices;
            visit_products(blocks[i], schulz, [&](int64_t, const SchulzProduct &) { ++products; });
        }
        const int64_t at_once = std::min(clients, clients_at_once(context, stride));
        sizes.table_bytes += matrices * static_cast<int64_t>(sizeof(LargeMatrix)) +
                             products * static_cast<int64_t>(sizeof(ProductEntry));
        sizes.flags = std::max(sizes.flags, at_once * matrices);
        sizes.room_bytes = std::max(sizes.room_bytes, at_once * stride * static_cast<int64_t>(sizeof(float)));
    });
    return sizes;
}

LargeSchulzPlan large_schulz_plan(const fcm_context *context, const fcm_matrix_block *blocks, int64_t block_count,
                                  const fcm_schulz &schulz) {
    LargeSchulzPlan plan;
    for_passes(context, blocks, block_count, [&](int64_t first, int64_t end, int64_t stride) {
        plan.passes.push_back(pass_of(context, blocks, first, end, stride, schulz, plan.tables));
    });
    return plan;
}

void launch_large_schulz(const fcm_context *context, const SchulzOperands &operands, const LargeSchulzPlan &plan,
                         const char *tables, unsigned *flags, float *room, Check bad, Check out_of_range) {
    for (const LargePass &pass : plan.passes) {
        for (int64_t first = 0; first < operands.clients; first += pass.clients) {
            const int64_t clients = std::min(pass.clients, operands.clients - first);
            const LargeMatrices matrices{operands,    first, clients,     reinterpret_cast<const LargeMatrix *>(tables + pass.table),
                                         pass.count,  pass.chunks, room,  pass.stride,
                                         flags,       bad,   out_of_range};
            const unsigned grid = blocks_for(clients * pass.chunks);
            LAUNCH(fcm_k_schulz_load, grid, kThreads, 0, context->stream, matrices);
            launched("fcm_k_schulz_load", clients, pass.chunks);
            Products products{};
            products.clients = clients;
            products.a = products.b = products.base = products.out = room;
            products.a_stride = products.b_stride = products.base_stride = products.out_stride = pass.stride;
            products.flags = flags;
            products.flag_stride = pass.count;
            products.stop_from = bad.ticket;
            products.status = context->status;
            for (const LargePass::Stage &stage : pass.stages) {
                products.listed = reinterpret_cast<const ProductEntry *>(tables + stage.table);
                products.count = stage.count;
                products.tiles = stage.tiles;
                launch_products(context, products);
            }
            LAUNCH(fcm_k_schulz_finish, grid, kThreads, 0, context->stream, matrices);
            launched("fcm_k_schulz_finish", clients, pass.chunks);
        }
    }
}

}  // namespace fcm
