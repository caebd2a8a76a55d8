// Newton-Schulz by grouped products: X = M / ||M|| of all matrices in one launch, the products of schulz_program.h in one launch
// per stage, and the step along the results in one.
#include "large_schulz.h"

#include <algorithm>
#include <cstring>

#include "bf16.h"
#include "context.h"
#include "device.h"
#include "products.h"
#include "schulz_program.h"
#include "sums.h"

namespace fcm {

// A matrix of a pass. Offsets x and result are from the start of a client's room, where rows are `pitch` elements apart.
struct LargeMatrix {
    int64_t block;
    int64_t cols;
    int64_t pitch;
    int64_t n;  // elements of the room: rows * pitch
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
    void *room;
    int64_t stride;
    unsigned *flags;  // one for each matrix of each client: its result is not finite
    Check bad;
    Check out_of_range;
};

// The elements of a matrix that a thread takes: `count` of up to four in a row, at `first` of the room and `at` of the matrix
// without gaps.
struct LargeChunk {
    int64_t client;  // of the pass
    int64_t number;  // of the matrix in the pass
    LargeMatrix matrix;
    int64_t first;
    int64_t at;
    int count;
};

__device__ __forceinline__ LargeChunk chunk_of(const LargeMatrices &s, int64_t task) {
    const int64_t client = task / s.chunks;
    const int64_t chunk = task - client * s.chunks;
    const int64_t number = entry_at(s.listed, s.count, &LargeMatrix::first_chunk, chunk);
    const LargeMatrix matrix = s.listed[number];
    const int64_t first = (chunk - matrix.first_chunk) * kChunk + 4 * static_cast<int64_t>(threadIdx.x);
    int64_t at = first;
    int64_t left = matrix.n - first;
    if (matrix.pitch != matrix.cols && left > 0) {
        const int64_t row = first / matrix.pitch;
        at = row * matrix.cols + (first - row * matrix.pitch);
        left = matrix.cols - (first - row * matrix.pitch);
    }
    return {client, number, matrix, first, at, left >= 4 ? 4 : left > 0 ? static_cast<int>(left) : 0};
}

// Four elements of a room, which begin at a multiple of four.
__device__ __forceinline__ void load_room(const float *from, float (&value)[4]) { load<4>(from, value); }
__device__ __forceinline__ void load_room(const Bf16 *from, float (&value)[4]) {
    const uint2 pairs = *reinterpret_cast<const uint2 *>(from);
    value[0] = __uint_as_float(pairs.x << 16);
    value[1] = __uint_as_float(pairs.x & 0xffff0000u);
    value[2] = __uint_as_float(pairs.y << 16);
    value[3] = __uint_as_float(pairs.y & 0xffff0000u);
}
__device__ __forceinline__ void store_room(float *to, const float (&value)[4]) { store<4>(to, value); }
__device__ __forceinline__ void store_room(Bf16 *to, const float (&value)[4]) {
    unsigned bits[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) bits[i] = rounded_to<Bf16>(value[i]).bits;
    *reinterpret_cast<uint2 *>(to) = make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16);
}

