// Matrix products of any size and of any number of shapes, of all clients in one launch. Every element is one chain of fused
// multiply-adds in the order of k, so results depend neither on the tiles nor on what else is in the launch, and are
// bit-identical to the CPU's products with AVX2 or AVX-512. tiles.h has the map of tiles and threads.
#include <algorithm>
#include <cstring>

#include "context.h"
#include "device.h"
#include "device_functions.h"
#include "products.h"
#include "sums.h"
#include "tiles.h"

namespace fcm {

// The last entry that begins at or before `tile`.
__device__ __forceinline__ const ProductEntry &product_at(const Products &p, int64_t tile) {
    return p.listed == nullptr ? p.single : p.listed[entry_at(p.listed, p.count, &ProductEntry::first_tile, tile)];
}

// Where a tile of a client's product reads and writes. In shared memory, because keeping it would occupy registers that the sums
// need.
struct TileWork {
    Factor a;
    Factor b;
    const float *base;  // may be null
    float *out;
    float *also;  // may be null
    float product_factor;
    float base_factor;
    float diagonal;
    int64_t rows;
    int64_t cols;
    int64_t top;
    int64_t left;
    unsigned *flag;  // may be null
    bool symmetric;
};

__device__ __forceinline__ TileWork tile_of(const Products &p, int64_t task) {
    const ProductEntry &entry = product_at(p, task / p.clients);
    // The tiles of a matrix follow each other, because they share its rows and columns.
    const int64_t local = task - entry.first_tile * p.clients;
    const int64_t client = local / entry.tiles;
    const int64_t tile = local - client * entry.tiles;
    const int64_t across = parts_of(entry.cols, kTile);
    int64_t row = tile / across;
    int64_t col = tile - row * across;
    if (entry.symmetric != 0) triangle_place(tile, across, row, col);
    float *out = p.out + client * p.out_stride;
    return {{p.a + client * p.a_stride + entry.a, entry.a_row, entry.a_col, entry.rows, entry.depth},
            {p.b + client * p.b_stride + entry.b, entry.b_col, entry.b_row, entry.cols, entry.depth},
            entry.base < 0 ? nullptr : p.base + client * p.base_stride + entry.base,
            out + entry.out,
            entry.also < 0 ? nullptr : out + entry.also,
            entry.product_factor,
            entry.base_factor,
            entry.diagonal,
            entry.rows,
            entry.cols,
            row * kTile,
            col * kTile,
            entry.matrix < 0 ? nullptr : p.flags + client * p.flag_stride + entry.matrix,
            entry.symmetric != 0};
}

// value = base_factor base + product_factor sum for a quarter of a tile that is staged, and stores it. Threads run along the rows,
// so that memory is accessed in whole sectors wherever the matrix begins. Returns whether a value is not finite.
__device__ __forceinline__ bool store_quarter(const TileWork &t, Stage &stage, int64_t top, int64_t left) {
    bool bad = false;
    const int rows = t.rows - top < kHalfTile ? static_cast<int>(t.rows - top) : kHalfTile;
    const int cols = t.cols - left < kHalfTile ? static_cast<int>(t.cols - left) : kHalfTile;
#pragma unroll 1
    for (int e = static_cast<int>(threadIdx.x); e < rows * kHalfTile; e += kThreads) {
        const int i = e / kHalfTile;
        const int j = e % kHalfTile;
        const int64_t row = top + i;
        const int64_t col = left + j;
        // Of a symmetric result, the elements below the diagonal are mirror images.
        if (j >= cols || (t.symmetric && col < row)) continue;
        const int64_t at = row * t.cols + col;
        float value = t.product_factor * stage[i][j];
        if (t.base != nullptr) value = fmaf(t.base_factor, t.base[at], value);
        bad = bad || not_finite(value);
        t.out[at] = value;
        stage[i][j] = value;
        if (t.also != nullptr) t.also[at] = row == col ? value + t.diagonal : value;
    }
    if (!t.symmetric) return bad;
    __syncthreads();
    // A warp takes 8 rows of 4 columns: one sector of each column, from 32 different banks.
#pragma unroll 1
    for (int e = static_cast<int>(threadIdx.x); e < kHalfTile * ((cols + 3) / 4 * 4); e += kThreads) {
        const int i = e % 8 + e / 32 % (kHalfTile / 8) * 8;
        const int j = e / 8 % 4 + e / (4 * kHalfTile) * 4;
        const int64_t row = top + i;
        const int64_t col = left + j;
        if (i >= rows || j >= cols || col <= row) continue;
        t.out[col * t.cols + row] = stage[i][j];
        if (t.also != nullptr) t.also[col * t.cols + row] = stage[i][j];
    }
    return bad;
}

// Stores the patches of all threads, a quarter of the tile at a time; returns whether a value of this thread's is not finite.
template <int P, int Q>
__device__ __forceinline__ bool store_tile(const TileWork &t, Stage &stage, const float (&sum)[P * kPatch][Q * kPatch]) {
    bool bad = false;
#pragma unroll
    for (int p = 0; p < P; ++p) {
#pragma unroll
        for (int q = 0; q < Q; ++q) {
#pragma unroll
            for (int i = 0; i < kPatch; ++i) {
                const float row[kPatch] = {sum[p * kPatch + i][q * kPatch], sum[p * kPatch + i][q * kPatch + 1],
                                           sum[p * kPatch + i][q * kPatch + 2], sum[p * kPatch + i][q * kPatch + 3]};
                store<kPatch>(&stage[patch_row() + i][patch_col()], row);
            }
            __syncthreads();
            // The rounded edges of a triangle lie below the diagonal.
            bad = store_quarter(t, stage, t.top + p * kHalfTile, t.left + q * kHalfTile) || bad;
            __syncthreads();
        }
    }
    return bad;
}

// What a block keeps in shared memory: slices of the factors, then the result.
union TileRoom {
    struct {
        Slice a[2];
        Slice b[2];
    } slices;
    Stage stage;
};

template <int P, int Q>
__device__ __forceinline__ bool product_tile(const TileWork &t, TileRoom &room) {
    float sum[P * kPatch][Q * kPatch] = {};
    auto &a = room.slices.a;
    auto &b = room.slices.b;
    fetch_slice(a[0], t.a, t.top, P * kHalfTile, 0);
    fetch_slice(b[0], t.b, t.left, Q * kHalfTile, 0);
    commit_copies();
    int now = 0;
#pragma unroll 1
    for (int64_t k = 0; k < t.a.depth; k += kSlice) {
        if (k + kSlice < t.a.depth) {
            fetch_slice(a[1 - now], t.a, t.top, P * kHalfTile, k + kSlice);
            fetch_slice(b[1 - now], t.b, t.left, Q * kHalfTile, k + kSlice);
            commit_copies();
            wait_copies<1>();
        } else {
            wait_copies<0>();
        }
        __syncthreads();
        // What follows the last element is skipped, because adding zeros would turn a sum of -0 into 0.
        add_slice<P, Q>(sum, a[now], b[now], t.a.depth - k < kSlice ? static_cast<int>(t.a.depth - k) : kSlice, patch_row(),
                        patch_col());
        __syncthreads();
        now = 1 - now;
    }
    return store_tile<P, Q>(t, room.stage, sum);
}

__device__ __forceinline__ bool any_tile(const TileWork &t, TileRoom &room) {
    const bool high = t.rows - t.top > kHalfTile;
    const bool wide = t.cols - t.left > kHalfTile;
    if (high && wide) return product_tile<2, 2>(t, room);
    if (high) return product_tile<2, 1>(t, room);
    if (wide) return product_tile<1, 2>(t, room);
    return product_tile<1, 1>(t, room);
}

}  // namespace fcm

using fcm::kThreads;

extern "C" __global__ void __launch_bounds__(kThreads, 2) fcm_k_products(const FCM_GRID_CONSTANT fcm::Products p) {
    SHARED(__align__(16) fcm::TileRoom, room, [1]);
    SHARED(fcm::TileWork, work, [1]);
    if (p.status->ticket <= p.stop_from) return;
    for (int64_t task = blockIdx.x; task < p.clients * p.tiles; task += gridDim.x) {
        if (threadIdx.x == 0) work[0] = fcm::tile_of(p, task);
        __syncthreads();
        const bool bad = fcm::any_tile(work[0], room[0]);
        if (bad && work[0].flag != nullptr) atomicExch(work[0].flag, 1u);
        __syncthreads();  // everybody is done with this tile
    }
}

namespace fcm {
namespace {

int64_t tiles_of(const ProductEntry &entry) {
    const int64_t across = parts_of(entry.cols, kTile);
    return entry.symmetric != 0 ? triangle(across) : parts_of(entry.rows, kTile) * across;
}

}  // namespace

int64_t number_tiles(std::vector<ProductEntry> &entries) {
    // The deepest first, so that no long tile begins at the end.
    std::stable_sort(entries.begin(), entries.end(),
                     [](const ProductEntry &x, const ProductEntry &y) { return x.depth > y.depth; });
    int64_t first_tile = 0;
    for (ProductEntry &entry : entries) {
        entry.first_tile = first_tile;
        entry.tiles = tiles_of(entry);
        first_tile += entry.tiles;
    }
    return first_tile;
}

// The grid does not decide results: enough blocks for the largest GPU, so that the queue of tiles stays balanced.
void launch_products(const fcm_context *context, const Products &products) {
    if (products.tiles == 0) return;
    LAUNCH(fcm_k_products, blocks_for(products.clients * products.tiles), kThreads, 0, context->stream, products);
    launched("fcm_k_products", products.clients, products.tiles);
}

// A single product needs no table, and slices are in shared memory.
fcm_status device::multiply_workspace(const fcm_context *, int64_t, int64_t, int64_t, int64_t, int64_t *bytes, fcm_error *) {
    *bytes = 0;
    return FCM_OK;
}

fcm_status device::multiply(fcm_context *context, int64_t clients, int64_t rows, int64_t cols, int64_t depth,
                            int32_t symmetric, double product_factor, const float *a, int64_t a_stride, int64_t a_row,
                            int64_t a_col, const float *b, int64_t b_stride, int64_t b_row, int64_t b_col,
                            double base_factor, const float *base, int64_t base_stride, float *out, int64_t out_stride,
                            void *, int64_t, fcm_error *error) {
    return on_device("fcm_multiply", context, error, [&] {
        Products p{};
        p.clients = clients;
        p.single.rows = rows;
        p.single.cols = cols;
        p.single.depth = depth;
        p.single.a_row = a_row;
        p.single.a_col = a_col;
        p.single.b_row = b_row;
        p.single.b_col = b_col;
        p.single.base = base == nullptr ? -1 : 0;
        p.single.also = -1;
        p.single.matrix = -1;
        p.single.product_factor = static_cast<float>(product_factor);
        p.single.base_factor = static_cast<float>(base_factor);
        p.single.symmetric = symmetric != 0;
        p.single.tiles = tiles_of(p.single);
        p.count = 1;
        p.tiles = p.single.tiles;
        p.a = a;
        p.a_stride = a_stride;
        p.b = b;
        p.b_stride = b_stride;
        p.base = base;
        p.base_stride = base_stride;
        p.out = out;
        p.out_stride = out_stride;
        p.stop_from = kNothing - 1;  // whatever was found
        p.status = context->status;
        launch_products(context, p);
    });
}

}  // namespace fcm