// X = M / (||M|| divisor); what follows the last element of a row is of no importance.
template <class Element>
__device__ __forceinline__ void load_matrices(const LargeMatrices &s) {
    if (s.bad.status->ticket <= s.bad.ticket) return;
    for (int64_t task = blockIdx.x; task < s.clients * s.chunks; task += gridDim.x) {
        const LargeChunk c = chunk_of(s, task);
        if (c.first == 0) s.flags[c.client * s.count + c.number] = 0;
        if (c.count == 0) continue;
        const int64_t client = s.first_client + c.client;
        const double norm = s.of.norms[client * s.of.block_count + c.matrix.block];
        const double factor = norm == 0.0 ? 0.0 : 1.0 / (norm * s.of.divisor);
        const float *m = s.of.m + client * s.of.m_stride + s.of.blocks[c.matrix.block].m_offset + c.at;
        float value[4] = {};
        if (c.count == 4 && is_vector_aligned(m)) {
            load<4>(m, value);
        } else {
            for (int i = 0; i < 4; ++i) {
                if (i < c.count) value[i] = m[i];
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) value[i] = static_cast<float>(factor * static_cast<double>(value[i]));
        store_room(static_cast<Element *>(s.room) + c.client * s.stride + c.matrix.x + c.first, value);
    }
}

// o = X and w -= eta scale X.
template <class Element>
__device__ __forceinline__ void finish_matrices(const LargeMatrices &s, int *stop) {
    // A matrix out of range does not keep the others from being stepped. Blocks report those while others begin, so the status
    // is read by an atomic operation, which leaves it as it is.
    if (threadIdx.x == 0) *stop = atomicMin(&s.bad.status->ticket, kNothing) <= s.bad.ticket ? 1 : 0;
    __syncthreads();
    if (*stop != 0) return;
    for (int64_t task = blockIdx.x; task < s.clients * s.chunks; task += gridDim.x) {
        const LargeChunk c = chunk_of(s, task);
        if (c.count == 0) continue;
        const int64_t client = s.first_client + c.client;
        const fcm_matrix_block &block = s.of.blocks[c.matrix.block];
        if (s.flags[c.client * s.count + c.number] != 0) {
            if (c.first == 0) s.out_of_range.found(s.of.m + client * s.of.m_stride + block.m_offset);
            continue;
        }
        float x[4];
        load_room(static_cast<const Element *>(s.room) + c.client * s.stride + c.matrix.result + c.first, x);
        float *o = s.of.o == nullptr ? nullptr : s.of.o + client * s.of.o_stride + block.o_offset + c.at;
        float *w = s.of.w == nullptr ? nullptr : s.of.w + client * s.of.w_stride + block.w_offset + c.at;
        const StepSize step{true, s.of.eta * block.scale};
        if (c.count == 4 && is_vector_aligned(o) && is_vector_aligned(w)) {
            if (w != nullptr) step_along<4>(step, x, w);
            if (o != nullptr) store<4>(o, x);
            continue;
        }
        for (int i = 0; i < 4; ++i) {
            if (i >= c.count) break;
            if (w != nullptr) step_along<1>(step, x + i, w + i);
            if (o != nullptr) o[i] = x[i];
        }
    }
}

}  // namespace fcm

using fcm::kThreads;

extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_schulz_load(const FCM_GRID_CONSTANT fcm::LargeMatrices s) {
    fcm::load_matrices<float>(s);
}
extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_schulz_load_bf16(const FCM_GRID_CONSTANT fcm::LargeMatrices s) {
    fcm::load_matrices<fcm::Bf16>(s);
}

extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_schulz_finish(const FCM_GRID_CONSTANT fcm::LargeMatrices s) {
    SHARED(int, stop, [1]);
    fcm::finish_matrices<float>(s, stop);
}
extern "C" __global__ void __launch_bounds__(kThreads) fcm_k_schulz_finish_bf16(const FCM_GRID_CONSTANT fcm::LargeMatrices s) {
    SHARED(int, stop, [1]);
    fcm::finish_matrices<fcm::Bf16>(s, stop);
}

namespace fcm {
namespace {

// Vectors, and whole sectors of memory, begin at multiples of this.
constexpr int64_t kAlignment = 32;
// Rows of matrices are multiples of 16 bytes, so that they can be copied in vectors.
constexpr int64_t kVectorBytes = 16;
// What a client's room should not exceed: with 16 clients 8 GiB, or a quarter of the memory of the device.
constexpr int64_t kMostBytes = int64_t{1} << 29;
constexpr int64_t kUsualClients = 16;

int64_t element_bytes(const fcm_schulz &schulz) {
    return schulz.precision == FCM_BF16 ? static_cast<int64_t>(sizeof(Bf16)) : static_cast<int64_t>(sizeof(float));
}

int64_t aligned(int64_t elements) { return parts_of(elements, kAlignment) * kAlignment; }
bool is_large(const fcm_matrix_block &block) { return !is_small(block) && block.rows > 0 && block.cols > 0; }

// A matrix in a client's room, in elements: X, Y, then the squares.
class LargeLayout {
   public:
    LargeLayout(const fcm_matrix_block &block, const fcm_schulz &schulz)
        : unit_(kVectorBytes / element_bytes(schulz)), block_(block), squares_(squares_of(block)) {}

    int64_t pitch(SchulzOperand operand) const { return pitch_of(is_matrix(operand) ? block_.cols : side_of(block_)); }
    int64_t offset(SchulzOperand operand) const {
        const auto number = static_cast<int64_t>(operand);
        if (number < kSchulzMatrices) return number * matrix();
        return kSchulzMatrices * matrix() + (number - kSchulzMatrices) * square();
    }
    int64_t elements() const { return kSchulzMatrices * matrix() + squares_ * square(); }

   private:
    int64_t pitch_of(int64_t cols) const { return parts_of(cols, unit_) * unit_; }
    int64_t matrix() const { return aligned(block_.rows * pitch_of(block_.cols)); }
    int64_t square() const { return aligned(side_of(block_) * pitch_of(side_of(block_))); }

    int64_t unit_;  // elements of a vector
    const fcm_matrix_block &block_;
    int64_t squares_;
};

// In bytes of a client's room.
int64_t most_bytes(const fcm_context *context) { return std::min(kMostBytes, context->memory_bytes / 4 / kUsualClients); }
int64_t clients_at_once(const fcm_context *context, int64_t bytes) {
    return std::max<int64_t>(1, kUsualClients * most_bytes(context) / bytes);
}

// Calls visit(first, end, stride) for the passes: ranges of blocks, in which those that are not large are skipped.
template <class Visit>
void for_passes(const fcm_context *context, const fcm_matrix_block *blocks, int64_t block_count, const fcm_schulz &schulz,
                Visit &&visit) {
    const int64_t most = most_bytes(context) / element_bytes(schulz);
    int64_t first = 0;
    int64_t stride = 0;
    for (int64_t i = 0; i < block_count; ++i) {
        if (!is_large(blocks[i])) continue;
        const int64_t elements = LargeLayout(blocks[i], schulz).elements();
        if (stride > 0 && stride + elements > most) {
            visit(first, i, stride);
            first = i;
            stride = 0;
        }
        stride += elements;
    }
    if (stride > 0) visit(first, block_count, stride);
}

ProductEntry entry_of(const fcm_matrix_block &block, const LargeLayout &layout, const SchulzProduct &p, int64_t at) {
    const SchulzSides sides = sides_of(block, p);
    const auto place = [&](SchulzOperand operand) { return operand == SchulzOperand::kNone ? -1 : at + layout.offset(operand); };
    ProductEntry entry{};
    entry.rows = sides.rows;
    entry.cols = sides.cols;
    entry.depth = sides.depth;
    entry.a = place(p.a);
    entry.a_row = p.a_transposed ? 1 : layout.pitch(p.a);
    entry.a_col = p.a_transposed ? layout.pitch(p.a) : 1;
    entry.b = place(p.b);
    entry.b_row = p.b_transposed ? 1 : layout.pitch(p.b);
    entry.b_col = p.b_transposed ? layout.pitch(p.b) : 1;
    entry.pitch = layout.pitch(p.out);
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
        const LargeLayout layout(blocks[i], schulz);
        int64_t last = -1;
        const SchulzOperand result = visit_products(blocks[i], schulz, [&](int64_t stage, const SchulzProduct &p) {
            if (static_cast<int64_t>(stages.size()) <= stage) stages.emplace_back();
            stages[static_cast<size_t>(stage)].push_back(entry_of(blocks[i], layout, p, at));
            last = stage;
        });
        // The last product of a matrix is alone in its stage.
        if (last >= 0) stages[static_cast<size_t>(last)].back().matrix = static_cast<int64_t>(matrices.size());
        const int64_t pitch = layout.pitch(SchulzOperand::kX);
        const int64_t n = blocks[i].rows * pitch;
        matrices.push_back({i, blocks[i].cols, pitch, n, at + layout.offset(SchulzOperand::kX), at + layout.offset(result), chunks});
        chunks += parts_of(n, kChunk);
        at += layout.elements();
    }
    LargePass pass{append(tables, matrices), static_cast<int64_t>(matrices.size()), chunks, stride,
                   clients_at_once(context, stride * element_bytes(schulz)), {}};
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
    for_passes(context, blocks, block_count, schulz, [&](int64_t first, int64_t end, int64_t stride) {
        int64_t matrices = 0;
        int64_t products = 0;
        for (int64_t i = first; i < end; ++i) {
            if (!is_large(blocks[i])) continue;
            ++matrices;
            visit_products(blocks[i], schulz, [&](int64_t, const SchulzProduct &) { ++products; });
        }
        const int64_t bytes = stride * element_bytes(schulz);
        const int64_t at_once = std::min(clients, clients_at_once(context, bytes));
        sizes.table_bytes += matrices * static_cast<int64_t>(sizeof(LargeMatrix)) +
                             products * static_cast<int64_t>(sizeof(ProductEntry));
        sizes.flags = std::max(sizes.flags, at_once * matrices);
        sizes.room_bytes = std::max(sizes.room_bytes, at_once * bytes);
    });
    return sizes;
}

LargeSchulzPlan large_schulz_plan(const fcm_context *context, const fcm_matrix_block *blocks, int64_t block_count,
                                  const fcm_schulz &schulz) {
    LargeSchulzPlan plan;
    plan.precision = schulz.precision;
    for_passes(context, blocks, block_count, schulz, [&](int64_t first, int64_t end, int64_t stride) {
        plan.passes.push_back(pass_of(context, blocks, first, end, stride, schulz, plan.tables));
    });
    return plan;
}

void launch_large_schulz(const fcm_context *context, const SchulzOperands &operands, const LargeSchulzPlan &plan,
                         const char *tables, unsigned *flags, void *room, Check bad, Check out_of_range) {
    const bool narrow = plan.precision == FCM_BF16;
    for (const LargePass &pass : plan.passes) {
        for (int64_t first = 0; first < operands.clients; first += pass.clients) {
            const int64_t clients = std::min(pass.clients, operands.clients - first);
            const LargeMatrices matrices{operands,
                                         first,
                                         clients,
                                         reinterpret_cast<const LargeMatrix *>(tables + pass.table),
                                         pass.count,
                                         pass.chunks,
                                         room,
                                         pass.stride,
                                         flags,
                                         bad,
                                         out_of_range};
            const unsigned grid = blocks_for(clients * pass.chunks);
            if (narrow) {
                LAUNCH(fcm_k_schulz_load_bf16, grid, kThreads, 0, context->stream, matrices);
            } else {
                LAUNCH(fcm_k_schulz_load, grid, kThreads, 0, context->stream, matrices);
            }
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
                if (plan.precision == FCM_FP32) {
                    launch_products(context, products);
                } else {
                    launch_products_mma(context, products, plan.precision);
                }
            }
            if (narrow) {
                LAUNCH(fcm_k_schulz_finish_bf16, grid, kThreads, 0, context->stream, matrices);
            } else {
                LAUNCH(fcm_k_schulz_finish, grid, kThreads, 0, context->stream, matrices);
            }
            launched("fcm_k_schulz_finish", clients, pass.chunks);
        }
    }
}

}  // namespace fcm
